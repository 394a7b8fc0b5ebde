#pragma once

#include <cstdint>
#include <vector>

#include "lathe/data/batching.h"

namespace lathe::train {

/// Which tokens a masked language model has to guess.
struct MaskingOptions {
  double share = 0.15;
  std::int32_t mask_id = 0;
  std::int32_t vocabulary_size = 0;
  std::vector<std::int32_t> never;  ///< ids that are never chosen: [CLS], [SEP], [PAD]
  std::uint64_t seed = 0;
};

/// A batch with some tokens hidden.
struct MaskedBatch {
  std::vector<std::int32_t> ids;     ///< what the model sees
  std::vector<std::int32_t> chosen;  ///< places in `ids`, ascending, at least one
  std::vector<std::int32_t> labels;  ///< the true id at each of them
  bool operator==(const MaskedBatch&) const = default;
};

/// Chooses tokens to guess, each with the same chance. Of ten chosen, eight become [MASK], one a
/// random token, and one stays.
///
/// What happens to a token is a function of the seed, the epoch, its example and its position: not
/// of the batch it is in.
MaskedBatch mask_tokens(const data::Batch& batch, const MaskingOptions& options,
                        std::int64_t epoch);

}  // namespace lathe::train
