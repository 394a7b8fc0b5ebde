// y = requant(x * g + b) with a factor and a summand for each element of ROWS vectors, which come
// round again: layer norm's weight and bias, batch norm, position embeddings.
module channel_scale #(
    parameter int LANES      = 4,
    parameter int BEATS      = 2,   // of ROWS vectors
    parameter int IW         = 8,   // bits of x
    parameter int ISIGNED    = 1,
    parameter int GW         = 8,   // bits of g, two's complement
    parameter int BW         = 16,  // bits of b, two's complement
    parameter int AW         = 20,  // bits of what is rounded, two's complement
    parameter int MW         = 0,   // bits of the multiplier of requant; 0: none
    parameter int MULTIPLIER = 1,
    parameter int SHIFT      = 0,   // as in requant, like the four that follow
    parameter int OW         = 8,
    parameter int OSIGNED    = 1,
    parameter int SYMMETRIC  = 0,
    parameter int MODE       = 0,
    parameter int BLOCK      = 0,   // 1: factors in block RAM
    parameter int BLOCK_B    = 0,   // 1: summands in block RAM
    parameter     FACTORS    = "",  // LANES factors of a beat
    parameter     SUMMANDS   = ""
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
  localparam int CW = BEATS > 1 ? $clog2(BEATS) : 1;
  localparam int ML = MW > 0 ? MW : 1;

  logic [CW-1:0] beat;
  logic ready1, ready2, ready3, valid1, valid2;
  assign ready3  = !m_valid || m_ready;
  assign ready2  = !valid2 || ready3;
  assign ready1  = !valid1 || ready2;
  assign s_ready = ready1;
  always_ff @(posedge clk) begin
    if (s_valid && s_ready) beat <= beat == CW'(BEATS - 1) ? CW'(0) : beat + 1'b1;
    if (ready1) valid1 <= s_valid;
    if (ready2) valid2 <= valid1;
    if (ready3) m_valid <= valid2;
    if (rst) begin
      beat    <= CW'(0);
      valid1  <= 1'b0;
      valid2  <= 1'b0;
      m_valid <= 1'b0;
    end
  end

  logic [LANES*IW-1:0] x1;
  logic [LANES*GW-1:0] g1;
  logic [LANES*BW-1:0] b1;
  always_ff @(posedge clk) if (ready1) x1 <= s_data;
  rom #(
      .WIDTH(LANES * GW),
      .DEPTH(BEATS),
      .FILE (FACTORS),
      .BLOCK(BLOCK)
  ) factors (
      .clk,
      .enable (ready1),
      .address(beat),
      .data   (g1)
  );
  rom #(
      .WIDTH(LANES * BW),
      .DEPTH(BEATS),
      .FILE (SUMMANDS),
      .BLOCK(BLOCK_B)
  ) summands (
      .clk,
      .enable (ready1),
      .address(beat),
      .data   (b1)
  );
  generate
    for (genvar p = 0; p < LANES; p++) begin : lane
      logic signed [AW-1:0] x, y2;
      logic [OW-1:0] y3;
      assign x = AW'($signed({ISIGNED != 0 && x1[p*IW+IW-1], x1[p*IW+:IW]}));
      always_ff @(posedge clk) begin
        if (ready2) y2 <= x * AW'($signed(g1[p*GW+:GW])) + AW'($signed(b1[p*BW+:BW]));
        if (ready3) m_data[p*OW+:OW] <= y3;
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
          .x(y2),
          .multiplier(ML'(MULTIPLIER)),
          .y(y3)
      );
    end
  endgenerate
endmodule
