#include <fmt/format.h>

#include "lathe/core/registry.h"
#include "lathe/hardware/block.h"

namespace lathe::hardware::requantize {
namespace {

std::vector<Stream> infer(const BlockCall& call) {
  Stream result = call.inputs[0];
  result.element = call.requantization().element;
  return {result};
}

std::vector<Values> evaluate(const BlockCall& call, const std::vector<Values>& inputs) {
  const Requantization requantization = call.requantization();
  Values result = inputs[0];
  for (std::int64_t& value : result) value = requantization.apply(value);
  return {result};
}

ModuleParameters module_parameters(const BlockCall& call) {
  const Stream& input = call.inputs[0];
  ModuleParameters result{.integers = {{"LANES", input.lanes},
                                       {"IW", input.element.width},
                                       {"ISIGNED", input.element.is_signed ? 1 : 0}}};
  append_requantization(result, call.requantization());
  return result;
}

const Register registration{Block{
    .name = "requantize",
    .summary = "scales, rounds and saturates every element",
    .parameters = requantization_parameters(),
    .parts = {"requant"},
    .infer = infer,
    .evaluate = evaluate,
    .timing = [](const BlockCall&) -> Timing { return beat_by_beat(); },
    .resources = [](const BlockCall& call) -> Resources {
      const Element& x = call.inputs[0].element;
      return {.dsp = call.inputs[0].lanes *
                     dsp_of_scaling(x.width + (x.is_signed ? 0 : 1), call.parameter("multiplier"))};
    },
    .module_parameters = module_parameters,
    .describe =
        [](const BlockCall& call) {
          return fmt::format("{} {}", call.inputs[0].element.text(), call.requantization().text());
        },
}};

}  // namespace
}  // namespace lathe::hardware::requantize
