// y = requant(start + sum of products of PI pairs), over the beats of a sum. Three registers: the
// sum of a beat, the sum of all beats, and y. Each takes what stands before it when it is told to.
module product_lane #(
    parameter int PI        = 4,   // products a cycle
    parameter int LAST      = 4,   // of the last beat
    parameter int XW        = 8,   // bits of one factor
    parameter int XSIGNED   = 1,
    parameter int WW        = 8,   // bits of the other
    parameter int WSIGNED   = 1,
    parameter int AW        = 20,  // bits of a sum; must hold every result, not every partial sum
    parameter int MW        = 0,   // as in requant, like the five that follow
    parameter int SHIFT     = 3,
    parameter int OW        = 8,
    parameter int OSIGNED   = 1,
    parameter int SYMMETRIC = 0,
    parameter int MODE      = 0
) (
    input  logic                              clk,
    input  logic        [          PI*XW-1:0] x,
    input  logic        [          PI*WW-1:0] w,
    input  logic                              is_last,  // x and w are the last of a sum
    input  logic                              multiply,
    input  logic signed [             AW-1:0] start,
    input  logic                              is_first,  // the beat that is added is a sum's first
    input  logic                              add,
    input  logic        [(MW>0?MW:1) - 1:0] multiplier,
    input  logic                              round,
    output logic        [             OW-1:0] y
);
  logic signed [AW-1:0] products, beat, sum;
  logic [OW-1:0] rounded;
  always_comb begin
    products = AW'(0);
    for (int i = 0; i < PI; i++)
      // What stands behind the end of a vector is nothing to multiply with.
      if (i < LAST || !is_last)
        products = products + AW'($signed({XSIGNED != 0 && x[i*XW+XW-1], x[i*XW+:XW]})) *
            AW'($signed({WSIGNED != 0 && w[i*WW+WW-1], w[i*WW+:WW]}));
  end
  always_ff @(posedge clk) begin
    if (multiply) beat <= products;
    if (add) sum <= (is_first ? start : sum) + beat;
    if (round) y <= rounded;
  end
  requant #(
      .IW(AW),
      .MW(MW),
      .SHIFT(SHIFT),
      .OW(OW),
      .SIGNED(OSIGNED),
      .SYMMETRIC(SYMMETRIC),
      .MODE(MODE)
  ) requantized (
      .x(sum),
      .multiplier,
      .y(rounded)
  );
endmodule
