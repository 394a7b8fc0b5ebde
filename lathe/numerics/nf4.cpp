// NF4: sixteen levels at quantiles of the normal distribution, scaled by each block's largest
// magnitude (QLoRA, arXiv 2305.14314). Zero and both ends are levels.
#include <array>
#include <cmath>

#include "lathe/core/number_format.h"
#include "lathe/numerics/format_arguments.h"
#include "lathe/numerics/scaled_format.h"

namespace lathe::numerics {

namespace {

// The float32 values that existing checkpoints use; nf4_test.cpp derives them again.
constexpr std::array<float, LevelCodec::kLevels> kLevels = {
    -1.0f,
    -0.6961928009986877f,
    -0.5250730514526367f,
    -0.39491748809814453f,
    -0.28444138169288635f,
    -0.18477343022823334f,
    -0.09105003625154495f,
    0.0f,
    0.07958029955625534f,
    0.16093020141124725f,
    0.24611230194568634f,
    0.33791524171829224f,
    0.44070982933044434f,
    0.5626170039176941f,
    0.7229568362236023f,
    1.0f,
};

// The first float that belongs to the upper of two neighbours: above the middle, or on it where
// the upper code is even.
const std::array<float, LevelCodec::kLevels> kThresholds = [] {
  std::array<float, LevelCodec::kLevels> thresholds{};
  for (std::size_t i = 0; i + 1 < kLevels.size(); ++i) {
    const double middle = (double{kLevels[i]} + double{kLevels[i + 1]}) / 2;
    const auto nearest = static_cast<float>(middle);
    const bool upper_is_even = (i + 1) % 2 == 0;
    const bool belongs = nearest > middle || (nearest == middle && upper_is_even);
    thresholds[i] = belongs ? nearest : std::nextafter(nearest, 2.0f);
  }
  return thresholds;
}();

std::shared_ptr<const NumberFormat> parse(std::string_view text) {
  FormatArguments arguments(text);
  const std::int64_t block = arguments.block_option(64);
  arguments.finish();

  ScaledSpec spec;
  spec.codec = LevelCodec{kLevels.data(), kThresholds.data()};
  spec.rule = ScaleRule::LargestMagnitude;
  spec.by_reciprocal = true;
  FormatFacts& facts = spec.facts;
  facts.family = "nf4";
  facts.text = block == 64 ? "nf4" : fmt::format("nf4:block={}", block);
  facts.scale_source = ScaleSource::Local;
  facts.granularity = Granularity::Block;
  facts.block_columns = block;
  facts.scale_bits = 32;
  return make_scaled_format(std::move(spec));
}

const Register registration{FormatFamily{
    .name = "nf4",
    .summary = "sixteen levels for normally distributed numbers",
    .syntax = "nf4[:block=64]",
    .parse = parse,
    .examples = {"nf4", "nf4:block=32"},
}};

}  // namespace
}  // namespace lathe::numerics
