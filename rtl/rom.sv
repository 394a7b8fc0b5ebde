// Memory of DEPTH words that are never written, read one cycle after the address. FILE holds one
// word a line in hexadecimal digits.
module rom #(
    parameter int WIDTH = 8,
    parameter int DEPTH = 2,
    parameter     FILE  = "",
    parameter int BLOCK = 0    // 1: in block RAM
) (
    input  logic                                 clk,
    input  logic                                 enable,
    input  logic [(DEPTH>1?$clog2(DEPTH):1)-1:0] address,
    output logic [                    WIDTH-1:0] data
);
  generate
    if (BLOCK != 0) begin : in_block_ram
      (* rom_style = "block", ram_style = "block" *) logic [WIDTH-1:0] words[0:DEPTH-1];
      initial $readmemh(FILE, words);
      always_ff @(posedge clk) if (enable) data <= words[address];
    end else begin : in_logic
      (* rom_style = "logic", ram_style = "logic" *) logic [WIDTH-1:0] words[0:DEPTH-1];
      initial $readmemh(FILE, words);
      always_ff @(posedge clk) if (enable) data <= words[address];
    end
  endgenerate
endmodule
