#include "lathe/train/masked_tokens.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lathe/core/error.h"
#include "lathe/core/philox.h"

namespace lathe::train {
namespace {

// Dropout uses the seed itself as its key: masks must not repeat its numbers.
constexpr std::uint64_t kMaskKey = 0x6D61736B746F6B65;
constexpr std::uint32_t kMaskBelow = 0xCCCCCCCC;    // 0.8 of 2^32
constexpr std::uint32_t kRandomBelow = 0xE6666666;  // 0.9 of 2^32

}  // namespace

MaskedBatch mask_tokens(const data::Batch& batch, const MaskingOptions& options,
                        std::int64_t epoch) {
  if (!(options.share > 0 && options.share < 1))
    fail("a share of {} of masked tokens: expected above 0 and below 1", options.share);
  check(options.vocabulary_size > 0, "a vocabulary to draw random tokens from");
  const auto limit = static_cast<std::uint32_t>(std::lround(options.share * 4294967296.0));
  MaskedBatch result{.ids = batch.ids, .chosen = {}, .labels = {}};

  const auto choose = [&](std::size_t token, const PhiloxCounter& random) {
    result.chosen.push_back(static_cast<std::int32_t>(token));
    result.labels.push_back(batch.ids[token]);
    if (random[1] < kMaskBelow)
      result.ids[token] = options.mask_id;
    else if (random[1] < kRandomBelow)
      result.ids[token] = static_cast<std::int32_t>(
          std::uint64_t{random[2]} * static_cast<std::uint32_t>(options.vocabulary_size) >> 32);
  };
  // The token nearest to being chosen, for a batch so small that none is: a step needs a loss.
  std::size_t nearest = 0;
  PhiloxCounter nearest_random{std::numeric_limits<std::uint32_t>::max()};
  for (std::size_t sequence = 0; sequence < batch.labels.size(); ++sequence) {
    const auto begin = static_cast<std::size_t>(batch.offsets[sequence]);
    const auto end = static_cast<std::size_t>(batch.offsets[sequence + 1]);
    const auto example = static_cast<std::uint32_t>(batch.example_indices[sequence]);
    for (std::size_t token = begin; token < end; ++token) {
      if (std::find(options.never.begin(), options.never.end(), batch.ids[token]) !=
          options.never.end())
        continue;
      const PhiloxCounter random =
          philox({static_cast<std::uint32_t>(token - begin), example,
                  static_cast<std::uint32_t>(epoch), static_cast<std::uint32_t>(epoch >> 32)},
                 options.seed ^ kMaskKey);
      if (random[0] < limit)
        choose(token, random);
      else if (random[0] < nearest_random[0])
        nearest = token, nearest_random = random;
    }
  }
  if (result.chosen.empty() && !batch.ids.empty()) choose(nearest, nearest_random);
  return result;
}

}  // namespace lathe::train
