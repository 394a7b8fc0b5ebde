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
  localparam int INS = (SIZE + FROM - 1) / FROM;  // beats of a vector that comes in
  localparam int OUTS = (SIZE + TO - 1) / TO;     // and of one that goes out
  localparam int LAST = SIZE - (INS - 1) * FROM;  // elements of a vector's last input beat
  localparam int IW = $clog2(INS + 1);
  localparam int OW = OUTS > 1 ? $clog2(OUTS) : 1;
  localparam int STORE = CAP * WIDTH;
  // In units, in which everything comes and goes.
  localparam int FULL = CAP / UNIT;
  localparam int WHOLE = FROM / UNIT;
  localparam int SHORT = LAST / UNIT;
  localparam int GONE = TO / UNIT;

  logic [STORE-1:0] store, kept, placed;
  // How many units are in the store, one bit for each number: now, behind this cycle's output, and
  // behind its input. Numbers that are compared would take carries.
  logic [FULL:0] fill, left, fill_next;
  logic [IW-1:0] taken, taken_left, taken_next;  // beats of this vector that came in
  logic [OW-1:0] given, given_next;              // and that went out
  // Whether there is room for the next beat where none leaves, and where one does. These and
  // m_valid are registers, so that no count lies in the way of the data.
  logic fits, fits_behind;
  logic is_short, push, pop;

  assign m_data  = store[TO*WIDTH-1:0];
  assign pop     = m_valid && m_ready;
  assign s_ready = pop ? fits_behind : fits;
  assign push    = s_valid && s_ready;
  assign kept    = pop ? store >> (TO * WIDTH) : store;
  generate
    for (genvar n = 0; n <= FULL; n++) begin : number
      logic gone, put;
      if (n == 0) assign gone = |fill[(GONE<FULL?GONE:FULL):0];
      else if (n + GONE <= FULL) assign gone = fill[n+GONE];
      else assign gone = 1'b0;
      assign left[n] = pop ? gone : fill[n];
      if (n >= WHOLE) assign put = is_short ? left[n-SHORT] : left[n-WHOLE];
      else if (n >= SHORT) assign put = is_short && left[n-SHORT];
      else assign put = 1'b0;
      assign fill_next[n] = push ? put : left[n];
    end
  endgenerate

  // A vector that was taken whole is given out whole before the next begins.
  logic is_whole, is_last;  // then: all beats of the vector came in, all but the last
  assign taken_left = pop && given == OW'(OUTS - 1) ? IW'(0) : taken;
  assign is_short   = LAST != FROM && taken_left == IW'(INS - 1);
  assign taken_next = push ? taken_left + 1'b1 : taken_left;
  assign given_next = !pop ? given : given == OW'(OUTS - 1) ? OW'(0) : given + 1'b1;
  assign is_whole   = taken_next == IW'(INS);
  assign is_last    = taken_next == IW'(INS - 1);
  localparam int BEHIND = FULL - WHOLE + GONE < FULL ? FULL - WHOLE + GONE : FULL;
  localparam int LAST_BEHIND = FULL - SHORT + GONE < FULL ? FULL - SHORT + GONE : FULL;
  always_ff @(posedge clk) begin
    store       <= kept | placed;
    fill        <= fill_next;
    taken       <= taken_next;
    given       <= given_next;
    m_valid     <= is_whole ? !fill_next[0] : |(fill_next >> GONE);
    fits        <= !is_whole && (is_last ? |fill_next[FULL-SHORT:0] : |fill_next[FULL-WHOLE:0]);
    fits_behind <= is_whole ? given_next == OW'(OUTS - 1)
                 : is_last ? |fill_next[LAST_BEHIND:0] : |fill_next[BEHIND:0];
    if (rst) begin
      store   <= STORE'(0);
      fill    <= {{FULL{1'b0}}, 1'b1};
      taken   <= IW'(0);
      given   <= OW'(0);
      m_valid <= 1'b0;
      fits    <= 1'b1;
    end
  end

  // Beats are put together by or, and only where there is room for all of them: the lanes of a
  // vector's last beat that hold nothing are left out.
  always_comb begin
    placed = STORE'(0);
    for (int n = 0; n + SHORT <= FULL; n++)
      for (int i = 0; i < (n + WHOLE <= FULL ? FROM : LAST); i++)
        placed[(n*UNIT+i)*WIDTH+:WIDTH] = placed[(n*UNIT+i)*WIDTH+:WIDTH] |
            (s_data[i*WIDTH+:WIDTH] & {WIDTH{push && left[n] && (i < LAST || !is_short)}});
  end
endmodule
