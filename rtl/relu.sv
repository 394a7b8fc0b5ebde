// max(x, 0) on every lane.
module relu #(
    parameter int LANES = 4,
    parameter int WIDTH = 8   // bits of an element, two's complement
) (
    input  logic                   clk,
    input  logic                   rst,
    input  logic [LANES*WIDTH-1:0] s_data,
    input  logic                   s_valid,
    output logic                   s_ready,
    output logic [LANES*WIDTH-1:0] m_data,
    output logic                   m_valid,
    input  logic                   m_ready
);
  assign s_ready = !m_valid || m_ready;
  always_ff @(posedge clk) begin
    if (s_ready) m_valid <= s_valid;
    if (rst) m_valid <= 1'b0;
  end
  generate
    for (genvar p = 0; p < LANES; p++) begin : lane
      logic [WIDTH-1:0] x;
      assign x = s_data[p*WIDTH+:WIDTH];
      always_ff @(posedge clk) if (s_ready) m_data[p*WIDTH+:WIDTH] <= x[WIDTH-1] ? WIDTH'(0) : x;
    end
  endgenerate
endmodule
