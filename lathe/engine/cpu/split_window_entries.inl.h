// The functions of both kinds of numbers in tiles, and their table: see split_window_table.h.

inline void pack_window_filters(const SplitFilterArgs& args) {
  if (args.is_rounded) return pack_rounded_filters(args);
  pack_split_filters(args);
}

inline std::int64_t window_scratch_bytes(const SplitFrame& frame, std::int64_t n) {
  const std::int64_t of_parts = WindowScratch(frame).size, rounded = RoundedLayout(frame).size(n);
  return of_parts > rounded ? of_parts : rounded;
}

inline bool multiply_windows(const SplitWindowArgs& args) {
  return args.is_rounded ? multiply_rounded_windows(args) : multiply_split_windows(args);
}

inline std::int64_t window_gradient_scratch_bytes(const SplitFrame& frame, std::int64_t n) {
  const std::int64_t rounded = rounded_gradient_scratch_bytes(frame, n);
  const std::int64_t in_parts = GradientScratch(frame, n, false).size;
  return rounded > in_parts ? rounded : in_parts;
}

inline bool add_window_gradient(const SplitWindowGradientArgs& args) {
  return args.is_rounded ? add_rounded_gradient(args) : add_split_gradient(args);
}

extern const SplitWindowKernels split_window_table;
const SplitWindowKernels split_window_table = {
    .name = kName,
    .splits = true,
    .filters_size = window_filters_size,
    .pack = pack_window_filters,
    .scratch_bytes = window_scratch_bytes,
    .multiply = multiply_windows,
    .gradient_scratch_bytes = window_gradient_scratch_bytes,
    .add_gradient = add_window_gradient,
    .rounded_gradients_scratch_bytes = rounded_gradients_scratch_bytes,
    .add_rounded_gradients = add_rounded_gradients,
};
