// FIFO of DEPTH beats. A beat leaves one cycle after it entered at the earliest; with BLOCK, where
// block RAM holds all but the last beat, after two. `s_ready` does not look at `m_ready`.
module stream_fifo #(
    parameter int WIDTH = 8,  // bits of a beat
    parameter int DEPTH = 2,  // beats, at least 1, with BLOCK at least 2
    parameter int BLOCK = 0   // 1: in block RAM
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
  localparam int WORDS = BLOCK != 0 ? DEPTH - 1 : DEPTH;  // in the memory
  localparam int AW = WORDS > 1 ? $clog2(WORDS) : 1;
  localparam int CW = $clog2(WORDS + 1);

  logic [AW-1:0] head, tail;
  logic [CW-1:0] count;
  logic          push, pop;

  assign s_ready = count != CW'(WORDS);
  assign push    = s_valid && s_ready;
  always_ff @(posedge clk) begin
    if (push) tail <= tail == AW'(WORDS - 1) ? AW'(0) : tail + 1'b1;
    if (pop) head <= head == AW'(WORDS - 1) ? AW'(0) : head + 1'b1;
    if (push && !pop) count <= count + 1'b1;
    if (pop && !push) count <= count - 1'b1;
    if (rst) begin
      head  <= AW'(0);
      tail  <= AW'(0);
      count <= CW'(0);
    end
  end

  generate
    if (BLOCK != 0) begin : in_block_ram
      (* ram_style = "block" *) logic [WIDTH-1:0] words[0:WORDS-1];
      assign pop = count != CW'(0) && (!m_valid || m_ready);
      always_ff @(posedge clk) begin
        if (push) words[tail] <= s_data;
        if (pop) m_data <= words[head];
        if (!m_valid || m_ready) m_valid <= pop;
        if (rst) m_valid <= 1'b0;
      end
    end else begin : at_hand
      assign m_valid = count != CW'(0);
      assign pop     = m_valid && m_ready;
      if (WORDS > 4) begin : in_luts
        (* ram_style = "distributed" *) logic [WIDTH-1:0] words[0:WORDS-1];
        assign m_data = words[head];
        always_ff @(posedge clk) if (push) words[tail] <= s_data;
      end else begin : in_registers
        logic [WIDTH-1:0] words[0:WORDS-1];
        assign m_data = words[head];
        always_ff @(posedge clk) if (push) words[tail] <= s_data;
      end
    end
  endgenerate
endmodule
