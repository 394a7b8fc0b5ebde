// Scores whose place in their row is below the frame's length as they are, all others the lowest
// number of y. One length for VECTORS rows, taken with their first beat.
module length_mask #(
    parameter int LANES   = 4,
    parameter int BEATS   = 2,   // of a row
    parameter int VECTORS = 4,   // of a frame
    parameter int IW      = 8,   // bits of a score
    parameter int ISIGNED = 1,
    parameter int LW      = 8,   // bits of a length
    parameter int OW      = 10   // bits of y, two's complement, more than those of a score
) (
    input  logic                clk,
    input  logic                rst,
    input  logic [LANES*IW-1:0] s0_data,
    input  logic                s0_valid,
    output logic                s0_ready,
    input  logic [      LW-1:0] s1_data,
    input  logic                s1_valid,
    output logic                s1_ready,
    output logic [LANES*OW-1:0] m_data,
    output logic                m_valid,
    input  logic                m_ready
);
  localparam int BW = BEATS > 1 ? $clog2(BEATS) : 1;
  localparam int PW = $clog2(BEATS * LANES + 1);
  localparam int VW = VECTORS > 1 ? $clog2(VECTORS) : 1;

  logic [BW-1:0] beat;
  logic [PW-1:0] place;  // of the beat's first score
  logic [VW-1:0] vector;
  logic [LW-1:0] kept, length;
  logic free, is_first, take;
  assign is_first = beat == BW'(0) && vector == VW'(0);
  assign free     = !m_valid || m_ready;
  assign s0_ready = free && (!is_first || s1_valid);
  assign s1_ready = free && is_first && s0_valid;
  assign take     = s0_valid && s0_ready;
  assign length   = is_first ? s1_data : kept;
  always_ff @(posedge clk) begin
    if (take) begin
      beat  <= beat == BW'(BEATS - 1) ? BW'(0) : beat + 1'b1;
      place <= beat == BW'(BEATS - 1) ? PW'(0) : place + PW'(LANES);
      if (beat == BW'(BEATS - 1)) vector <= vector == VW'(VECTORS - 1) ? VW'(0) : vector + 1'b1;
      if (is_first) kept <= s1_data;
    end
    if (free) m_valid <= take;
    if (rst) begin
      beat    <= BW'(0);
      place   <= PW'(0);
      vector  <= VW'(0);
      m_valid <= 1'b0;
    end
  end
  generate
    for (genvar p = 0; p < LANES; p++) begin : lane
      logic signed [IW:0] x;
      assign x = {ISIGNED != 0 && s0_data[p*IW+IW-1], s0_data[p*IW+:IW]};
      always_ff @(posedge clk)
        if (free)
          m_data[p*OW+:OW] <= 32'(place) + p < 32'(length) ? OW'(x) : {1'b1, {(OW - 1) {1'b0}}};
    end
  endgenerate
endmodule
