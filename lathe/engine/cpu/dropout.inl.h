// Dropout by counter-based random numbers: Philox 4x32-10 of kWidth counters at a time, which are
// the bits of 8 kWidth elements. It is the function of lathe/core/philox.h, written again because
// that one is made of the standard library's arrays.

constexpr int kPhiloxRounds = 10;

// The keys of all rounds: read from memory, they cost the rounds nothing.
struct PhiloxKeys {
  std::uint32_t low[kPhiloxRounds];
  std::uint32_t high[kPhiloxRounds];
  explicit PhiloxKeys(std::uint64_t seed) {
    auto k0 = static_cast<std::uint32_t>(seed);
    auto k1 = static_cast<std::uint32_t>(seed >> 32);
    for (int round = 0; round < kPhiloxRounds; ++round) {
      low[round] = k0;
      high[round] = k1;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
  }
};

[[gnu::always_inline]] inline void philox(Words (&counter)[4], const PhiloxKeys& keys) {
#pragma GCC unroll 10
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const Words a = multiply_wide(counter[0], 0xD2511F53u);
    const Words b = multiply_wide(counter[2], 0xCD9E8D57u);
    counter[0] = exclusive_or(upper_words(b), counter[1], keys.low[round]);
    counter[1] = b;
    counter[2] = exclusive_or(upper_words(a), counter[3], keys.high[round]);
    counter[3] = a;
  }
}

// What is left of `n` elements after dropout, where the number of a block of eight is added to word
// `BlockWord` of the row's counter. Calls body(column, lanes, kept) as over_lanes does.
template <int BlockWord, typename Body>
[[gnu::always_inline]] inline void over_kept_lanes(const std::uint32_t (&counter)[4],
                                                   const PhiloxKeys& keys, std::uint32_t threshold,
                                                   std::int64_t n, Body body) {
  for (std::int64_t start = 0; start < n; start += 8 * kWidth) {
    Words random[4];
    for (int w = 0; w < 4; ++w) random[w] = broadcast_word(counter[w]);
    random[BlockWord] = block_numbers(counter[BlockWord] + static_cast<std::uint32_t>(start / 8));
    philox(random, keys);
    Mask kept[8];
    kept_lanes(random, threshold, kept);
    int v = 0;
    std::int64_t column = start;
    for (; v < 8 && column + kWidth <= n; ++v, column += kWidth) body(column, Whole{}, kept[v]);
    if (v < 8 && column < n) body(column, first_lanes(n - column), kept[v]);
  }
}

// What a kept element is multiplied by.
inline float kept_factor(std::uint32_t threshold) {
  return threshold < 65536 ? 65536.0f / static_cast<float>(65536 - threshold) : 0.0f;
}

inline void dropout_rows(const DropoutRowsArgs& args) {
  const PhiloxKeys keys(args.dropout.seed);
  const Vec factor = broadcast(kept_factor(args.dropout.threshold));
  for (std::int64_t r = 0; r < args.rows; ++r) {
    const float* x = args.x + r * args.x_stride;
    const float* residual = args.residual ? args.residual + r * args.residual_stride : nullptr;
    float* y = args.y + r * args.y_stride;
    const auto write = [&](std::int64_t c, auto lanes, Vec value) {
      store(y + c, residual ? value + load(residual + c, lanes) : value, lanes);
    };
    if (args.dropout.threshold == 0) {
      over_lanes(args.n, [&](std::int64_t c, auto lanes) { write(c, lanes, load(x + c, lanes)); });
      continue;
    }
    const std::uint32_t counter[4] = {
        args.dropout.site << 16, static_cast<std::uint32_t>(args.positions[r]),
        static_cast<std::uint32_t>(args.examples[r]), args.dropout.step};
    over_kept_lanes<0>(
        counter, keys, args.dropout.threshold, args.n, [&](std::int64_t c, auto lanes, Mask kept) {
          write(c, lanes, select(kept, load(x + c, lanes) * factor, broadcast(0.0f)));
        });
  }
}
