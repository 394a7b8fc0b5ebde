#include <fmt/format.h>

#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/hardware/block.h"

// The table is in the order of the inputs' values, the lowest first; the memory in that of their
// patterns.
namespace lathe::hardware::table_function {
namespace {

Element result_element(const BlockCall& call) {
  return {.width = call.small_parameter("width"), .is_signed = call.parameter("signed") != 0};
}

std::vector<Stream> infer(const BlockCall& call) {
  const Element& from = call.inputs[0].element;
  const Element to = result_element(call);
  if (from.width > 16) fail("a table of 2^{} entries is too large, at most 2^16", from.width);
  if (to.width < 1 || to.width > 64) fail("width {} must be 1 to 64", to.width);
  const Values& table = call.table("table");
  if (table.size() != std::size_t{1} << from.width)
    fail("table has {} entries, not 2^{}", table.size(), from.width);
  for (const std::int64_t value : table)
    if (value < to.lowest() || value > to.highest())
      fail("table holds {}, which is no {}", value, to.text());
  Stream result = call.inputs[0];
  result.element = to;
  return {result};
}

std::vector<Values> evaluate(const BlockCall& call, const std::vector<Values>& inputs) {
  const Values& table = call.table("table");
  const std::int64_t lowest = call.inputs[0].element.lowest();
  Values result = inputs[0];
  for (std::int64_t& x : result) x = table[static_cast<std::size_t>(x - lowest)];
  return {result};
}

bool is_block(const BlockCall& call) {
  return is_block_memory(call.parameter("width"), std::int64_t{1} << call.inputs[0].element.width);
}

ModuleParameters module_parameters(const BlockCall& call) {
  const Element& from = call.inputs[0].element;
  const Values& table = call.table("table");
  MemoryImage image{.width = result_element(call).width, .per_word = 1, .elements = table};
  const std::size_t half = table.size() / 2;
  for (std::size_t pattern = 0; from.is_signed && pattern < table.size(); ++pattern)
    image.elements[pattern] = table[pattern ^ half];
  return {.integers = {{"LANES", call.inputs[0].lanes},
                       {"IW", from.width},
                       {"OW", image.width},
                       {"BLOCK", is_block(call) ? 1 : 0}},
          .memories = {{"TABLE", image}}};
}

const Register registration{Block{
    .name = "table_function",
    .summary = "any function of few bits, by a table",
    .parameters = {{.name = "width", .summary = "bits of an output"},
                   {.name = "signed", .default_value = 1, .summary = "1: outputs are signed"}},
    .tables = {"table"},
    .parts = {"rom"},
    .infer = infer,
    .evaluate = evaluate,
    .timing = [](const BlockCall&) -> Timing { return beat_by_beat(); },
    .resources = [](const BlockCall& call) -> Resources {
      if (!is_block(call)) return {};
      return {.bram18 = call.inputs[0].lanes *
                        bram18_of_memory(call.parameter("width"),
                                         std::int64_t{1} << call.inputs[0].element.width,
                                         MemoryUse::ReadOnly)};
    },
    .module_parameters = module_parameters,
    .describe =
        [](const BlockCall& call) {
          return fmt::format("y = table[x], {} to {}", call.inputs[0].element.text(),
                             result_element(call).text());
        },
}};

}  // namespace
}  // namespace lathe::hardware::table_function
