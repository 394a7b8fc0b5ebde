#include <fmt/format.h>

#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/hardware/block.h"

namespace lathe::hardware::stream_fork {
namespace {

std::size_t branches(const BlockCall& call) {
  const std::int64_t count = call.parameter("branches");
  if (count < 2 || count > 1024) fail("branches {} must be 2 to 1024", count);
  return static_cast<std::size_t>(count);
}

const Register registration{Block{
    .name = "stream_fork",
    .summary = "gives each beat to several readers",
    .parameters = {{.name = "branches", .summary = "readers"}},
    .has_any_outputs = true,
    .infer =
        [](const BlockCall& call) { return std::vector<Stream>(branches(call), call.inputs[0]); },
    .evaluate =
        [](const BlockCall& call, const std::vector<Values>& inputs) {
          return std::vector<Values>(branches(call), inputs[0]);
        },
    .timing = [](const BlockCall&) -> Timing { return ForkTiming{}; },
    .module_parameters = [](const BlockCall& call) -> ModuleParameters {
      return {
          .integers = {{"WIDTH", call.inputs[0].bits()}, {"BRANCHES", call.parameter("branches")}}};
    },
    .describe =
        [](const BlockCall& call) { return fmt::format("gives each beat to {}", branches(call)); },
}};

}  // namespace
}  // namespace lathe::hardware::stream_fork
