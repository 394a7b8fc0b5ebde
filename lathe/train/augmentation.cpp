#include "lathe/train/augmentation.h"

#include <algorithm>
#include <charconv>

#include "lathe/core/error.h"
#include "lathe/core/philox.h"

namespace lathe::train {
namespace {

// Dropout uses the seed itself as its key, masked tokens another: numbers must not repeat.
constexpr std::uint64_t kAugmentKey = 0x617567696D616765;
constexpr std::int64_t kMostShift = 1 << 10;

// A number from -most to most out of 32 random bits.
std::int64_t offset(std::uint32_t bits, std::int64_t most) {
  const auto choices = static_cast<std::uint64_t>(2 * most + 1);
  return static_cast<std::int64_t>(bits * choices >> 32) - most;
}

}  // namespace

Augmentation parse_augmentation(std::string_view text) {
  Augmentation result;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(item.size() + 1, text.size()));
    if (item == "flip") {
      result.flips = true;
      continue;
    }
    if (!item.starts_with("shift=")) throw unknown_name("augmentation", item, {"flip", "shift=N"});
    const char* const last = item.data() + item.size();
    const auto [end, error] = std::from_chars(item.data() + 6, last, result.shift);
    if (error != std::errc{} || end != last || result.shift < 1 || result.shift > kMostShift)
      fail("{}: expected 1 to {} pixels", item, kMostShift);
  }
  return result;
}

void augment(std::span<const float> image, std::span<const std::int64_t> shape,
             std::span<const float> background, const Augmentation& augmentation,
             std::uint64_t seed, std::int64_t example, std::int64_t epoch,
             std::span<float> result) {
  const std::int64_t channels = shape[0], height = shape[1], width = shape[2];
  const PhiloxCounter random =
      philox({static_cast<std::uint32_t>(example), static_cast<std::uint32_t>(example >> 32),
              static_cast<std::uint32_t>(epoch), static_cast<std::uint32_t>(epoch >> 32)},
             seed ^ kAugmentKey);
  const bool is_flipped = augmentation.flips && random[0] >> 31 != 0;
  const std::int64_t down = offset(random[1], augmentation.shift);
  const std::int64_t right = offset(random[2], augmentation.shift);
  float* next = result.data();
  for (std::int64_t channel = 0; channel < channels; ++channel) {
    const float* const plane = image.data() + channel * height * width;
    for (std::int64_t row = 0; row < height; ++row)
      for (std::int64_t column = 0; column < width; ++column) {
        const std::int64_t from_row = row - down;
        const std::int64_t moved = column - right;
        const std::int64_t from_column = is_flipped ? width - 1 - moved : moved;
        const bool is_inside =
            from_row >= 0 && from_row < height && from_column >= 0 && from_column < width;
        *next++ = is_inside ? plane[from_row * width + from_column]
                            : background[static_cast<std::size_t>(channel)];
      }
  }
}

}  // namespace lathe::train
