#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "lathe/core/philox.h"

/// Which elements dropout drops, as a function of where they are: of the run's seed, the step, the
/// example, the place in it and the site in the model, and never of the batch or of threads.
///
/// One Philox block of 128 bits decides eight neighbouring elements, 16 bits each. An element is
/// dropped when its bits are below rate * 2^16; the others are scaled so that the mean is kept.
namespace lathe::ops {

/// The operand `random` of the ops that drop: {seed low word, seed high word, step}.
struct DropoutStream {
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  std::uint32_t site = 0;  ///< below 2^16
};

constexpr DropoutStream dropout_stream(std::int64_t seed_low, std::int64_t seed_high,
                                       std::int64_t step, std::int64_t site) {
  const auto low = static_cast<std::uint32_t>(seed_low);
  const auto high = static_cast<std::uint32_t>(seed_high);
  return {static_cast<std::uint64_t>(high) << 32 | low, static_cast<std::uint32_t>(step),
          static_cast<std::uint32_t>(site)};
}

/// An element is dropped when its 16 bits are below this. Something is always kept.
inline std::uint32_t dropout_threshold(double rate) {
  return static_cast<std::uint32_t>(std::clamp(std::nearbyint(rate * 65536.0), 0.0, 65535.0));
}
/// What kept elements are multiplied by: 1 / (1 - rate) of the rate that the threshold stands for.
constexpr double dropout_scale(std::uint32_t threshold) {
  return 65536.0 / (65536.0 - static_cast<double>(threshold));
}

/// The random bits of features 8 * block to 8 * block + 7 of one row.
constexpr PhiloxCounter row_dropout_block(const DropoutStream& stream, std::uint32_t example,
                                          std::uint32_t position, std::uint32_t block) {
  return philox({stream.site << 16 | block, position, example, stream.step}, stream.seed);
}
/// The random bits of the weights that a query of one head gives keys 8 * block to 8 * block + 7.
constexpr PhiloxCounter attention_dropout_block(const DropoutStream& stream, std::uint32_t example,
                                                std::uint32_t head, std::uint32_t query,
                                                std::uint32_t block) {
  return philox({stream.site << 16 | head, query << 16 | block, example, stream.step}, stream.seed);
}
/// The 16 bits of element `index`, 0 to 7, of a block.
constexpr std::uint32_t dropout_bits(const PhiloxCounter& block, std::uint32_t index) {
  return block[index / 2] >> (16 * (index % 2)) & 0xFFFFu;
}

/// What element `feature` of a row is multiplied by: 0 or the scale.
constexpr double row_dropout_factor(const DropoutStream& stream, std::uint32_t threshold,
                                    std::uint32_t example, std::uint32_t position,
                                    std::uint32_t feature) {
  const PhiloxCounter block = row_dropout_block(stream, example, position, feature / 8);
  return dropout_bits(block, feature % 8) < threshold ? 0.0 : dropout_scale(threshold);
}
/// What the weight that `query` gives `key` in one head is multiplied by: 0 or the scale.
constexpr double attention_dropout_factor(const DropoutStream& stream, std::uint32_t threshold,
                                          std::uint32_t example, std::uint32_t head,
                                          std::uint32_t query, std::uint32_t key) {
  const PhiloxCounter block = attention_dropout_block(stream, example, head, query, key / 8);
  return dropout_bits(block, key % 8) < threshold ? 0.0 : dropout_scale(threshold);
}

}  // namespace lathe::ops
