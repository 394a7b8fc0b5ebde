// One wide beat of a beat from each of two streams, the first in the low bits.
module stream_join #(
    parameter int WIDTH0 = 8,  // bits of a beat of the first stream
    parameter int WIDTH1 = 8   // and of the second
) (
    input  logic                     clk,
    input  logic                     rst,
    input  logic [       WIDTH0-1:0] s0_data,
    input  logic                     s0_valid,
    output logic                     s0_ready,
    input  logic [       WIDTH1-1:0] s1_data,
    input  logic                     s1_valid,
    output logic                     s1_ready,
    output logic [WIDTH0+WIDTH1-1:0] m_data,
    output logic                     m_valid,
    input  logic                     m_ready
);
  logic free;

  assign free     = !m_valid || m_ready;
  assign s0_ready = free && s1_valid;
  assign s1_ready = free && s0_valid;
  always_ff @(posedge clk) begin
    if (free) begin
      m_data  <= {s1_data, s0_data};
      m_valid <= s0_valid && s1_valid;
    end
    if (rst) m_valid <= 1'b0;
  end
endmodule
