// y = requant(a * AM op b * BM) element by element. With ROW > 0, b is one element for
// ROW beats of a: it is taken with the first of them and kept for the others.
module element_wise #(
    parameter int LANES      = 4,
    parameter int AW         = 8,  // bits of an element of a
    parameter int ASIGNED    = 1,
    parameter int AM         = 1,  // 1 in products
    parameter int BW         = 8,  // bits of an element of b
    parameter int BSIGNED    = 1,
    parameter int BM         = 1,  // 1 in products
    parameter int ROW        = 0,  // beats of a for an element of b; 0: b has as many elements as a
    parameter int OP         = 0,  // 0: a + b; 1: a - b; 2: a * b; 3: the larger
    parameter int XW         = 9,  // bits of what is rounded, two's complement
    parameter int MW         = 0,  // bits of the multiplier of requant; 0: none
    parameter int MULTIPLIER = 1,
    parameter int SHIFT      = 0,  // as in requant, like the four that follow
    parameter int OW         = 8,
    parameter int OSIGNED    = 1,
    parameter int SYMMETRIC  = 0,
    parameter int MODE       = 0
) (
    input  logic                              clk,
    input  logic                              rst,
    input  logic [              LANES*AW-1:0] s0_data,
    input  logic                              s0_valid,
    output logic                              s0_ready,
    input  logic [(ROW>0 ? 1 : LANES)*BW-1:0] s1_data,
    input  logic                              s1_valid,
    output logic                              s1_ready,
    output logic [              LANES*OW-1:0] m_data,
    output logic                              m_valid,
    input  logic                              m_ready
);
  localparam int ML = MW > 0 ? MW : 1;

  logic ready1, ready2, valid1, take_b;
  assign ready2   = !m_valid || m_ready;
  assign ready1   = !valid1 || ready2;
  assign s0_ready = ready1 && (!take_b || s1_valid);
  assign s1_ready = ready1 && take_b && s0_valid;
  always_ff @(posedge clk) begin
    if (ready1) valid1 <= s0_valid && s0_ready;
    if (ready2) m_valid <= valid1;
    if (rst) begin
      valid1  <= 1'b0;
      m_valid <= 1'b0;
    end
  end

  logic [LANES*BW-1:0] b;
  generate
    if (ROW > 1) begin : broadcast
      localparam int RW = $clog2(ROW);
      logic [RW-1:0] beat;
      logic [BW-1:0] kept;
      assign take_b = beat == RW'(0);
      assign b      = {LANES{take_b ? s1_data : kept}};
      always_ff @(posedge clk) begin
        if (s0_valid && s0_ready) beat <= beat == RW'(ROW - 1) ? RW'(0) : beat + 1'b1;
        if (s1_valid && s1_ready) kept <= s1_data;
        if (rst) beat <= RW'(0);
      end
    end else if (ROW == 1) begin : one_beat
      assign take_b = 1'b1;
      assign b      = {LANES{s1_data}};
    end else begin : same_shape
      assign take_b = 1'b1;
      assign b      = s1_data;
    end
    for (genvar p = 0; p < LANES; p++) begin : lane
      logic signed [AW:0] a0;
      logic signed [BW:0] b0;
      logic signed [XW-1:0] ax, bx, x0, x1;
      logic [OW-1:0] y1;
      assign a0 = {ASIGNED != 0 && s0_data[p*AW+AW-1], s0_data[p*AW+:AW]};
      assign b0 = {BSIGNED != 0 && b[p*BW+BW-1], b[p*BW+:BW]};
      assign ax = XW'(a0) * XW'(AM);
      assign bx = XW'(b0) * XW'(BM);
      if (OP == 0) begin : sum
        assign x0 = ax + bx;
      end else if (OP == 1) begin : difference
        assign x0 = ax - bx;
      end else if (OP == 2) begin : product
        assign x0 = ax * bx;
      end else begin : larger
        assign x0 = ax > bx ? ax : bx;
      end
      requant #(
          .IW(XW),
          .MW(MW),
          .SHIFT(SHIFT),
          .OW(OW),
          .SIGNED(OSIGNED),
          .SYMMETRIC(SYMMETRIC),
          .MODE(MODE)
      ) round (
          .x(x1),
          .multiplier(ML'(MULTIPLIER)),
          .y(y1)
      );
      always_ff @(posedge clk) begin
        if (ready1) x1 <= x0;
        if (ready2) m_data[p*OW+:OW] <= y1;
      end
    end
  endgenerate
endmodule
