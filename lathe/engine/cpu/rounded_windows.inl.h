// Convolutions of numbers that are rounded to bfloat16, for a file that has included
// rounded_layout.inl.h and a way to multiply what is laid out: see split_window_table.h.

template <bool HasMoments>
void multiply_rounded_windows_of(const SplitWindowArgs& args, const RoundedLayout& layout,
                                 const std::uint16_t* x, float* sums) {
  const SplitFrame& frame = args.frame;
  const std::int64_t read = frame.height * frame.width * frame.channels;
  const std::int64_t windows = frame.out_height * frame.out_width;
  multiply_laid_out(
      layout, args.n, x, args.filters, sums,
      [&](std::int64_t f) { return RoundedResults<HasMoments>(args, sums + kSumNumbers, f); },
      // As for floats: what comes next arrives meanwhile.
      [&](std::int64_t part, std::int64_t parts) {
        ask_for<true>(args.y.at, part, parts, windows * args.n * number_bytes(args.y.is_narrow));
        if (args.next != nullptr)
          ask_for<false>(args.next, part, parts, read * number_bytes(args.x.is_narrow));
      });
  if constexpr (HasMoments) {
    // The mean, and the squares of the distances from it.
    const auto count = static_cast<double>(windows);
    for (std::int64_t f = 0; f < args.n; ++f) {
      const double mean = args.moments[f] / count;
      args.moments[args.n + f] -= mean * args.moments[f];
      args.moments[f] = mean + (sums + kSumNumbers)[f];
    }
  }
}

inline bool multiply_rounded_windows(const SplitWindowArgs& args) {
  const RoundedLayout layout(args.frame);
  auto* const memory = static_cast<unsigned char*>(args.scratch);
  auto* const x = reinterpret_cast<std::uint16_t*>(memory);
  auto* const sums = reinterpret_cast<float*>(memory + layout.sums);
  if (!lay_out_x(layout, kMostSplit, args.front, args.x, x)) return false;
  if (args.moments == nullptr) {
    multiply_rounded_windows_of<false>(args, layout, x, sums);
    return true;
  }
  for (std::int64_t i = 0; i < 2 * args.n; ++i) args.moments[i] = 0;
  multiply_rounded_windows_of<true>(args, layout, x, sums);
  return true;
}
