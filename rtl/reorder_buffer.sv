// Beats in another order, or several times: the COUNT0 * COUNT1 * COUNT2 beats at i * STRIDE0 + j *
// STRIDE1 + k * STRIDE2 of BEATS that came in. Two frames are kept: one is written while the other
// is read.
module reorder_buffer #(
    parameter int WIDTH   = 8,  // bits of a beat
    parameter int BEATS   = 6,
    parameter int COUNT0  = 1,  // the slowest
    parameter int COUNT1  = 2,
    parameter int COUNT2  = 3,
    parameter int STRIDE0 = 0,
    parameter int STRIDE1 = 1,
    parameter int STRIDE2 = 2,
    parameter int BLOCK   = 0   // 1: in block RAM
) (
    input  logic             clk,
    input  logic             rst,
    input  logic [WIDTH-1:0] s_data,
    input  logic             s_valid,
    output logic             s_ready,
    output logic [WIDTH-1:0] m_data,
    output logic             m_valid,
    input  logic             m_ready
);
  localparam int AW = BEATS > 1 ? $clog2(BEATS) : 1;
  localparam int C0 = COUNT0 > 1 ? $clog2(COUNT0) : 1;
  localparam int C1 = COUNT1 > 1 ? $clog2(COUNT1) : 1;
  localparam int C2 = COUNT2 > 1 ? $clog2(COUNT2) : 1;

  logic [1:0] full;  // frames that wait to be read
  logic bank_in, bank_out;
  logic [AW-1:0] address_in, address_out;
  logic [AW-1:0] start0, start1;  // where the loops over j and over k began
  logic push, last_in, free, read, last0, last1, last2;
  logic [C0-1:0] i;
  logic [C1-1:0] j;
  logic [C2-1:0] k;
  assign s_ready     = full != 2'd2;
  assign push        = s_valid && s_ready;
  assign last_in     = address_in == AW'(BEATS - 1);
  assign free        = !m_valid || m_ready;
  assign read        = free && full != 2'd0;
  assign last0       = i == C0'(COUNT0 - 1);
  assign last1       = j == C1'(COUNT1 - 1);
  assign last2       = k == C2'(COUNT2 - 1);

  logic filled, emptied;
  assign filled  = push && last_in;
  assign emptied = read && last0 && last1 && last2;
  always_ff @(posedge clk) begin
    if (push) address_in <= last_in ? AW'(0) : address_in + 1'b1;
    if (filled) bank_in <= !bank_in;
    if (read) begin
      k <= last2 ? C2'(0) : k + 1'b1;
      if (last2) j <= last1 ? C1'(0) : j + 1'b1;
      if (last2 && last1) i <= last0 ? C0'(0) : i + 1'b1;
      if (!last2) begin
        address_out <= address_out + AW'(STRIDE2);
      end else if (!last1) begin
        start1      <= start1 + AW'(STRIDE1);
        address_out <= start1 + AW'(STRIDE1);
      end else begin
        start0      <= last0 ? AW'(0) : start0 + AW'(STRIDE0);
        start1      <= last0 ? AW'(0) : start0 + AW'(STRIDE0);
        address_out <= last0 ? AW'(0) : start0 + AW'(STRIDE0);
      end
    end
    if (emptied) bank_out <= !bank_out;
    if (filled && !emptied) full <= full + 1'b1;
    if (emptied && !filled) full <= full - 1'b1;
    if (free) m_valid <= read;
    if (rst) begin
      address_in  <= AW'(0);
      address_out <= AW'(0);
      start0      <= AW'(0);
      start1      <= AW'(0);
      bank_in    <= 1'b0;
      bank_out   <= 1'b0;
      full       <= 2'd0;
      i          <= C0'(0);
      j          <= C1'(0);
      k          <= C2'(0);
      m_valid    <= 1'b0;
    end
  end

  localparam int MW = $clog2(2 * BEATS);
  logic [MW-1:0] write_at, read_at;
  assign write_at = bank_in ? MW'(address_in) + MW'(BEATS) : MW'(address_in);
  assign read_at  = bank_out ? MW'(address_out) + MW'(BEATS) : MW'(address_out);
  ram #(
      .WIDTH(WIDTH),
      .DEPTH(2 * BEATS),
      .BLOCK(BLOCK)
  ) words (
      .clk,
      .write   (push),
      .write_at,
      .written (s_data),
      .read,
      .read_at,
      .data    (m_data)
  );
endmodule
