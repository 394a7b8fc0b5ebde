#include "lathe/io/storage/bit_predictor.h"

namespace lathe::io {

// In whole numbers, because mathematical libraries differ in the last bit of exp.
constexpr BitPredictor::Tables BitPredictor::make_tables() {
  Tables tables{};
  constexpr std::uint64_t kDecay = 4278222805;  // 2^32 exp(-1/256)
  constexpr std::uint64_t kOne = std::uint64_t{1} << 30;
  std::uint64_t power = kOne;  // exp(-i/256)
  for (std::size_t i = 0; i <= kLogits / 2; ++i) {
    const std::uint64_t share = (kOne << 16) / (kOne + power);
    if (i < kLogits / 2) tables.shares[kLogits / 2 + i] = static_cast<std::uint16_t>(share);
    tables.shares[kLogits / 2 - i] = static_cast<std::uint16_t>(65536 - share);
    power = power * kDecay >> 32;
  }
  std::size_t logit = 0;
  for (std::size_t share = 0; share < tables.logits.size(); ++share) {
    while (logit + 1 < kLogits && tables.shares[logit] >> (16 - kShareBits) < share) ++logit;
    tables.logits[share] = static_cast<std::int16_t>(static_cast<int>(logit) - kLogits / 2);
  }
  for (std::uint16_t& share : tables.shares)
    share = std::clamp<std::uint16_t>(share, kLeastProbability, 65536 - kLeastProbability);
  for (std::uint32_t count = 0; count <= kMostCount; ++count)
    tables.rates[count] = static_cast<std::int32_t>(655360 / (10 * count + 16));
  return tables;
}
constexpr BitPredictor::Tables BitPredictor::kTables = BitPredictor::make_tables();

BitPredictor::BitPredictor(std::size_t situations) : all_weights_(situations) {
  for (Weights& weights : all_weights_) weights.fill(kFirstWeight);
}

}  // namespace lathe::io
