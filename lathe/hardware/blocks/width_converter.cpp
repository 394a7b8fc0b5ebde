#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/hardware/block.h"

namespace lathe::hardware::width_converter {
namespace {

std::vector<Stream> infer(const BlockCall& call) {
  Stream result = call.inputs[0];
  result.lanes = call.small_parameter("lanes");
  if (result.lanes < 1) fail("lanes {} must be at least 1", result.lanes);
  return {result};
}

// The store gives its low elements as soon as they make a beat or end a vector, and takes a beat
// where there is room behind what stays.
Timing timing(const BlockCall& call) {
  const std::int64_t size = call.inputs[0].size, from = call.inputs[0].lanes,
                     to = call.outputs[0].lanes, capacity = from + to - std::gcd(from, to);
  BufferTiming result{.need = {}, .free = {}, .frees_at_once = true, .stages = 0};
  for (std::int64_t given = 0; given < size; given += to)
    result.need.push_back((std::min(size, given + to) + from - 1) / from);
  for (std::int64_t taken = 0; taken < size; taken += from) {
    const std::int64_t more = std::min(size, taken + from) - capacity;
    result.free.push_back(taken == 0 ? 0 : std::max<std::int64_t>(0, (more + to - 1) / to));
  }
  return result;
}

const Register registration{Block{
    .name = "width_converter",
    .summary = "packs vectors into beats of another number of lanes",
    .parameters = {{.name = "lanes", .summary = "elements of an output beat"}},
    .infer = infer,
    .evaluate = [](const BlockCall&, const std::vector<Values>& inputs) { return inputs; },
    .timing = timing,
    .module_parameters = [](const BlockCall& call) -> ModuleParameters {
      return {.integers = {{"WIDTH", call.inputs[0].element.width},
                           {"SIZE", call.inputs[0].size},
                           {"FROM", call.inputs[0].lanes},
                           {"TO", call.parameter("lanes")}}};
    },
    .describe =
        [](const BlockCall& call) {
          return fmt::format("vectors of {}: from {} to {} a beat", call.inputs[0].size,
                             call.inputs[0].lanes, call.outputs[0].lanes);
        },
}};

}  // namespace
}  // namespace lathe::hardware::width_converter
