// Packs vectors of SIZE elements, FROM a beat, into TO a beat. The last beat of a vector may be
// partly filled on either side; a vector begins with a beat of its own. Passes the wider side's
// beats as fast as the narrower side can move them: the store holds FROM + TO - gcd elements.
module width_converter #(
    parameter int WIDTH = 8,  // bits of an element
    parameter int SIZE  = 6,  // elements of a vector
    parameter int FROM  = 2,  // elements of an input beat
    parameter int TO    = 3   // elements of an output beat
) (
    input  logic                  clk,
    input  logic                  rst,
    input  logic [FROM*WIDTH-1:0] s_data,
    input  logic                  s_valid,
    output logic                  s_ready,
    output logic [  TO*WIDTH-1:0] m_data,
    output logic                  m_valid,
    input  logic                  m_ready
);
  function integer gcd(input integer a, input integer b);
    integer x, y, t;
    begin
      x = a;
      y = b;
      while (y != 0) begin
        t = x % y;
        x = y;
        y = t;
      end
      gcd = x;
    end
  endfunction

  localparam int UNIT = gcd(gcd(FROM, TO), SIZE);
  localparam int CAP = FROM + TO - gcd(FROM, TO);
  localparam int LAST = SIZE - (SIZE - 1) / FROM * FROM;  // elements of a vector's last input beat
  localparam int CW = $clog2(CAP + FROM + 1);
  localparam int SW = $clog2(SIZE + FROM + TO + 1);
  localparam int STORE = CAP * WIDTH;
  localparam int PLACES = CAP / UNIT;  // where a beat may be put

  logic [STORE-1:0] store, kept, placed;
  logic [CW-1:0] fill, left;  // elements in the store, now and after this cycle's output
  logic [SW-1:0] taken, given;  // elements of this vector: accepted, and given out
  logic all_taken, is_last_in, is_last_out, push, pop;

  assign all_taken   = taken == SW'(SIZE);
  assign is_last_in  = taken + SW'(FROM) >= SW'(SIZE);
  assign is_last_out = given + SW'(TO) >= SW'(SIZE);
  assign m_valid     = fill >= CW'(TO) || (all_taken && fill != CW'(0));
  assign m_data      = store[TO*WIDTH-1:0];
  assign pop         = m_valid && m_ready;
  assign left        = !pop ? fill : fill >= CW'(TO) ? fill - CW'(TO) : CW'(0);
  // A vector that was taken whole is given out whole before the next begins.
  assign s_ready     = all_taken ? pop && is_last_out
                     : is_last_in ? left <= CW'(CAP - LAST) : left <= CW'(CAP - FROM);
  assign push        = s_valid && s_ready;
  assign kept        = pop ? store >> (TO * WIDTH) : store;

  // The lanes of the last beat that hold nothing are cleared, because beats are put together by or.
  logic [STORE-1:0] beat;
  logic             is_short;
  assign is_short = LAST != FROM && (all_taken ? SIZE < FROM : is_last_in);
  assign beat = is_short ? {{(STORE - LAST * WIDTH) {1'b0}}, s_data[LAST*WIDTH-1:0]}
                         : STORE'(s_data);
  always_comb begin
    placed = STORE'(0);
    for (int p = 0; p < PLACES; p++) if (left == CW'(p * UNIT)) placed = beat << (p * UNIT * WIDTH);
  end

  logic [SW-1:0] taken_before, given_before;  // without this cycle's transfers
  assign taken_before = pop && is_last_out && all_taken ? SW'(0) : taken;
  assign given_before = pop && is_last_out ? SW'(0) : pop ? given + SW'(TO) : given;
  always_ff @(posedge clk) begin
    store <= push ? kept | placed : kept;
    fill  <= !push ? left : is_short ? left + CW'(LAST) : left + CW'(FROM);
    taken <= !push ? taken_before
           : taken_before + SW'(FROM) >= SW'(SIZE) ? SW'(SIZE) : taken_before + SW'(FROM);
    given <= given_before;
    if (rst) begin
      store <= STORE'(0);
      fill  <= CW'(0);
      taken <= SW'(0);
      given <= SW'(0);
    end
  end
endmodule
