// The sum or the largest of COUNT vectors, element by element, requantized: pooling behind a
// sliding window, or of a whole image. Vectors come in BEATS beats.
module window_reduce #(
    parameter int LANES      = 4,
    parameter int BEATS      = 1,
    parameter int COUNT      = 4,
    parameter int IW         = 8,   // bits of an input
    parameter int ISIGNED    = 1,
    parameter int OP         = 0,   // 0: sum; 1: the largest
    parameter int AW         = 10,  // bits of what is rounded, two's complement
    parameter int MW         = 0,   // bits of the multiplier of requant; 0: none
    parameter int MULTIPLIER = 1,
    parameter int SHIFT      = 0,   // as in requant, like the four that follow
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
  localparam int BW = BEATS > 1 ? $clog2(BEATS) : 1;
  localparam int CW = COUNT > 1 ? $clog2(COUNT) : 1;
  localparam int ML = MW > 0 ? MW : 1;

  logic [BW-1:0] beat;
  logic [CW-1:0] vector;
  logic ready2, valid1, take, is_first, is_last;
  assign is_first = vector == CW'(0);
  assign is_last  = vector == CW'(COUNT - 1);
  assign ready2   = !m_valid || m_ready;
  assign s_ready  = !valid1 || ready2;
  assign take     = s_valid && s_ready;
  always_ff @(posedge clk) begin
    if (take) begin
      beat <= beat == BW'(BEATS - 1) ? BW'(0) : beat + 1'b1;
      if (beat == BW'(BEATS - 1)) vector <= is_last ? CW'(0) : vector + 1'b1;
    end
    if (s_ready) valid1 <= take && is_last;
    if (ready2) m_valid <= valid1;
    if (rst) begin
      beat    <= BW'(0);
      vector  <= CW'(0);
      valid1  <= 1'b0;
      m_valid <= 1'b0;
    end
  end

  logic [LANES*AW-1:0] earlier, after;
  generate
    if (BEATS > 4) begin : in_luts
      (* ram_style = "distributed" *) logic [LANES*AW-1:0] gathered[0:BEATS-1];
      assign earlier = gathered[beat];
      always_ff @(posedge clk) if (take) gathered[beat] <= after;
    end else begin : in_registers
      logic [LANES*AW-1:0] gathered[0:BEATS-1];
      assign earlier = gathered[beat];
      always_ff @(posedge clk) if (take) gathered[beat] <= after;
    end
    for (genvar p = 0; p < LANES; p++) begin : lane
      logic signed [AW-1:0] x, old, x1;
      logic [OW-1:0] y1;
      assign x   = AW'($signed({ISIGNED != 0 && s_data[p*IW+IW-1], s_data[p*IW+:IW]}));
      assign old = earlier[p*AW+:AW];
      if (OP == 0) begin : sum
        assign after[p*AW+:AW] = is_first ? x : old + x;
      end else begin : largest
        assign after[p*AW+:AW] = is_first || x > old ? x : old;
      end
      always_ff @(posedge clk) begin
        if (take) x1 <= after[p*AW+:AW];
        if (ready2) m_data[p*OW+:OW] <= y1;
      end
      requant #(
          .IW(AW),
          .MW(MW),
          .SHIFT(SHIFT),
          .OW(OW),
          .SIGNED(OSIGNED),
          .SYMMETRIC(SYMMETRIC),
          .MODE(MODE)
      ) round (
          .x(x1),
          .multiplier(ML'(MULTIPLIER)),
          .y(y1)
      );
    end
  endgenerate
endmodule
