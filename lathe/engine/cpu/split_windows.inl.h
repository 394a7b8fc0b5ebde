// Convolutions of floats that are sums of three bfloat16 numbers each, for a file that has included
// tile registers, split_parts.inl.h and window_frame.inl.h: see split_window_table.h.
//
// A row of a tile is 32 numbers, and 16 channels have 16. So a row holds two parts of a pixel: with
// a = a1 + a2 + a3 a pixel is two rows, [a1 a2] and [a3 a1], which the filters' [b1 b1], [b2 b2]
// and [b1 b3] meet: three instructions are the six products of all 16 channels, and no lane is
// idle. Pixels of the laid out image are 128 bytes apart, so that 16 neighbours are a tile where
// they lie, whatever the tap. Sums that belong to the zeros between two lines are left out at last.

constexpr std::int64_t kPixelNumbers = 64;  // of 16 channels
constexpr std::int64_t kPixelBytes = kPixelNumbers * 2;
constexpr std::int64_t kTileLine = 64;
constexpr int kMostWindowTiles = 4;

struct WindowScratch {
  std::int64_t tiles, pixels, sums, size;
  explicit WindowScratch(const SplitFrame& frame)
      : tiles(divide_up(flat_windows(frame), kTileLines)),
        pixels(tiles * kTileLines + flat_reach(frame)),
        sums(frame.channels / kWindowGrain * pixels * kPixelBytes),
        size(sums + kMostWindowTiles * kTileLines * kTileLine) {
    // Lines that windows read are laid out whole.
    const std::int64_t lines = (frame.out_height + frame.rows - 1) * frame.line;
    if (lines <= pixels) return;
    const std::int64_t more = frame.channels / kWindowGrain * (lines - pixels) * kPixelBytes;
    pixels = lines;
    sums += more;
    size += more;
  }
};

inline std::int64_t window_filters_size(std::int64_t taps, std::int64_t channels, std::int64_t n) {
  return taps * channels * n * 2 * kParts;
}

inline void pack_split_filters(const SplitFilterArgs& args) {
  std::uint16_t* to = args.filters;
  const std::int64_t depth = args.taps * args.channels;
  for (std::int64_t f = 0; f < args.n; f += kWindowGrain) {
    const float* const column = args.panels + f / args.panel * depth * args.panel + f % args.panel;
    for (std::int64_t k = 0; k < depth; k += kWindowGrain)
      for (std::int64_t i = 0; i < kWindowGrain / 2; ++i) {
        std::uint16_t* const tiles =
            to + (f / kWindowGrain * depth + k) / kWindowGrain * kParts * kTileNumbers;
        const float* const from = column + (k + 2 * i) * args.panel;
        Vec even = load(from), odd = load(from + args.panel);
        const auto put = [&](std::int64_t tile, std::int64_t half) {
          std::uint16_t* const line =
              tiles + tile * kTileNumbers + (half * kTileLines / 2 + i) * 32;
          store_bf16_pairs(reinterpret_cast<std::uint32_t*>(line), even, odd);
        };
        put(0, 0);
        const auto take_part = [&] {
          even = even - near_bf16(even);
          odd = odd - near_bf16(odd);
        };
        put(0, 1), put(2, 0);
        take_part();
        put(1, 0), put(1, 1);
        take_part();
        put(2, 1);
      }
  }
}

// Sixteen channels of one or two pixels, as two rows each.
inline void store_pixels(TwoVectors two, bool is_pair, std::uint16_t* to) {
  const SplitParts parts = parts_of(two);
  const __m512i first = parts.bits[0], second = parts.bits[1], third = parts.bits[2];
  const auto lower = [](__m512i a, __m512i b) {
    return _mm512_inserti64x4(a, _mm512_castsi512_si256(b), 1);
  };
  _mm512_store_si512(to, lower(first, second));
  _mm512_store_si512(to + 32, lower(third, first));
  if (!is_pair) return;
  _mm512_store_si512(to + 64, _mm512_shuffle_i64x2(first, second, 0xee));
  _mm512_store_si512(to + 96, _mm512_shuffle_i64x2(third, first, 0xee));
}

// Whether all of it may be split.
inline bool lay_out_windows(const SplitWindowArgs& args, const WindowScratch& parts,
                            std::uint16_t* to) {
  const Vec limit = broadcast(kMostSplit);
  Mask are_small = first_lanes(kWidth);
  for (std::int64_t c = 0; c < args.frame.channels; c += kWindowGrain) {
    over_frame(
        args.frame, parts.pixels,
        [&](std::int64_t pixel, std::int64_t at, bool is_pair) {
          const float* const from =
              static_cast<const float*>(args.x.at) + at * args.frame.channels + c;
          const TwoVectors two{load(from),
                               is_pair ? load(from + args.frame.channels) : broadcast(0.0f)};
          are_small &= small_lanes(two, limit);
          store_pixels(two, is_pair, to + pixel * kPixelNumbers);
        },
        [&](std::int64_t pixel, std::int64_t count) {
          for (std::int64_t i = 0; i < 2 * count; ++i)
            _mm512_store_si512(to + pixel * kPixelNumbers + i * 32, _mm512_setzero_si512());
        });
    to += parts.pixels * kPixelNumbers;
  }
  return are_small == first_lanes(kWidth);
}

