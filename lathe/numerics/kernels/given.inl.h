// Blocks whose scales somebody gave. Included inside a namespace by the kernel files, after
// blocks.inl.h.

inline void move_ends(IntegerElement& element, float zero) {
  element.move(zero);
}
template <typename Element>
inline void move_ends(Element&, float) {}

// Blocks of whole vectors under given scales.
template <bool kStreams, typename Element>
inline void round_given_vectors(const Element& element, const GivenScales& given,
                                const BlockArgs& args) {
  std::int64_t index = 0;
  for (std::int64_t r = 0; r < args.rows; ++r)
    for (std::int64_t c = 0; c < args.columns; c += args.block, ++index) {
      auto moved = element;
      if (given.zeros != nullptr) move_ends(moved, given.zeros[index]);
      const Floats scale = broadcast(given.scales[index]);
      const Floats inverse = broadcast(1.0f) / scale;
      const std::int64_t start = r * args.columns + c;
      const std::int64_t end =
          start + (args.columns - c < args.block ? args.columns - c : args.block);
      for (std::int64_t i = start; i < end; i += kWidth) {
        const Floats value = load(args.x + i);
        const Floats units = given.is_power_of_two ? value * inverse : value / scale;
        put<kStreams>(args.y + i, moved(units) * scale);
      }
    }
}

void round_given_blocks(const ElementTable& table, const GivenScales& given,
                        const BlockArgs& args) {
  const bool has_whole_vectors = args.block % kWidth == 0 && args.columns % kWidth == 0;
  with_element(table, [&](const auto& element) {
    if (has_whole_vectors && args.streams && is_aligned(args.y))
      return round_given_vectors<true>(element, given, args);
    if (has_whole_vectors && !args.streams) return round_given_vectors<false>(element, given, args);
    std::int64_t index = 0;
    for (std::int64_t r = 0; r < args.rows; ++r)
      for (std::int64_t c = 0; c < args.columns; c += args.block, ++index) {
        const float scale = given.scales[index];
        auto moved = element;
        if (given.zeros != nullptr) move_ends(moved, given.zeros[index]);
        const std::int64_t at = r * args.columns + c;
        const std::int64_t count = args.columns - c < args.block ? args.columns - c : args.block;
        round_run_by(moved, {.x = args.x + at,
                             .y = args.y + at,
                             .count = count,
                             .scale = scale,
                             .inverse = given.is_power_of_two ? 1 / scale : 0,
                             .streams = args.streams});
      }
  });
  if (args.streams) end_streaming();
}
