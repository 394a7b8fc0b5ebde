#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lathe::io {

/// What one context has seen so far: the share of set bits in its upper 22 bits and of how many in
/// the lower 10.
using BitStatistics = std::uint32_t;
inline constexpr BitStatistics kNothingSeen = std::uint32_t{1} << 31;  ///< a half, of none

/// Predicts bits from the statistics of several contexts at once.
///
/// Each context's share becomes a logit, the logits are added with weights, and the weights follow
/// the error: logistic regression, one step a bit. A context that says nothing about a tensor costs
/// next to nothing there, so nobody has to choose. Whole numbers only: decoding ends in nonsense
/// where another machine predicts another number.
class BitPredictor {
 public:
  static constexpr std::size_t kContexts = 4;
  /// No bit is held for less likely than this many 65536ths, which bounds how much a byte can
  /// stand for.
  static constexpr std::int32_t kLeastProbability = 32;
  /// Where the statistics of each context begin; each has one for every situation.
  using Contexts = std::array<BitStatistics*, kContexts>;

  /// A situation is what a bit is in its symbol: the bits before it. Each has its own weights.
  explicit BitPredictor(std::size_t situations);

  /// The probability of a set bit in 65536ths.
  std::uint32_t predict(const Contexts& contexts, std::size_t situation) {
    const Weights& weights = all_weights_[situation];
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < kContexts; ++i) {
      logits_[i] = kTables.logits[contexts[i][situation] >> (32 - kShareBits)];
      sum += std::int64_t{logits_[i]} * weights[i];
    }
    const std::int64_t logit =
        std::clamp<std::int64_t>(sum >> kWeightBits, -kLogits / 2, kLogits / 2 - 1);
    predicted_ = kTables.shares[static_cast<std::size_t>(logit + kLogits / 2)];
    return static_cast<std::uint32_t>(predicted_);
  }

  /// Tells which bit it was, after each prediction.
  void learn(const Contexts& contexts, std::size_t situation, bool bit) {
    const std::int32_t step = ((static_cast<std::int32_t>(bit) << 16) - predicted_) * kRate >> 4;
    const std::int64_t target = -static_cast<std::int64_t>(bit) & ((1 << kSeenBits) - 1);
    Weights& weights = all_weights_[situation];
    for (std::size_t i = 0; i < kContexts; ++i) {
      std::int32_t& weight = weights[i];
      // Wraps where a hostile file drives it so far, which is defined for unsigned numbers only.
      weight = static_cast<std::int32_t>(
          static_cast<std::uint32_t>(weight) +
          static_cast<std::uint32_t>((logits_[i] * step + (1 << 15)) >> 16));
      const BitStatistics seen = contexts[i][situation];
      const std::uint32_t count = seen & ((1u << kCountBits) - 1);
      const std::int64_t change = (target - (seen >> kCountBits)) * kTables.rates[count] >> 16;
      contexts[i][situation] = seen + (static_cast<std::uint32_t>(change) << kCountBits) +
                               static_cast<std::uint32_t>(count < kMostCount);
    }
  }

 private:
  // Logits are in 256ths and reach from -8 to 8, where a share is 1 in 2981.
  static constexpr int kLogits = 4096;
  static constexpr int kShareBits = 12;
  // Tuned on masks and codes of a small encoder's tensors: halving or doubling any of these, the
  // count below among them, changes their size by less than 0.3 %.
  static constexpr int kWeightBits = 16;
  static constexpr std::int32_t kFirstWeight = 24000;
  static constexpr std::int32_t kRate = 6;
  static constexpr int kCountBits = 10;
  static constexpr int kSeenBits = 32 - kCountBits;
  // A share follows the last few hundred bits: a matrix is much alike from its first row to its
  // last, but not quite.
  static constexpr std::uint32_t kMostCount = 400;

  struct Tables {
    std::array<std::uint16_t, kLogits> shares;         // 65536 / (1 + exp(-x)), x from -8
    std::array<std::int16_t, 1 << kShareBits> logits;  // its inverse
    std::array<std::int32_t, kMostCount + 1> rates;    // 65536 / (count + 1.6)
  };
  static constexpr Tables make_tables();
  static const Tables kTables;

  using Weights = std::array<std::int32_t, kContexts>;
  std::vector<Weights> all_weights_;
  std::array<std::int32_t, kContexts> logits_{};
  std::int32_t predicted_ = 0;
};

}  // namespace lathe::io
