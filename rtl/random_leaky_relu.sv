// x where x is not negative, floor(x * slope / 64) elsewhere, on every lane; the low WIDTH bits are
// kept. The slope is 8 + floor(r * 13 / 16), r the low four bits of a shift register with feedback
// that steps once for each accepted beat: 1/8 to 5/16, drawn anew for every beat.
module random_leaky_relu #(
    parameter int LANES = 4,
    parameter int WIDTH = 8,    // bits of an element, two's complement
    parameter int SEED  = 1,    // of the register, 1 to 255
    parameter int TAPS  = 'hB8  // the bits whose parity is shifted in: x^8 + x^6 + x^5 + x^4 + 1
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
  localparam int PW = WIDTH + 6;

  logic [7:0] state;
  logic [7:0] scaled;
  logic signed [PW-1:0] slope;

  assign scaled  = {4'b0, state[3:0]} * 8'd13;
  assign slope   = PW'({1'b0, scaled[7:4]}) + PW'(8);
  assign s_ready = !m_valid || m_ready;
  always_ff @(posedge clk) begin
    if (s_ready) m_valid <= s_valid;
    if (s_ready && s_valid) state <= {state[6:0], ^(state & 8'(TAPS))};
    if (rst) begin
      m_valid <= 1'b0;
      state   <= 8'(SEED);
    end
  end
  generate
    for (genvar p = 0; p < LANES; p++) begin : lane
      logic signed [WIDTH-1:0] x;
      logic signed [PW-1:0] product;
      assign x = s_data[p*WIDTH+:WIDTH];
      assign product = PW'(x) * slope;
      always_ff @(posedge clk)
        if (s_ready) m_data[p*WIDTH+:WIDTH] <= x[WIDTH-1] ? product[6+:WIDTH] : x;
      logic unused;
      assign unused = &{1'b0, product[5:0]};
    end
  endgenerate
  logic unused;
  assign unused = &{1'b0, scaled[3:0]};
endmodule
