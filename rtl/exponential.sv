// e = 32767 * 2^(-steps/64), steps = ((m - x) * MULTIPLIER + 2^(SHIFT-1)) >> SHIFT, where m is one
// element for ROW beats of x and none of them is larger. TABLE holds the 64 powers with 15 bits; a
// half is rounded up, from 2^-16 on e is 0.
module exponential #(
    parameter int LANES      = 4,
    parameter int ROW        = 2,   // beats of x for one m
    parameter int IW         = 16,  // bits of x and m
    parameter int ISIGNED    = 1,
    parameter int MW         = 17,  // bits of the multiplier
    parameter int MULTIPLIER = 1,
    parameter int SHIFT      = 1,   // at least 1
    parameter     TABLE      = ""
) (
    input  logic                clk,
    input  logic                rst,
    input  logic [LANES*IW-1:0] s0_data,
    input  logic                s0_valid,
    output logic                s0_ready,
    input  logic [      IW-1:0] s1_data,
    input  logic                s1_valid,
    output logic                s1_ready,
    output logic [LANES*15-1:0] m_data,
    output logic                m_valid,
    input  logic                m_ready
);
  localparam int RW = ROW > 1 ? $clog2(ROW) : 1;
  localparam int DW = IW + 1;                                // bits of a distance
  localparam int PW = DW + MW + 1 > SHIFT + 11 ? DW + MW + 1 : SHIFT + 11;

  logic [RW-1:0] beat;
  logic take_m, take;
  logic ready1, ready2, ready3, ready4, valid1, valid2, valid3;
  assign take_m   = beat == RW'(0);
  assign ready4   = !m_valid || m_ready;
  assign ready3   = !valid3 || ready4;
  assign ready2   = !valid2 || ready3;
  assign ready1   = !valid1 || ready2;
  assign s0_ready = ready1 && (!take_m || s1_valid);
  assign s1_ready = ready1 && take_m && s0_valid;
  assign take     = s0_valid && s0_ready;
  logic [IW-1:0] kept, m;
  assign m = take_m ? s1_data : kept;
  always_ff @(posedge clk) begin
    if (take) beat <= beat == RW'(ROW - 1) ? RW'(0) : beat + 1'b1;
    if (take && take_m) kept <= s1_data;
    if (ready1) valid1 <= take;
    if (ready2) valid2 <= valid1;
    if (ready3) valid3 <= valid2;
    if (ready4) m_valid <= valid3;
    if (rst) begin
      beat    <= RW'(0);
      valid1  <= 1'b0;
      valid2  <= 1'b0;
      valid3  <= 1'b0;
      m_valid <= 1'b0;
    end
  end

  generate
    for (genvar p = 0; p < LANES; p++) begin : lane
      logic [DW-1:0] distance1;
      logic [PW-1:0] product;
      logic [PW-SHIFT-1:0] steps;
      logic [9:0] steps2;
      logic [3:0] whole3;
      logic zero2, zero3;
      logic [14:0] entry3;
      logic [15:0] half3, rounded3;
      assign product = PW'(distance1) * PW'(MULTIPLIER) + (PW'(1) << (SHIFT - 1));
      assign steps   = product[PW-1:SHIFT];
      always_ff @(posedge clk) begin
        if (ready1)
          distance1 <= {ISIGNED != 0 && m[IW-1], m} -
              {ISIGNED != 0 && s0_data[p*IW+IW-1], s0_data[p*IW+:IW]};
        if (ready2) begin
          steps2 <= steps[9:0];
          zero2  <= |steps[PW-SHIFT-1:10];
        end
        if (ready3) begin
          whole3 <= steps2[9:6];
          zero3  <= zero2;
        end
        if (ready4) m_data[p*15+:15] <= zero3 ? 15'd0 : rounded3[14:0];
      end
      rom #(
          .WIDTH(15),
          .DEPTH(64),
          .FILE (TABLE)
      ) powers (
          .clk,
          .enable (ready3),
          .address(steps2[5:0]),
          .data   (entry3)
      );
      assign half3    = whole3 == 4'd0 ? 16'd0 : 16'd1 << (whole3 - 4'd1);
      assign rounded3 = ({1'b0, entry3} + half3) >> whole3;
      logic unused;
      assign unused = &{1'b0, product[SHIFT-1:0], rounded3[15]};
    end
  endgenerate
endmodule
