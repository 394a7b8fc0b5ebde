// One number for each vector of SIZE elements: its sum, the sum of its squares, its largest or
// smallest element, or the index of its largest, the first of equal ones.
module row_reduce #(
    parameter int LANES   = 4,
    parameter int SIZE    = 10,
    parameter int IW      = 8,   // bits of an element
    parameter int ISIGNED = 1,
    parameter int OP      = 0,   // 0: sum; 1: squares; 2: largest; 3: smallest; 4: its index
    parameter int OW      = 12   // bits of the result, which it fits
) (
    input  logic                clk,
    input  logic                rst,
    input  logic [LANES*IW-1:0] s_data,
    input  logic                s_valid,
    output logic                s_ready,
    output logic [      OW-1:0] m_data,
    output logic                m_valid,
    input  logic                m_ready
);
  localparam int BEATS = (SIZE + LANES - 1) / LANES;
  localparam int LAST = SIZE - (BEATS - 1) * LANES;  // elements of the last beat
  localparam int BW = BEATS > 1 ? $clog2(BEATS) : 1;
  localparam int XW = IW + 1;  // with a sign
  localparam int AW = OW + 1 > XW ? OW + 1 : XW;
  localparam int NW = $clog2(SIZE + LANES + 1);

  logic [BW-1:0] beat;
  logic [NW-1:0] place;  // of the beat's first element
  logic is_last, first1, last1, ready1, ready2, valid1, take;
  assign is_last = beat == BW'(BEATS - 1);
  assign ready2  = !m_valid || m_ready;
  assign ready1  = !valid1 || ready2;
  assign s_ready = ready1;
  assign take    = s_valid && s_ready;
  always_ff @(posedge clk) begin
    if (take) begin
      beat   <= is_last ? BW'(0) : beat + 1'b1;
      place  <= is_last ? NW'(0) : place + NW'(LANES);
      first1 <= beat == BW'(0);
      last1  <= is_last;
    end
    if (ready1) valid1 <= take;
    if (ready2) m_valid <= valid1 && last1;
    if (rst) begin
      beat    <= BW'(0);
      place   <= NW'(0);
      valid1  <= 1'b0;
      m_valid <= 1'b0;
    end
  end

  // Stage 1: the beat. Lanes behind the end of the vector are left out.
  logic signed [AW-1:0] part, part1, x;
  logic [NW-1:0] index, index1;
  always_comb begin
    part  = AW'(0);
    index = NW'(0);
    x     = AW'(0);
    for (int p = 0; p < LANES; p++) begin
      x = AW'($signed({ISIGNED != 0 && s_data[p*IW+IW-1], s_data[p*IW+:IW]}));
      if (!is_last || p < LAST) begin
        if (OP == 0) part = part + x;
        else if (OP == 1) part = part + x * x;
        else if (p == 0 || (OP == 3 ? x < part : x > part)) begin
          part  = x;
          index = NW'(p);
        end
      end
    end
  end
  always_ff @(posedge clk)
    if (take) begin
      part1  <= part;
      index1 <= place + index;
    end

  // Stage 2: the vector.
  logic signed [AW-1:0] all, all_next;
  logic [NW-1:0] where, where_next;
  logic wins;
  assign wins       = first1 || (OP == 3 ? part1 < all : part1 > all);
  assign all_next   = OP < 2 ? (first1 ? part1 : all + part1) : wins ? part1 : all;
  assign where_next = wins ? index1 : where;
  always_ff @(posedge clk)
    if (ready2 && valid1) begin
      all   <= all_next;
      where <= where_next;
    end
  generate
    if (OP == 4) begin : position
      assign m_data = OW'(where);
    end else begin : value
      assign m_data = all[OW-1:0];
      logic unused;
      assign unused = &{1'b0, where};
    end
  endgenerate
  logic unused;
  assign unused = &{1'b0, all};
endmodule
