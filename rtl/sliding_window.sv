// For each output pixel the KERNEL_H x KERNEL_W pixels under the window, row by row, one pixel
// after the other; PAD where the window leaves the image. Pixels come in CHANNELS beats. The last
// ROWS rows are kept in a memory that is written and read independently, so that the next rows
// arrive while a window is read.
module sliding_window #(
    parameter int WIDTH    = 8,  // bits of a beat
    parameter int CHANNELS = 1,  // beats of a pixel
    parameter int HEIGHT   = 5,  // of the image, in pixels
    parameter int COLUMNS  = 5,
    parameter int KERNEL_H = 3,
    parameter int KERNEL_W = 3,
    parameter int STRIDE_H = 1,
    parameter int STRIDE_W = 1,
    parameter int TOP      = 1,  // rows of padding above the image
    parameter int LEFT     = 1,  // columns of padding before it
    parameter int OUT_H    = 5,  // output pixels
    parameter int OUT_W    = 5,
    parameter int ROWS     = 4,  // rows that are kept, at least KERNEL_H, or HEIGHT if that is less
    parameter int ELEMENT  = 8,  // bits of an element
    parameter int PAD      = 0,  // what padding holds, in each lane
    parameter int BLOCK    = 0   // 1: in block RAM
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
  localparam int ROW = COLUMNS * CHANNELS;
  localparam int WORDS = ROWS * ROW;
  localparam int AW = WORDS > 1 ? $clog2(WORDS) : 1;
  localparam int RW = ROW > 1 ? $clog2(ROW + 1) : 1;
  // Rows are counted from the first of all and compared by their difference, which is small.
  localparam int NW = $clog2(2 * (HEIGHT + ROWS + KERNEL_H + TOP) + 4) + 1;
  localparam int PW = $clog2(HEIGHT + COLUMNS + KERNEL_H + KERNEL_W + TOP + LEFT +
                             OUT_H * STRIDE_H + OUT_W * STRIDE_W + 4) + 1;
  localparam int LW = PW + (CHANNELS > 1 ? $clog2(CHANNELS) : 0);
  // Where a window's first row stands in the memory, and how far that moves from one output row to
  // the next and to the first of the next image.
  localparam int START = (8192 * ROWS - TOP) % ROWS * ROW;
  localparam int STEP = STRIDE_H % ROWS * ROW;
  localparam int TURN = (HEIGHT - (OUT_H - 1) * STRIDE_H + 8192 * ROWS) % ROWS * ROW;

  // Writing.
  logic [NW-1:0] row_in;           // the row that arrives
  logic [RW-1:0] place_in;         // and the beat of it
  logic [AW-1:0] address_in;
  logic signed [NW-1:0] room;
  logic push;
  logic [NW-1:0] base;             // first row of the image that is read
  logic signed [PW-1:0] top;       // first row of the window, in the image
  logic signed [NW-1:0] oldest;    // row that is still needed, in the image
  assign oldest  = top < 0 ? NW'(0) : NW'(top);
  assign room    = $signed(base + oldest + NW'(ROWS) - row_in);
  assign s_ready = room > 0;
  assign push    = s_valid && s_ready;
  always_ff @(posedge clk) begin
    if (push) begin
      address_in <= address_in == AW'(WORDS - 1) ? AW'(0) : address_in + 1'b1;
      place_in   <= place_in == RW'(ROW - 1) ? RW'(0) : place_in + 1'b1;
      if (place_in == RW'(ROW - 1)) row_in <= row_in + 1'b1;
    end
    if (rst) begin
      address_in <= AW'(0);
      place_in   <= RW'(0);
      row_in     <= NW'(0);
    end
  end

  // Reading: output row, output column, row of the window, column of it, beat of the pixel.
  logic [PW-1:0] out_row, out_column, tap_row, tap_column, channel;
  logic signed [PW-1:0] left, row, column;
  logic [AW-1:0] first_slot, slot;  // of the window's first row, and of this one
  logic signed [LW-1:0] next_place, left_place, place;  // of the row's first beat under the window, and of this
  logic is_inside, is_there, has_begun, read, free;
  logic signed [NW-1:0] begun, ahead;
  logic last_channel, last_column, last_tap, last_out_column, last_out_row;
  assign row             = top + $signed(tap_row);
  assign column          = left + $signed(tap_column);
  assign is_inside       = row >= 0 && row < PW'(HEIGHT) && column >= 0 && column < PW'(COLUMNS);
  assign begun           = $signed(row_in - base);
  assign ahead           = begun - NW'(row);
  assign is_there        = ahead > 0 || (ahead == 0 && $signed({1'b0, LW'(place_in)}) > $signed({place[LW-1], place}));
  // Padding waits for the image too: there may be no other.
  assign has_begun       = begun > 0 || (begun == 0 && place_in != RW'(0));
  assign free            = !m_valid || m_ready;
  assign read            = free && (is_inside ? is_there : has_begun);
  assign next_place      = last_out_column ? LW'(-LEFT * CHANNELS) : left_place + LW'(STRIDE_W * CHANNELS);
  assign last_channel    = channel == PW'(CHANNELS - 1);
  assign last_column     = tap_column == PW'(KERNEL_W - 1);
  assign last_tap        = tap_row == PW'(KERNEL_H - 1);
  assign last_out_column = out_column == PW'(OUT_W - 1);
  assign last_out_row    = out_row == PW'(OUT_H - 1);

  function automatic [AW-1:0] moved(input [AW-1:0] from, input integer by);
    moved = 32'(from) + by >= WORDS ? AW'(32'(from) + by - WORDS) : AW'(32'(from) + by);
  endfunction

  always_ff @(posedge clk) begin
    if (read) begin
      channel <= last_channel ? PW'(0) : channel + 1'b1;
      place   <= place + 1'b1;
      if (last_channel) begin
        tap_column <= last_column ? PW'(0) : tap_column + 1'b1;
        if (last_column) begin
          tap_row <= last_tap ? PW'(0) : tap_row + 1'b1;
          slot    <= last_tap ? first_slot : moved(slot, ROW);
          place   <= left_place;
          if (last_tap) begin
            out_column <= last_out_column ? PW'(0) : out_column + 1'b1;
            left       <= last_out_column ? PW'(-LEFT) : left + PW'(STRIDE_W);
            left_place <= next_place;
            place      <= next_place;
            if (last_out_column) begin
              out_row    <= last_out_row ? PW'(0) : out_row + 1'b1;
              top        <= last_out_row ? PW'(-TOP) : top + PW'(STRIDE_H);
              first_slot <= last_out_row ? moved(first_slot, TURN) : moved(first_slot, STEP);
              slot       <= last_out_row ? moved(first_slot, TURN) : moved(first_slot, STEP);
              if (last_out_row) base <= base + NW'(HEIGHT);
            end
          end
        end
      end
    end
    if (rst) begin
      channel    <= PW'(0);
      tap_column <= PW'(0);
      tap_row    <= PW'(0);
      out_column <= PW'(0);
      out_row    <= PW'(0);
      left       <= PW'(-LEFT);
      top        <= PW'(-TOP);
      left_place <= LW'(-LEFT * CHANNELS);
      place      <= LW'(-LEFT * CHANNELS);
      first_slot <= AW'(START);
      slot       <= AW'(START);
      base       <= NW'(0);
    end
  end

  logic [AW-1:0] address_out;
  logic [WIDTH-1:0] word;
  logic is_inside1;
  assign address_out = slot + AW'(place);
  assign m_data      = is_inside1 ? word : {(WIDTH / ELEMENT) {ELEMENT'(PAD)}};
  always_ff @(posedge clk) begin
    if (free) m_valid <= read;
    if (read) is_inside1 <= is_inside;
    if (rst) m_valid <= 1'b0;
  end
  ram #(
      .WIDTH(WIDTH),
      .DEPTH(WORDS),
      .BLOCK(BLOCK)
  ) words (
      .clk,
      .write   (push),
      .write_at(address_in),
      .written (s_data),
      .read,
      .read_at (address_out),
      .data    (word)
  );
endmodule
