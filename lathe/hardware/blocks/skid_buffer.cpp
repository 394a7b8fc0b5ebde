#include "lathe/core/registry.h"
#include "lathe/hardware/block.h"

namespace lathe::hardware::skid_buffer {
namespace {

const Register registration{Block{
    .name = "skid_buffer",
    .summary = "a register slice that cuts every path between two blocks",
    .infer = [](const BlockCall& call) { return call.inputs; },
    .evaluate = [](const BlockCall&, const std::vector<Values>& inputs) { return inputs; },
    .timing = [](const BlockCall&) -> Timing { return StorageTiming{.capacity = 2}; },
    .module_parameters = [](const BlockCall& call) -> ModuleParameters {
      return {.integers = {{"WIDTH", call.inputs[0].bits()}}};
    },
    .describe = [](const BlockCall&) -> std::string { return "registers data, valid and ready"; },
}};

}  // namespace
}  // namespace lathe::hardware::skid_buffer
