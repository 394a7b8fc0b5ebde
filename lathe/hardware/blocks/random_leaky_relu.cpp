#include <fmt/format.h>

#include <algorithm>

#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/hardware/block.h"
#include "lathe/hardware/low_bits.h"
#include "lathe/numerics/integer/slope_register.h"

namespace lathe::hardware::random_leaky_relu {
namespace {

std::vector<Stream> infer(const BlockCall& call) {
  const std::int64_t seed = call.parameter("seed"), taps = call.parameter("taps");
  const Element& element = call.inputs[0].element;
  if (!element.is_signed || element.width > 32)
    fail("random_leaky_relu needs signed elements of at most 32 bits, not {}", element.text());
  if (seed < 1 || seed > 255) fail("seed {} must be 1 to 255", seed);
  if (taps < 1 || taps > 255) fail("taps {} must be 1 to 255", taps);
  return call.inputs;
}

// The register is part of what the block computes: it steps once for each beat, not each element,
// and goes on from frame to frame.
std::vector<Values> evaluate(const BlockCall& call, const std::vector<Values>& inputs) {
  const Stream& stream = call.inputs[0];
  numerics::SlopeRegister slopes{.state = static_cast<unsigned>(call.parameter("seed")),
                                 .taps = static_cast<unsigned>(call.parameter("taps"))};
  const auto size = static_cast<std::size_t>(stream.size);
  const auto lanes = static_cast<std::size_t>(stream.lanes);
  Values result = inputs[0];
  for (std::size_t vector = 0; vector < result.size(); vector += size)
    for (std::size_t beat = 0; beat < size; beat += lanes, slopes.step())
      for (std::size_t i = beat; i < std::min(size, beat + lanes); ++i)
        result[vector + i] = low_bits(slopes.apply(result[vector + i]), stream.element);
  return {result};
}

const Register registration{Block{
    .name = "random_leaky_relu",
    .summary = "leaky_relu with a slope that is drawn for every beat",
    .parameters = {{.name = "seed", .default_value = 1, .summary = "of the shift register"},
                   {.name = "taps",
                    .default_value = 0xB8,
                    .summary = "mask of the bits whose parity is shifted in"}},
    .has_memory = true,
    .infer = infer,
    .evaluate = evaluate,
    .timing = [](const BlockCall&) -> Timing { return beat_by_beat(); },
    // The slope has five bits and a sign, and six bits of the product are dropped.
    .resources = [](const BlockCall& call) -> Resources {
      const int width = call.inputs[0].element.width;
      return {.dsp = call.inputs[0].lanes * dsp_of_product(width, 6, width + 6)};
    },
    .module_parameters = [](const BlockCall& call) -> ModuleParameters {
      return {.integers = {{"LANES", call.inputs[0].lanes},
                           {"WIDTH", call.inputs[0].element.width},
                           {"SEED", call.parameter("seed")},
                           {"TAPS", call.parameter("taps")}}};
    },
    .describe =
        [](const BlockCall& call) {
          return fmt::format(
              "y = x, or where x < 0 floor(x * slope / 64), slope 8 to 20 of a shift register, in "
              "{}",
              call.inputs[0].element.text());
        },
}};

}  // namespace
}  // namespace lathe::hardware::random_leaky_relu
