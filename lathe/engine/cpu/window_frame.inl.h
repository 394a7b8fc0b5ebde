// Images as they are laid out for windows that are products, for a file that has included its
// vectors: see split_window_table.h.

constexpr std::int64_t kTileLines = 16;
static_assert(kWidth == kTileLines && kWindowGrain == kTileLines);

inline std::int64_t divide_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

// From the first window to the last, the zeros between lines included.
inline std::int64_t flat_windows(const SplitFrame& frame) {
  return (frame.out_height - 1) * frame.line + frame.out_width;
}
// How far the last tap is from the first.
inline std::int64_t flat_reach(const SplitFrame& frame) {
  return (frame.rows - 1) * frame.line + frame.columns - 1;
}

// Goes through the pixels of an image with the zeros around it, up to `count`: `split(pixel, at,
// is_pair)` for one or two neighbours, of which the first is number `at` of the image, and
// `clear(pixel, count)` for zeros.
template <typename Split, typename Clear>
[[gnu::always_inline]] inline void over_frame(const SplitFrame& frame, std::int64_t count,
                                              Split split, Clear clear) {
  const std::int64_t lines = frame.out_height + frame.rows - 1;
  const std::int64_t below = frame.height < lines - frame.top ? frame.height : lines - frame.top;
  clear(0, frame.top * frame.line);
  for (std::int64_t l = 0; l < below; ++l) {
    const std::int64_t pixel = (frame.top + l) * frame.line + frame.left;
    clear(pixel - frame.left, frame.left);
    const std::int64_t at = l * frame.width;
    std::int64_t w = 0;
    for (; w + 2 <= frame.width; w += 2) split(pixel + w, at + w, true);
    if (w < frame.width) split(pixel + w, at + w, false);
    clear(pixel + frame.width, frame.line - frame.left - frame.width);
  }
  clear((frame.top + below) * frame.line, count - (frame.top + below) * frame.line);
}

// A share of so many bytes.
template <bool IsWritten>
inline void ask_for(const void* from, std::int64_t part, std::int64_t parts, std::int64_t bytes) {
  constexpr std::int64_t kLine = 64;
  const std::int64_t lines = bytes / kLine;
  for (std::int64_t line = part * lines / parts; line < (part + 1) * lines / parts; ++line)
    (IsWritten ? ask_to_write : ask_to_read)(static_cast<const char*>(from) + line * kLine);
}
