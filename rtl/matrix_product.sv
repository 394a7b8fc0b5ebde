// y = requant(A B) where both factors are streams. All of B, HEADS matrices side by side, is kept
// in a memory, twice, so that the next one arrives while one is used. Rows of A come head after
// head, BEATS beats of PI elements each, and are replayed for each tile of PO outputs.
//
// With TURNED = 0 a vector of B holds what is multiplied with a row of A: y[i, j] = sum over k of
// a[i, k] b[j, k], and B is kept in PO banks, one for each output of a tile. With TURNED = 1 it
// holds a row of outputs: y[i, j] = sum over k of a[i, k] b[k, j], and PI is 1.
module matrix_product #(
    parameter int HEADS      = 1,
    parameter int ROWS       = 4,   // rows of A a head that meet one B
    parameter int VECTORS    = 6,   // of B
    parameter int BEATS      = 2,   // of a row of A
    parameter int TILES      = 3,   // output beats of a row
    parameter int PI         = 2,
    parameter int LAST       = 2,   // elements of the last beat of a row
    parameter int PO         = 2,
    parameter int TURNED     = 0,
    parameter int XW         = 8,   // bits of an element of A
    parameter int XSIGNED    = 1,
    parameter int WW         = 8,   // bits of an element of B
    parameter int WSIGNED    = 1,
    parameter int AW         = 20,  // bits of a sum
    parameter int MW         = 0,   // bits of the multiplier of requant; 0: none
    parameter int MULTIPLIER = 1,
    parameter int SHIFT      = 0,   // as in requant, like the four that follow
    parameter int OW         = 8,
    parameter int OSIGNED    = 1,
    parameter int SYMMETRIC  = 0,
    parameter int MODE       = 0,
    parameter int BLOCK      = 0    // 1: B in block RAM
) (
    input  logic                                       clk,
    input  logic                                       rst,
    input  logic [                          PI*XW-1:0] s0_data,
    input  logic                                       s0_valid,
    output logic                                       s0_ready,
    input  logic [(TURNED != 0 ? PO : PI)*WW-1:0] s1_data,
    input  logic                                       s1_valid,
    output logic                                       s1_ready,
    output logic [                          PO*OW-1:0] m_data,
    output logic                                       m_valid,
    input  logic                                       m_ready
);
  localparam int PART = TURNED != 0 ? TILES : BEATS;  // beats of a vector of B, for one head
  localparam int BANKS = TURNED != 0 ? 1 : PO;
  localparam int SETS = (VECTORS + BANKS - 1) / BANKS;  // vectors of B in a bank
  localparam int WORDS = SETS * HEADS * PART;
  localparam int WB = (TURNED != 0 ? PO : PI) * WW;  // bits of a word
  localparam int MA = $clog2(2 * WORDS);
  localparam int ML = MW > 0 ? MW : 1;
  localparam int IW = BEATS > 1 ? $clog2(BEATS) : 1;
  localparam int TW = TILES > 1 ? $clog2(TILES) : 1;
  localparam int HW = HEADS > 1 ? $clog2(HEADS) : 1;
  localparam int RW = ROWS > 1 ? $clog2(ROWS) : 1;
  localparam int BW = BANKS > 1 ? $clog2(BANKS) : 1;
  localparam int VW = VECTORS > 1 ? $clog2(VECTORS) : 1;
  localparam int CW = HEADS * PART > 1 ? $clog2(HEADS * PART) : 1;

  // B comes in: vectors go round the banks.
  logic [1:0] full;  // matrices that are kept whole
  logic half_in, half_out, push, filled, emptied;
  logic [CW-1:0] place_in;
  logic [BW-1:0] bank_in;
  logic [VW-1:0] vector_in;
  logic [MA-1:0] set_in;  // first word of the vectors that come in
  assign s1_ready = full != 2'd2;
  assign push     = s1_valid && s1_ready;
  assign filled   = push && place_in == CW'(HEADS * PART - 1) && vector_in == VW'(VECTORS - 1);
  always_ff @(posedge clk) begin
    if (push) begin
      place_in <= place_in == CW'(HEADS * PART - 1) ? CW'(0) : place_in + 1'b1;
      if (place_in == CW'(HEADS * PART - 1)) begin
        vector_in <= vector_in + 1'b1;
        bank_in   <= bank_in == BW'(BANKS - 1) ? BW'(0) : bank_in + 1'b1;
        if (bank_in == BW'(BANKS - 1)) set_in <= set_in + MA'(HEADS * PART);
      end
    end
    if (filled) begin
      vector_in <= VW'(0);
      bank_in   <= BW'(0);
      set_in    <= half_in ? MA'(0) : MA'(WORDS);
      half_in   <= !half_in;
    end
    if (filled && !emptied) full <= full + 1'b1;
    if (emptied && !filled) full <= full - 1'b1;
    if (rst) begin
      place_in  <= CW'(0);
      vector_in <= VW'(0);
      bank_in   <= BW'(0);
      set_in    <= MA'(0);
      half_in   <= 1'b0;
      full      <= 2'd0;
    end
  end

  // Issue: one product a cycle.
  logic [IW-1:0] beat;
  logic [TW-1:0] tile;
  logic [HW-1:0] head;
  logic [RW-1:0] row;
  logic first_tile, last_beat, last_tile, issue;
  logic ready1, ready2, ready3, ready4, valid1, valid2, valid3;
  assign first_tile = tile == TW'(0);
  assign last_beat  = beat == IW'(BEATS - 1);
  assign last_tile  = tile == TW'(TILES - 1);
  assign s0_ready   = ready1 && first_tile && full != 2'd0;
  assign issue      = ready1 && full != 2'd0 && (!first_tile || s0_valid);
  assign emptied    = issue && last_beat && last_tile && head == HW'(HEADS - 1) && row == RW'(ROWS - 1);
  // The word of B: steps from beat to beat and from tile to tile, and where a head begins.
  localparam int BEAT_STEP = TURNED != 0 ? HEADS * PART : 1;
  localparam int TILE_STEP = TURNED != 0 ? 1 : HEADS * PART;
  logic [MA-1:0] word, tile_start, head_start, next_head;
  assign next_head = head != HW'(HEADS - 1) ? head_start + MA'(PART)
                   : half_out != (row == RW'(ROWS - 1)) ? MA'(WORDS) : MA'(0);
  always_ff @(posedge clk) begin
    if (issue) begin
      beat <= last_beat ? IW'(0) : beat + 1'b1;
      if (!last_beat) begin
        word <= word + MA'(BEAT_STEP);
      end else begin
        tile       <= last_tile ? TW'(0) : tile + 1'b1;
        tile_start <= last_tile ? next_head : tile_start + MA'(TILE_STEP);
        word       <= last_tile ? next_head : tile_start + MA'(TILE_STEP);
        if (last_tile) begin
          head_start <= next_head;
          head <= head == HW'(HEADS - 1) ? HW'(0) : head + 1'b1;
          if (head == HW'(HEADS - 1)) row <= row == RW'(ROWS - 1) ? RW'(0) : row + 1'b1;
        end
      end
    end
    if (emptied) half_out <= !half_out;
    if (rst) begin
      word       <= MA'(0);
      tile_start <= MA'(0);
      head_start <= MA'(0);
      beat     <= IW'(0);
      tile     <= TW'(0);
      head     <= HW'(0);
      row      <= RW'(0);
      half_out <= 1'b0;
    end
  end

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
    if (ready2) begin
      first2 <= first1;
      last2  <= last1;
    end
    if (rst) begin
      valid1  <= 1'b0;
      valid2  <= 1'b0;
      valid3  <= 1'b0;
      m_valid <= 1'b0;
    end
  end

  // Stage 1: elements of A and of B.
  logic [PI*XW-1:0] x1, live1;
  logic [BANKS*WB-1:0] w1;
  always_ff @(posedge clk)
    if (issue) begin
      live1  <= s0_data;
      first1 <= beat == IW'(0);
      last1  <= last_beat;
    end
  generate
    if (TILES > 1) begin : replay
      logic [PI*XW-1:0] kept1;
      logic             is_live1;
      always_ff @(posedge clk) if (issue) is_live1 <= first_tile;
      assign x1 = is_live1 ? live1 : kept1;
      ram #(
          .WIDTH(PI * XW),
          .DEPTH(BEATS),
          .BLOCK(0)
      ) kept (
          .clk,
          .write   (issue && first_tile),
          .write_at(beat),
          .written (s0_data),
          .read    (issue),
          .read_at (beat),
          .data    (kept1)
      );
    end else begin : no_replay
      assign x1 = live1;
    end
    for (genvar b = 0; b < BANKS; b++) begin : bank
      ram #(
          .WIDTH(WB),
          .DEPTH(2 * WORDS),
          .BLOCK(BLOCK)
      ) words (
          .clk,
          .write   (push && bank_in == BW'(b)),
          .write_at(set_in + MA'(place_in)),
          .written (s1_data),
          .read    (issue),
          .read_at (word),
          .data    (w1[b*WB+:WB])
      );
    end

    // Stage 2: products. Stage 3: sums. Stage 4: requantized.
    for (genvar p = 0; p < PO; p++) begin : lane
      product_lane #(
          .PI(PI),
          .LAST(LAST),
          .XW(XW),
          .XSIGNED(XSIGNED),
          .WW(WW),
          .WSIGNED(WSIGNED),
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
          .start     (AW'(0)),
          .is_first  (first2),
          .add       (ready3 && valid2),
          .multiplier(ML'(MULTIPLIER)),
          .round     (ready4),
          .y         (m_data[p*OW+:OW])
      );
    end
  endgenerate
endmodule
