#include <fmt/format.h>

#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/hardware/block.h"

namespace lathe::hardware::requantize {
namespace {

int multiplier_width(const BlockCall& call) {
  const std::int64_t multiplier = call.parameter("multiplier");
  if (multiplier < 1 || multiplier > INT32_MAX)
    fail("multiplier {} must be 1 to {}", multiplier, INT32_MAX);
  return multiplier == 1 ? 0 : signed_width(0, multiplier) - 1;
}

std::vector<Stream> infer(const BlockCall& call) {
  Stream result = call.inputs[0];
  result.element = call.requantization().element;
  multiplier_width(call);
  return {result};
}

std::vector<Values> evaluate(const BlockCall& call, const std::vector<Values>& inputs) {
  const Requantization requantization = call.requantization();
  const std::int64_t multiplier = call.parameter("multiplier");
  Values result = inputs[0];
  for (std::int64_t& value : result) value = requantization.apply(value, multiplier);
  return {result};
}

ModuleParameters module_parameters(const BlockCall& call) {
  const Stream& input = call.inputs[0];
  ModuleParameters result{.integers = {{"LANES", input.lanes},
                                       {"IW", input.element.width},
                                       {"ISIGNED", input.element.is_signed ? 1 : 0},
                                       {"MW", multiplier_width(call)},
                                       {"MULTIPLIER", call.parameter("multiplier")}}};
  append_requantization(result, call.requantization());
  return result;
}

const Register registration{Block{
    .name = "requantize",
    .summary = "scales, rounds and saturates every element",
    .parameters = with_requantization(
        {{.name = "multiplier", .default_value = 1, .summary = "times this before the shift"}}),
    .parts = {"requant"},
    .infer = infer,
    .evaluate = evaluate,
    .timing = [](const BlockCall&) -> Timing { return beat_by_beat(); },
    .module_parameters = module_parameters,
    .describe =
        [](const BlockCall& call) {
          return fmt::format("{} times {}, {}", call.inputs[0].element.text(),
                             call.parameter("multiplier"), call.requantization().text());
        },
}};

}  // namespace
}  // namespace lathe::hardware::requantize
