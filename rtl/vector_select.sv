// One of every VECTORS vectors of BEATS beats; the others are taken and forgotten.
module vector_select #(
    parameter int WIDTH   = 32,  // bits of a beat
    parameter int BEATS   = 4,
    parameter int VECTORS = 8,
    parameter int INDEX   = 0    // of the vector that passes
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
  localparam int COUNT = BEATS * VECTORS;
  localparam int CW = COUNT > 1 ? $clog2(COUNT) : 1;

  logic [CW-1:0] beat;  // of all vectors
  logic keep;
  generate
    if (INDEX == 0) assign keep = (CW + 1)'(beat) < (CW + 1)'(BEATS);
    else
      assign keep = (CW + 1)'(beat) >= (CW + 1)'(INDEX * BEATS) &&
                    (CW + 1)'(beat) < (CW + 1)'((INDEX + 1) * BEATS);
  endgenerate
  assign s_ready = !m_valid || m_ready;
  always_ff @(posedge clk) begin
    if (s_ready) begin
      m_valid <= s_valid && keep;
      m_data  <= s_data;
    end
    if (s_ready && s_valid) beat <= beat == CW'(COUNT - 1) ? CW'(0) : beat + 1'b1;
    if (rst) begin
      beat    <= CW'(0);
      m_valid <= 1'b0;
    end
  end
endmodule
