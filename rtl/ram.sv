// Memory of DEPTH words with a port to write and one to read, a cycle after the address. What is read
// while it is written is not defined.
module ram #(
    parameter int WIDTH = 8,
    parameter int DEPTH = 8,
    parameter int BLOCK = 0   // 1: in block RAM; 0: in LUTs, or in registers where there are few
) (
    input  logic                                 clk,
    input  logic                                 write,
    input  logic [(DEPTH>1?$clog2(DEPTH):1)-1:0] write_at,
    input  logic [                    WIDTH-1:0] written,
    input  logic                                 read,
    input  logic [(DEPTH>1?$clog2(DEPTH):1)-1:0] read_at,
    output logic [                    WIDTH-1:0] data
);
  generate
    if (BLOCK != 0) begin : in_block_ram
      (* ram_style = "block" *) logic [WIDTH-1:0] contents[0:DEPTH-1];
      always_ff @(posedge clk) begin
        if (write) contents[write_at] <= written;
        if (read) data <= contents[read_at];
      end
    end else if (DEPTH > 4) begin : in_luts
      (* ram_style = "distributed" *) logic [WIDTH-1:0] contents[0:DEPTH-1];
      always_ff @(posedge clk) begin
        if (write) contents[write_at] <= written;
        if (read) data <= contents[read_at];
      end
    end else begin : in_registers
      logic [WIDTH-1:0] contents[0:DEPTH-1];
      always_ff @(posedge clk) begin
        if (write) contents[write_at] <= written;
        if (read) data <= contents[read_at];
      end
    end
  endgenerate
endmodule
