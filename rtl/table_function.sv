// y = TABLE[x] on every lane: any function of few bits. The pattern of x is the address.
module table_function #(
    parameter int LANES = 4,
    parameter int IW    = 8,  // bits of an input
    parameter int OW    = 8,  // bits of an output
    parameter int BLOCK = 0,  // 1: in block RAM
    parameter     TABLE = ""
) (
    input  logic                clk,
    input  logic                rst,
    input  logic [LANES*IW-1:0] s_data,
    input  logic                s_valid,
    output logic                s_ready,
    output logic [LANES*OW-1:0] m_data,
    output logic                m_valid,
    input  logic                m_ready
);
  assign s_ready = !m_valid || m_ready;
  always_ff @(posedge clk) begin
    if (s_ready) m_valid <= s_valid;
    if (rst) m_valid <= 1'b0;
  end
  generate
    for (genvar p = 0; p < LANES; p++) begin : lane
      rom #(
          .WIDTH(OW),
          .DEPTH(2 ** IW),
          .FILE (TABLE),
          .BLOCK(BLOCK)
      ) values (
          .clk,
          .enable (s_ready),
          .address(s_data[p*IW+:IW]),
          .data   (m_data[p*OW+:OW])
      );
    end
  endgenerate
endmodule
