#include <algorithm>

#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/hardware/block.h"

namespace lathe::hardware::relu {
namespace {

std::vector<Stream> infer(const BlockCall& call) {
  if (!call.inputs[0].element.is_signed)
    fail("relu of {}, which is never negative", call.inputs[0].element.text());
  return call.inputs;
}

const Register registration{Block{
    .name = "relu",
    .summary = "the larger of x and zero",
    .infer = infer,
    .evaluate =
        [](const BlockCall&, const std::vector<Values>& inputs) {
          std::vector<Values> results = inputs;
          for (std::int64_t& x : results[0]) x = std::max<std::int64_t>(x, 0);
          return results;
        },
    .timing = [](const BlockCall&) -> Timing { return beat_by_beat(); },
    .module_parameters = [](const BlockCall& call) -> ModuleParameters {
      return {
          .integers = {{"LANES", call.inputs[0].lanes}, {"WIDTH", call.inputs[0].element.width}}};
    },
    .describe =
        [](const BlockCall& call) { return "y = max(x, 0) in " + call.inputs[0].element.text(); },
}};

}  // namespace
}  // namespace lathe::hardware::relu
