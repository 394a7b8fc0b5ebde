// Values under one scale. Included inside a namespace by the kernel files, after elements.inl.h.

// Applies `map` to a run of values, past the caches if asked; then end_streaming is still to come.
template <typename Map>
LATHE_KERNEL_INLINE void map_run(const float* x, float* y, std::int64_t count, bool streams,
                                 Map map) {
  std::int64_t i = 0;
  if (streams) {
    const auto address = reinterpret_cast<std::uintptr_t>(y);
    constexpr std::uintptr_t kBytes = kWidth * sizeof(float);
    const auto head =
        static_cast<std::int64_t>((kBytes - address % kBytes) % kBytes / sizeof(float));
    if (address % sizeof(float) == 0 && head < count) {
      if (head > 0) store(y, map(load(x, head)), head);
      for (i = head; i + kWidth <= count; i += kWidth) stream(y + i, map(load(x + i)));
    }
  }
  for (; i + 2 * kWidth <= count; i += 2 * kWidth) {
    const Floats a = map(load(x + i));
    const Floats b = map(load(x + i + kWidth));
    store(y + i, a);
    store(y + i + kWidth, b);
  }
  for (; i < count; i += kWidth) {
    const std::int64_t lanes = count - i;
    if (lanes >= kWidth)
      store(y + i, map(load(x + i)));
    else
      store(y + i, map(load(x + i, lanes)), lanes);
  }
}

template <typename Element>
inline void round_run_by(const Element& element, const RunArgs& args) {
  const Floats scale = broadcast(args.scale);
  if (args.inverse == 0) {
    map_run(args.x, args.y, args.count, args.streams,
            [&](Floats value) { return element(value / scale) * scale; });
    return;
  }
  const Floats inverse = broadcast(args.inverse);
  if (args.scale == 1 && args.inverse == 1)
    map_run(args.x, args.y, args.count, args.streams, [&](Floats value) { return element(value); });
  else
    map_run(args.x, args.y, args.count, args.streams,
            [&](Floats value) { return element(value * inverse) * scale; });
}

void round_run(const ElementTable& table, const RunArgs& args) {
  with_element(table, [&](const auto& element) { round_run_by(element, args); });
  if (args.streams) end_streaming();
}
