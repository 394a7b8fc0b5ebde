// x where x is not negative, floor(x * SLOPE / 2^SHIFT) elsewhere, on every lane. The low WIDTH
// bits are kept.
module leaky_relu #(
    parameter int LANES = 4,
    parameter int WIDTH = 8,  // bits of an element, two's complement
    parameter int SLOPE = 1,  // not negative
    parameter int SHIFT = 3
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
  localparam int SW = $clog2(SLOPE + 1) + 1;  // bits of the slope, with a sign
  localparam int FULL = WIDTH + SW;
  localparam int PW = FULL > WIDTH + SHIFT ? FULL : WIDTH + SHIFT;
  localparam signed [PW-1:0] FACTOR = PW'(SLOPE);

  assign s_ready = !m_valid || m_ready;
  always_ff @(posedge clk) begin
    if (s_ready) m_valid <= s_valid;
    if (rst) m_valid <= 1'b0;
  end
  generate
    for (genvar p = 0; p < LANES; p++) begin : lane
      logic signed [WIDTH-1:0] x;
      logic signed [PW-1:0] product;
      assign x = s_data[p*WIDTH+:WIDTH];
      assign product = PW'(x) * FACTOR;
      always_ff @(posedge clk)
        if (s_ready) m_data[p*WIDTH+:WIDTH] <= x[WIDTH-1] ? product[SHIFT+:WIDTH] : x;
      logic unused;
      assign unused = &{1'b0, product};
    end
  endgenerate
endmodule
