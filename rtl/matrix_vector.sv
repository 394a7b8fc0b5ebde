// y = requant(W x + b) for vectors that come in BEATS beats of PI elements, PO outputs at a time.
// The first PO outputs are computed while x arrives; x is kept and replayed for the others. One
// product of PI x PO elements a cycle: a vector takes BEATS * TILES cycles.
//
// WEIGHTS holds a word for each product, BEATS for each tile of outputs, tile by tile: the weight
// of output p and input i stands at bit (p * PI + i) * WW. Missing rows and columns are zero.
module matrix_vector #(
    parameter int BEATS      = 1,   // input beats of a product
    parameter int TILES      = 2,   // output beats of a product
    parameter int PI         = 4,   // inputs a cycle
    parameter int PO         = 4,   // outputs a cycle
    parameter int XW         = 8,   // bits of an input
    parameter int XSIGNED    = 1,
    parameter int WW         = 8,   // bits of a weight, two's complement
    parameter int AW         = 20,  // bits of a sum; must hold every result, not every partial sum
    parameter int BIAS       = 1,   // 1: BIASES holds PO biases of AW bits a tile
    parameter int MW         = 0,   // bits of the multipliers of requant; 0: none
    parameter int MULTIPLIER = 1,   // of all outputs
    parameter int SHIFT      = 3,   // as in requant, like the four that follow
    parameter int OW         = 8,
    parameter int OSIGNED    = 1,
    parameter int SYMMETRIC  = 0,
    parameter int MODE       = 0,
    parameter int SCALED     = 0,   // 1: SCALES holds a multiplier for each output
    parameter int BLOCK      = 0,   // 1: weights in block RAM
    parameter int KEPT_BLOCK = 0,   // 1: and what is replayed
    parameter     WEIGHTS    = "",
    parameter     BIASES     = "",
    parameter     SCALES     = ""   // PO multipliers of MW bits a tile
) (
    input  logic             clk,
    input  logic             rst,
    input  logic [PI*XW-1:0] s_data,
    input  logic             s_valid,
    output logic             s_ready,
    output logic [PO*OW-1:0] m_data,
    output logic             m_valid,
    input  logic             m_ready
);
  localparam int IW = BEATS > 1 ? $clog2(BEATS) : 1;
  localparam int TW = TILES > 1 ? $clog2(TILES) : 1;
  localparam int WORDS = BEATS * TILES;
  localparam int ML = MW > 0 ? MW : 1;
  localparam int WA = WORDS > 1 ? $clog2(WORDS) : 1;

  // Issue: one product a cycle. The first tile takes its inputs from the stream.
  logic [IW-1:0] beat;
  logic [TW-1:0] tile;
  logic [WA-1:0] word;
  logic first_tile, last_beat, issue;
  logic ready1, ready2, ready3, ready4, valid1, valid2, valid3;

  assign first_tile = tile == TW'(0);
  assign last_beat  = beat == IW'(BEATS - 1);
  assign s_ready    = ready1 && first_tile;
  assign issue      = ready1 && (!first_tile || s_valid);
  always_ff @(posedge clk) begin
    if (issue) begin
      word <= word == WA'(WORDS - 1) ? WA'(0) : word + 1'b1;
      beat <= last_beat ? IW'(0) : beat + 1'b1;
      if (last_beat) tile <= tile == TW'(TILES - 1) ? TW'(0) : tile + 1'b1;
    end
    if (rst) begin
      word <= WA'(0);
      beat <= IW'(0);
      tile <= TW'(0);
    end
  end

  // Four stages; one moves when the next is free. Sums that are not complete end in stage 3.
  assign ready4 = !m_valid || m_ready;
  assign ready3 = !valid3 || ready4;
  assign ready2 = !valid2 || ready3;
  assign ready1 = !valid1 || ready2;
  logic first1, last1, first2, last2;
  always_ff @(posedge clk) begin
    if (ready1) valid1 <= issue;
    if (ready2) valid2 <= valid1;
    if (ready3) valid3 <= valid2 && last2;
    if (ready4) m_valid <= valid3;
    if (rst) begin
      valid1  <= 1'b0;
      valid2  <= 1'b0;
      valid3  <= 1'b0;
      m_valid <= 1'b0;
    end
  end

  // Stage 1: inputs and weights.
  logic [TW-1:0] tile1;
  logic [PI*XW-1:0] x1, live1;
  logic [PO*PI*WW-1:0] w1;
  always_ff @(posedge clk)
    if (issue) begin
      live1  <= s_data;
      first1 <= beat == IW'(0);
      last1  <= last_beat;
      tile1  <= tile;
    end
  rom #(
      .WIDTH(PO * PI * WW),
      .DEPTH(WORDS),
      .FILE (WEIGHTS),
      .BLOCK(BLOCK)
  ) weights (
      .clk,
      .enable (issue),
      .address(word),
      .data   (w1)
  );
  generate
    if (TILES > 1) begin : replay
      logic [PI*XW-1:0] kept1;
      logic             is_live1;
      always_ff @(posedge clk) if (issue) is_live1 <= first_tile;
      assign x1 = is_live1 ? live1 : kept1;
      ram #(
          .WIDTH(PI * XW),
          .DEPTH(BEATS),
          .BLOCK(KEPT_BLOCK)
      ) kept (
          .clk,
          .write   (issue && first_tile),
          .write_at(beat),
          .written (s_data),
          .read    (issue),
          .read_at (beat),
          .data    (kept1)
      );
    end else begin : no_replay
      assign x1 = live1;
    end
  endgenerate

  // Stage 2: products, summed over the inputs of the beat.
  logic [TW-1:0] tile2;
  logic [PO*AW-1:0] b2;
  always_ff @(posedge clk)
    if (ready2) begin
      first2 <= first1;
      last2  <= last1;
      tile2  <= tile1;
    end
  generate
    if (BIAS != 0) begin : biased
      rom #(
          .WIDTH(PO * AW),
          .DEPTH(TILES),
          .FILE (BIASES)
      ) biases (
          .clk,
          .enable (ready2),
          .address(tile1),
          .data   (b2)
      );
    end else begin : unbiased
      assign b2 = {(PO * AW) {1'b0}};
    end
  endgenerate

  // Stage 3: sums over beats. Stage 4: requantized.
  logic [PO*ML-1:0] scale3;
  generate
    if (SCALED != 0) begin : scaled
      rom #(
          .WIDTH(PO * MW),
          .DEPTH(TILES),
          .FILE (SCALES)
      ) scales (
          .clk,
          .enable (ready3),
          .address(tile2),
          .data   (scale3)
      );
    end else begin : unscaled
      assign scale3 = {PO{ML'(MULTIPLIER)}};
      logic unused;
      assign unused = &{1'b0, tile2};
    end
    for (genvar p = 0; p < PO; p++) begin : lane
      product_lane #(
          .PI(PI),
          .LAST(PI),
          .XW(XW),
          .XSIGNED(XSIGNED),
          .WW(WW),
          .WSIGNED(1),
          .AW(AW),
          .MW(MW),
          .SHIFT(SHIFT),
          .OW(OW),
          .OSIGNED(OSIGNED),
          .SYMMETRIC(SYMMETRIC),
          .MODE(MODE)
      ) products (
          .clk,
          .x         (x1),
          .w         (w1[p*PI*WW+:PI*WW]),
          .is_last   (last1),
          .multiply  (ready2),
          .start     (b2[p*AW+:AW]),
          .is_first  (first2),
          .add       (ready3 && valid2),
          .multiplier(scale3[p*ML+:ML]),
          .round     (ready4),
          .y         (m_data[p*OW+:OW])
      );
    end
  endgenerate
endmodule