template <int Tiles, int At = 0>
[[gnu::always_inline]] inline void zero_tiles() {
  if constexpr (At < Tiles) {
    tile_zero<At>();
    zero_tiles<Tiles, At + 1>();
  }
}
template <int Tiles, int At = 0>
[[gnu::always_inline]] inline void store_window_tiles(float* sums) {
  if constexpr (At < Tiles) {
    tile_store<At>(sums + At * kTileLines * kTileLines, kTileLine);
    store_window_tiles<Tiles, At + 1>(sums);
  }
}
// The filters in register 7 times so many tiles of pixels, each with sums of its own: an
// instruction takes as long as four of them to have its sum.
template <int Tiles, int At = 0>
[[gnu::always_inline]] inline void multiply_pixels(const std::uint16_t* x) {
  if constexpr (At < Tiles) {
    tile_load<4 + At % 3>(x + At * kTileLines * kPixelNumbers, kPixelBytes);
    tile_multiply<At, 4 + At % 3, 7>();
    multiply_pixels<Tiles, At + 1>(x);
  }
}

// 16 filters of `Tiles` tiles of pixels.
template <int Tiles>
void multiply_window_tiles(const SplitFrame& frame, std::int64_t pixels, const std::uint16_t* x,
                           const std::uint16_t* filters, float* sums) {
  zero_tiles<Tiles>();
  for (std::int64_t row = 0; row < frame.rows; ++row)
    for (std::int64_t column = 0; column < frame.columns; ++column)
      for (std::int64_t block = 0; block < frame.channels / kWindowGrain; ++block) {
        const std::uint16_t* const at =
            x + (block * pixels + row * frame.line + column) * kPixelNumbers;
        tile_load<7>(filters, kTileLine);
        multiply_pixels<Tiles>(at);
        tile_load<7>(filters + kTileNumbers, kTileLine);
        multiply_pixels<Tiles>(at);
        tile_load<7>(filters + 2 * kTileNumbers, kTileLine);
        multiply_pixels<Tiles>(at + 32);
        filters += kParts * kTileNumbers;
      }
  store_window_tiles<Tiles>(sums);
}

inline bool multiply_split_windows(const SplitWindowArgs& args) {
  const SplitFrame& frame = args.frame;
  const WindowScratch parts(frame);
  auto* const memory = static_cast<unsigned char*>(args.scratch);
  auto* const x = reinterpret_cast<std::uint16_t*>(memory);
  auto* const sums = reinterpret_cast<float*>(memory + parts.sums);
  if (!lay_out_windows(args, parts, x)) return false;
  const TileSession session;
  const std::int64_t of_filters =
      frame.rows * frame.columns * frame.channels / kWindowGrain * kParts * kTileNumbers;
  const std::int64_t groups = divide_up(parts.tiles, kMostWindowTiles);
  for (std::int64_t group = 0; group < groups; ++group) {
    const std::int64_t tile = group * parts.tiles / groups;
    const std::int64_t tiles = (group + 1) * parts.tiles / groups - tile;
    const std::uint16_t* const from = x + tile * kTileLines * kPixelNumbers;
    // What the sums will be written to, and the image that comes next, arrive while this is
    // multiplied.
    const std::int64_t pixels = frame.out_height * frame.out_width;
    ask_for<true>(args.y.at, group, groups, pixels * args.n * 4);
    if (args.next != nullptr)
      ask_for<false>(args.next, group, groups, frame.height * frame.width * frame.channels * 4);
    for (std::int64_t f = 0; f < args.n; f += kWindowGrain) {
      const std::uint16_t* const filters = args.filters + f / kWindowGrain * of_filters;
      if (tiles == 4)
        multiply_window_tiles<4>(frame, parts.pixels, from, filters, sums);
      else if (tiles == 3)
        multiply_window_tiles<3>(frame, parts.pixels, from, filters, sums);
      else if (tiles == 2)
        multiply_window_tiles<2>(frame, parts.pixels, from, filters, sums);
      else
        multiply_window_tiles<1>(frame, parts.pixels, from, filters, sums);
      const Vec bias = args.bias != nullptr ? load(args.bias + f) : broadcast(0.0f);
      const std::int64_t first = tile * kTileLines, end = first + tiles * kTileLines;
      for (std::int64_t line = first / frame.line; line < frame.out_height; ++line) {
        const std::int64_t begin = line * frame.line;
        if (begin >= end) break;
        const std::int64_t from_window = first > begin ? first - begin : 0;
        const std::int64_t to_window =
            end - begin < frame.out_width ? end - begin : frame.out_width;
        float* const y = static_cast<float*>(args.y.at) + line * frame.out_width * args.n + f;
        const float* const of_line = sums + (begin - first) * kTileLines;
        for (std::int64_t w = from_window; w < to_window; ++w)
          store(y + w * args.n, load(of_line + w * kTileLines) + bias);
      }
    }
  }
  return true;
}
