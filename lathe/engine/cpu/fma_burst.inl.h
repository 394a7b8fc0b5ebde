// Multiply-adds that touch no memory: what the other kernels are measured against.

inline double fma_burst(std::int64_t rounds) {
  // Independent sums enough to hide the latency of each, and no more than there are registers for.
  constexpr int kChains = 12;
  Vec sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = broadcast(static_cast<float>(i));
  // Values the compiler cannot see through; the sums converge instead of overflowing.
  Vec factor = broadcast(0.5f);
  Vec term = broadcast(1.0f);
  asm volatile("" : "+x"(factor.value), "+x"(term.value));
  for (std::int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) sums[i] = fma(sums[i], factor, term);
  }
  Vec total = sums[0];
  for (int i = 1; i < kChains; ++i) total = total + sums[i];
  asm volatile("" : "+x"(total.value));
  return 2.0 * kChains * kWidth * static_cast<double>(rounds);
}
