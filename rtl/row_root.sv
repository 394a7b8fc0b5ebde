// r = the integer square root of (SIZE * q - s^2 + EPSILON) * 4^FRACTION, 1 where it is 0: SIZE
// times the standard deviation of a row with the sum s and the sum of squares q. One bit of the
// root a cycle; a row takes OW + 3 cycles.
module row_root #(
    parameter int SW       = 12,  // bits of s
    parameter int SSIGNED  = 1,
    parameter int QW       = 20,  // bits of q, not negative
    parameter int SIZE     = 4,
    parameter     EPSILON  = 0,
    parameter int VW       = 24,  // bits of SIZE * q - s^2 + EPSILON
    parameter int FRACTION = 0,
    parameter int OW       = 12   // bits of r: half of VW + 2 * FRACTION, rounded up
) (
    input  logic          clk,
    input  logic          rst,
    input  logic [SW-1:0] s0_data,
    input  logic          s0_valid,
    output logic          s0_ready,
    input  logic [QW-1:0] s1_data,
    input  logic          s1_valid,
    output logic          s1_ready,
    output logic [OW-1:0] m_data,
    output logic          m_valid,
    input  logic          m_ready
);
  localparam int CW = $clog2(OW + 4);
  localparam int RW = 2 * OW;  // bits of the radicand

  // Step 0 takes s and q, step 1 subtracts, OW steps find the root, the last gives it.
  logic [CW-1:0] step;
  logic free, is_loading, is_last, take;
  assign free       = !m_valid || m_ready;
  assign is_loading = step == CW'(0);
  assign is_last    = step == CW'(OW + 2);
  assign s0_ready   = free && is_loading && s1_valid;
  assign s1_ready   = free && is_loading && s0_valid;
  assign take       = s0_valid && s0_ready;

  logic signed [VW-1:0] sum;
  logic [VW-1:0] scaled, square, variance;
  assign sum = VW'($signed({SSIGNED != 0 && s0_data[SW-1], s0_data}));
  logic [RW-1:0] radicand;        // bits to come, from the highest
  logic [OW+1:0] rest, trial;
  logic [OW-1:0] root;
  logic [OW+1:0] rest_in;
  assign variance = scaled - square + VW'(EPSILON);
  assign rest_in  = {rest[OW-1:0], radicand[RW-1:RW-2]};
  assign trial    = {root, 2'b01};
  always_ff @(posedge clk) begin
    if (free) begin
      if (take || !is_loading) step <= is_last ? CW'(0) : step + 1'b1;
      m_valid <= is_last;
      if (is_loading) begin
        scaled <= VW'(s1_data) * VW'(SIZE);
        square <= sum * sum;
      end else if (step == CW'(1)) begin
        radicand <= RW'(variance) << (2 * FRACTION);
        rest     <= {(OW + 2) {1'b0}};
        root     <= OW'(0);
      end else if (!is_last) begin
        radicand <= radicand << 2;
        rest     <= rest_in >= trial ? rest_in - trial : rest_in;
        root     <= {root[OW-2:0], rest_in >= trial};
      end else begin
        m_data <= root == OW'(0) ? OW'(1) : root;
      end
    end
    if (rst) begin
      step    <= CW'(0);
      m_valid <= 1'b0;
    end
  end
  logic unused;
  assign unused = &{1'b0, rest};
endmodule
