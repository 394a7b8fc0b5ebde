#include <fmt/format.h>

#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/hardware/block.h"
#include "lathe/hardware/low_bits.h"

namespace lathe::hardware::leaky_relu {
namespace {

std::vector<Stream> infer(const BlockCall& call) {
  const std::int64_t slope = call.parameter("slope"), shift = call.parameter("shift");
  if (!call.inputs[0].element.is_signed)
    fail("leaky_relu of {}, which is never negative", call.inputs[0].element.text());
  if (call.inputs[0].element.width > 32) fail("leaky_relu of more than 32 bits");
  if (slope < 0 || slope > 65535) fail("slope {} must be 0 to 65535", slope);
  if (shift < 0 || shift > 16) fail("shift {} must be 0 to 16", shift);
  return call.inputs;
}

std::vector<Values> evaluate(const BlockCall& call, const std::vector<Values>& inputs) {
  const std::int64_t slope = call.parameter("slope"), shift = call.parameter("shift");
  Values result = inputs[0];
  for (std::int64_t& x : result)
    if (x < 0) x = low_bits((x * slope) >> shift, call.inputs[0].element);
  return {result};
}

const Register registration{Block{
    .name = "leaky_relu",
    .summary = "x, or where it is negative x times a slope, floored",
    .parameters = {{.name = "slope", .summary = "numerator, over 2^shift"},
                   {.name = "shift", .summary = "bits of the slope after the point"}},
    .infer = infer,
    .evaluate = evaluate,
    .timing = [](const BlockCall&) -> Timing { return beat_by_beat(); },
    .resources = [](const BlockCall& call) -> Resources {
      const int width = call.inputs[0].element.width;
      return {.dsp = call.inputs[0].lanes * dsp_of_scaling(width, call.parameter("slope"),
                                                           width + call.small_parameter("shift"))};
    },
    .module_parameters = [](const BlockCall& call) -> ModuleParameters {
      return {.integers = {{"LANES", call.inputs[0].lanes},
                           {"WIDTH", call.inputs[0].element.width},
                           {"SLOPE", call.parameter("slope")},
                           {"SHIFT", call.parameter("shift")}}};
    },
    .describe =
        [](const BlockCall& call) {
          return fmt::format("y = x, or where x < 0 floor(x * {} / {}), in {}",
                             call.parameter("slope"), 1 << call.parameter("shift"),
                             call.inputs[0].element.text());
        },
}};

}  // namespace
}  // namespace lathe::hardware::leaky_relu
