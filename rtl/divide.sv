// y = x * MULTIPLIER * 2^UP / (d * 2^DOWN), rounded to the nearest, ties to even, and saturated; d
// is positive, one element for ROW beats of x. Magnitudes are divided bit by bit, BITS bits a
// cycle: only the quotient bits that y can hold are computed. A beat takes STEPS + 2 cycles.
module divide #(
    parameter int LANES      = 4,
    parameter int ROW        = 2,   // beats of x for one d
    parameter int XW         = 16,  // bits of x
    parameter int XSIGNED    = 1,
    parameter int DW         = 16,  // bits of d
    parameter int MULTIPLIER = 1,
    parameter int UP         = 0,
    parameter int DOWN       = 0,
    parameter int NW         = 16,  // bits of the dividend's magnitude, more than QW
    parameter int QW         = 7,   // quotient bits: of the magnitude of y
    parameter int BITS       = 1,   // of them a cycle
    parameter int OW         = 8,   // bits of y
    parameter int OSIGNED    = 1,
    parameter int SYMMETRIC  = 0
) (
    input  logic                clk,
    input  logic                rst,
    input  logic [LANES*XW-1:0] s0_data,
    input  logic                s0_valid,
    output logic                s0_ready,
    input  logic [      DW-1:0] s1_data,
    input  logic                s1_valid,
    output logic                s1_ready,
    output logic [LANES*OW-1:0] m_data,
    output logic                m_valid,
    input  logic                m_ready
);
  localparam int STEPS = (QW + BITS - 1) / BITS;
  localparam int QE = STEPS * BITS;  // bits computed, whole steps
  localparam int QP = QE + 1;
  localparam int SW = $clog2(STEPS + 2);
  localparam int RW = ROW > 1 ? $clog2(ROW) : 1;
  localparam int EW = DW + DOWN;  // bits of the divisor
  localparam int HW = NW + 1 > EW ? NW + 1 : EW;  // bits of what is left of the dividend
  localparam int HP = HW + 1;

  // Step 0 takes a beat, STEPS steps divide, the last rounds.
  logic [SW-1:0] step;
  logic [RW-1:0] beat;
  logic free, take_d, is_loading, is_first, is_rounding, take;
  assign free        = !m_valid || m_ready;
  assign is_loading  = step == SW'(0);
  assign is_first    = step == SW'(1);
  assign is_rounding = step == SW'(STEPS + 1);
  assign take_d      = beat == RW'(0);
  assign s0_ready    = free && is_loading && (!take_d || s1_valid);
  assign s1_ready    = free && is_loading && take_d && s0_valid;
  assign take        = s0_valid && s0_ready;
  logic [EW-1:0] divisor;
  always_ff @(posedge clk) begin
    if (free) begin
      if (take) beat <= beat == RW'(ROW - 1) ? RW'(0) : beat + 1'b1;
      if (take && take_d) divisor <= EW'(s1_data) << DOWN;
      if (take || !is_loading) step <= is_rounding ? SW'(0) : step + 1'b1;
      m_valid <= is_rounding;
    end
    if (rst) begin
      beat    <= RW'(0);
      step    <= SW'(0);
      m_valid <= 1'b0;
    end
  end

  localparam [OW-1:0] HIGH = OSIGNED != 0 ? {1'b0, {(OW - 1) {1'b1}}} : {OW{1'b1}};
  localparam [OW-1:0] LOWEST = {1'b1, {(OW - 1) {1'b0}}};
  localparam [OW-1:0] LOW = OSIGNED == 0 ? OW'(0) : SYMMETRIC != 0 ? LOWEST + OW'(1) : LOWEST;
  generate
    for (genvar p = 0; p < LANES; p++) begin : lane
      logic sign, is_negative, overflow;
      logic [XW:0] x, absolute;
      logic [NW-1:0] magnitude;
      logic [HW-1:0] rest, rest_next;
      logic [QE-1:0] low, low_next;  // dividend bits to come in, quotient bits behind them
      assign x         = {XSIGNED != 0 && s0_data[p*XW+XW-1], s0_data[p*XW+:XW]};
      assign sign      = x[XW];
      assign absolute  = sign ? -x : x;
      assign magnitude = (NW'(absolute) * NW'(MULTIPLIER)) << UP;
      always_comb begin
        rest_next = rest;
        low_next  = low;
        for (int i = 0; i < BITS; i++) begin
          rest_next = {rest_next[HW-2:0], low_next[QE-1]};
          low_next  = low_next << 1;
          if (rest_next >= HW'(divisor)) begin
            rest_next   = rest_next - HW'(divisor);
            low_next[0] = 1'b1;
          end
        end
      end
      logic unused;
      assign unused = absolute[XW];
      logic [HW:0] twice;
      logic [QE:0] rounded;
      logic is_large;
      assign twice    = {rest, 1'b0};
      assign rounded  = QP'(low) +
          QP'(twice > HP'(divisor) || (twice == HP'(divisor) && low[0]));
      assign is_large = overflow || |rounded[QE:QW];
      always_ff @(posedge clk)
        if (free) begin
          if (is_loading) begin
            is_negative <= sign;
            rest        <= HW'(magnitude) >> QE;
            low         <= magnitude[QE-1:0];
          end else if (!is_rounding) begin
            rest <= rest_next;
            low  <= low_next;
          end
          if (is_first) overflow <= rest >= HW'(divisor);
          if (is_rounding)
            m_data[p*OW+:OW] <= is_negative ? (is_large || (OSIGNED == 0 && |rounded) ? LOW : OW'(0) - OW'(rounded))
                                            : (is_large ? HIGH : OW'(rounded));
        end
    end
  endgenerate
endmodule
