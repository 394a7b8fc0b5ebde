#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace lathe::train {

/// What training does to images so that it sees each a little otherwise in every epoch.
struct Augmentation {
  bool flips = false;      ///< left and right change places, of half of them
  std::int64_t shift = 0;  ///< each moves so many pixels at most, up or down and to a side
  bool operator==(const Augmentation&) const = default;
};

/// Reads `flip`, `shift=4` or both with a comma between; nothing where the text is empty.
Augmentation parse_augmentation(std::string_view text);

/// Writes an image of {channels, height, width} as example `example` is seen in an epoch. What it
/// moves away from is `background`, a number a channel. A function of the seed, the example and the
/// epoch alone, whatever else is in the batch.
void augment(std::span<const float> image, std::span<const std::int64_t> shape,
             std::span<const float> background, const Augmentation& augmentation,
             std::uint64_t seed, std::int64_t example, std::int64_t epoch, std::span<float> result);

}  // namespace lathe::train
