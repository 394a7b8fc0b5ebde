// The row of TABLE that each token names, in BEATS beats.
module embedding #(
    parameter int WIDTH = 32,   // bits of a beat
    parameter int BEATS = 2,    // of a row
    parameter int ROWS  = 256,  // of the table
    parameter int IW    = 8,    // bits of a token, less than ROWS
    parameter int BLOCK = 0,    // 1: in block RAM
    parameter     TABLE = ""
) (
    input  logic             clk,
    input  logic             rst,
    input  logic [   IW-1:0] s_data,
    input  logic             s_valid,
    output logic             s_ready,
    output logic [WIDTH-1:0] m_data,
    output logic             m_valid,
    input  logic             m_ready
);
  localparam int WORDS = BEATS * ROWS;
  localparam int AW = WORDS > 1 ? $clog2(WORDS) : 1;
  localparam int BW = BEATS > 1 ? $clog2(BEATS) : 1;

  logic [BW-1:0] beat;
  logic [IW-1:0] kept, token;
  logic free, is_first, read;
  assign is_first = beat == BW'(0);
  assign free     = !m_valid || m_ready;
  assign s_ready  = free && is_first;
  assign read     = free && (!is_first || s_valid);
  assign token    = is_first ? s_data : kept;
  always_ff @(posedge clk) begin
    if (read) beat <= beat == BW'(BEATS - 1) ? BW'(0) : beat + 1'b1;
    if (read && is_first) kept <= s_data;
    if (free) m_valid <= read;
    if (rst) begin
      beat    <= BW'(0);
      m_valid <= 1'b0;
    end
  end
  rom #(
      .WIDTH(WIDTH),
      .DEPTH(WORDS),
      .FILE (TABLE),
      .BLOCK(BLOCK)
  ) rows (
      .clk,
      .enable (read),
      .address(AW'(32'(token) * BEATS + 32'(beat))),
      .data   (m_data)
  );
endmodule
