// requant on every lane of a stream, with one multiplier for all: for sums that a block left wide.
module requantize #(
    parameter int LANES      = 4,
    parameter int IW         = 16,  // bits of an input
    parameter int ISIGNED    = 1,
    parameter int MW         = 0,   // bits of the multiplier; 0: none
    parameter int MULTIPLIER = 1,
    parameter int SHIFT      = 4,   // as in requant, like the four that follow
    parameter int OW         = 8,
    parameter int OSIGNED    = 1,
    parameter int SYMMETRIC  = 0,
    parameter int MODE       = 0
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
  localparam int ML = MW > 0 ? MW : 1;

  assign s_ready = !m_valid || m_ready;
  always_ff @(posedge clk) begin
    if (s_ready) m_valid <= s_valid;
    if (rst) m_valid <= 1'b0;
  end
  generate
    for (genvar p = 0; p < LANES; p++) begin : lane
      logic signed [IW:0] x;
      logic [OW-1:0] y;
      assign x = {ISIGNED != 0 && s_data[p*IW+IW-1], s_data[p*IW+:IW]};
      requant #(
          .IW(IW + 1),
          .MW(MW),
          .SHIFT(SHIFT),
          .OW(OW),
          .SIGNED(OSIGNED),
          .SYMMETRIC(SYMMETRIC),
          .MODE(MODE)
      ) round (
          .x,
          .multiplier(ML'(MULTIPLIER)),
          .y
      );
      always_ff @(posedge clk) if (s_ready) m_data[p*OW+:OW] <= y;
    end
  endgenerate
endmodule
