// y = x * multiplier * 2^-SHIFT, rounded by MODE and saturated to y's range. No register: it stands
// inside the blocks that compute wide values, one a lane, and nothing else rounds.
module requant #(
    parameter int IW        = 16,  // bits of x, two's complement
    parameter int MW        = 0,   // bits of the multiplier, which is not negative; 0: none
    parameter int SHIFT     = 4,   // negative: to the left
    parameter int OW        = 8,   // bits of y
    parameter int SIGNED    = 1,   // 1: y is two's complement; 0: y is not negative
    parameter int SYMMETRIC = 0,   // 1: the most negative y is left out
    parameter int MODE      = 0    // 0: nearest, ties to even; 1: floor; 2: nearest, ties up
) (
    input  logic signed [            IW-1:0] x,
    input  logic        [(MW>0?MW:1) - 1:0] multiplier,
    output logic        [            OW-1:0] y
);
  // Wide enough for the product, for y with two bits to spare and for the bits that are dropped.
  localparam int DOWN = SHIFT > 0 ? SHIFT : 0;
  localparam int UP = SHIFT < 0 ? -SHIFT : 0;
  localparam int NEED = IW + MW + UP + 1;
  localparam int PW = NEED > DOWN + OW + 2 ? NEED : DOWN + OW + 2;
  localparam int RW = PW - DOWN;
  localparam [OW-1:0] HIGH = SIGNED != 0 ? {1'b0, {(OW - 1) {1'b1}}} : {OW{1'b1}};
  localparam [OW-1:0] LOWEST = {1'b1, {(OW - 1) {1'b0}}};
  localparam [OW-1:0] LOW = SIGNED == 0 ? OW'(0) : SYMMETRIC != 0 ? LOWEST + OW'(1) : LOWEST;

  logic signed [PW-1:0] product;
  logic signed [RW-1:0] floor, rounded;
  logic                 up;

  generate
    if (MW > 0) begin : scaled
      logic signed [MW:0] factor;
      assign factor  = {1'b0, multiplier};
      assign product = (PW'(x) * PW'(factor)) <<< UP;
    end else begin : shifted
      assign product = PW'(x) <<< UP;
      logic unused;
      assign unused = &{1'b0, multiplier};
    end
    if (DOWN == 0 || MODE == 1) begin : truncated
      assign up = 1'b0;
    end else if (MODE == 2) begin : half_up
      assign up = product[DOWN-1];
    end else if (DOWN == 1) begin : half_even_of_one
      assign up = product[0] && product[1];
    end else begin : half_even
      assign up = product[DOWN-1] && (product[DOWN] || |product[DOWN-2:0]);
    end
  endgenerate
  assign floor   = product[PW-1:DOWN];
  assign rounded = floor + RW'({1'b0, up});

  // Too large or too small: the bits above those of y are not all copies of its sign, or of 0.
  // Comparing them takes no carries, as comparing with the ends of y's range would.
  localparam int TOP = SIGNED != 0 ? OW - 1 : OW;
  logic is_negative, is_outside;
  assign is_negative = rounded[RW-1];
  generate
    if (SIGNED == 0) begin : positive
      assign is_outside = |rounded[RW-1:TOP];
    end else if (SYMMETRIC == 0) begin : whole
      assign is_outside = !(&rounded[RW-1:TOP]) && |rounded[RW-1:TOP];
    end else begin : symmetric
      assign is_outside = is_negative ? !(&rounded[RW-1:TOP]) || rounded[OW-2:0] == 0 : |rounded[RW-1:TOP];
    end
  endgenerate
  assign y = !is_outside ? rounded[OW-1:0] : is_negative ? LOW : HIGH;
endmodule
