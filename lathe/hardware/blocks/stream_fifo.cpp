#include <fmt/format.h>

#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/hardware/block.h"

namespace lathe::hardware::stream_fifo {
namespace {

std::int64_t depth(const BlockCall& call) {
  return call.parameter("depth");
}

// The last beat stands in the output register of a block RAM.
bool is_block(const BlockCall& call) {
  return is_block_memory(call.inputs[0].bits(), depth(call) - 1);
}

const Register registration{Block{
    .name = "stream_fifo",
    .summary = "a queue of beats",
    .parameters = {{.name = "depth", .summary = "beats it holds"}},
    .infer =
        [](const BlockCall& call) {
          if (depth(call) < 1) fail("depth {} must be at least 1", depth(call));
          return call.inputs;
        },
    .evaluate = [](const BlockCall&, const std::vector<Values>& inputs) { return inputs; },
    .timing = [](const BlockCall& call) -> Timing {
      return StorageTiming{.capacity = depth(call), .has_output_register = is_block(call)};
    },
    .resources = [](const BlockCall& call) -> Resources {
      if (!is_block(call)) return {};
      return {.bram18 =
                  bram18_of_memory(call.inputs[0].bits(), depth(call) - 1, MemoryUse::Written)};
    },
    .module_parameters = [](const BlockCall& call) -> ModuleParameters {
      return {.integers = {{"WIDTH", call.inputs[0].bits()},
                           {"DEPTH", depth(call)},
                           {"BLOCK", is_block(call) ? 1 : 0}}};
    },
    .describe =
        [](const BlockCall& call) {
          return fmt::format("holds {} beats of {} bits", depth(call), call.inputs[0].bits());
        },
}};

}  // namespace
}  // namespace lathe::hardware::stream_fifo
