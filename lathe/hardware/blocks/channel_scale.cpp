#include <fmt/format.h>

#include <algorithm>

#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/hardware/block.h"

// The tables "factor" and "summand" are [rows, size] and come round again after `rows` vectors.
namespace lathe::hardware::channel_scale {
namespace {

int width_of(const Values& table) {
  const auto [low, high] = std::minmax_element(table.begin(), table.end());
  return signed_width(*low, *high);
}

int sum_width(const BlockCall& call) {
  const Values &factor = call.table("factor"), &summand = call.table("summand");
  const Element& x = call.inputs[0].element;
  Wide low = 0, high = 0;
  for (std::size_t i = 0; i < factor.size(); ++i) {
    const Wide a = Wide{factor[i]} * x.lowest(), b = Wide{factor[i]} * x.highest();
    low = std::min(low, std::min(a, b) + summand[i]);
    high = std::max(high, std::max(a, b) + summand[i]);
  }
  return signed_width(low, high);
}

std::vector<Stream> infer(const BlockCall& call) {
  const std::int64_t rows = call.parameter("rows");
  if (rows < 1 || call.inputs[0].vectors % rows != 0)
    fail("{} vectors are no groups of {}", call.inputs[0].vectors, rows);
  for (const char* name : {"factor", "summand"}) {
    const auto size = static_cast<std::int64_t>(call.table(name).size());
    if (size != rows * call.inputs[0].size)
      fail("{} has {} elements, not {}", name, size, rows * call.inputs[0].size);
  }
  if (sum_width(call) > 64) fail("a sum needs {} bits, more than 64", sum_width(call));
  Stream result = call.inputs[0];
  result.element = call.requantization().element;
  return {result};
}

std::vector<Values> evaluate(const BlockCall& call, const std::vector<Values>& inputs) {
  const Requantization requantization = call.requantization();
  const Values &factor = call.table("factor"), &summand = call.table("summand");
  Values result = inputs[0];
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = requantization.apply(Wide{result[i]} * factor[i % factor.size()] +
                                     summand[i % factor.size()]);
  return {result};
}

std::int64_t beats(const BlockCall& call) {
  return call.parameter("rows") * call.inputs[0].beats_per_vector();
}

// Beat by beat, with zeros in empty lanes.
MemoryImage image(const BlockCall& call, const Values& table) {
  const Stream& input = call.inputs[0];
  MemoryImage result{.width = width_of(table), .per_word = input.lanes};
  for (std::size_t row = 0; row < table.size(); row += static_cast<std::size_t>(input.size))
    for (std::int64_t i = 0; i < input.beats_per_vector() * input.lanes; ++i)
      result.elements.push_back(i < input.size ? table[row + static_cast<std::size_t>(i)] : 0);
  return result;
}

bool is_block(const BlockCall& call, const char* table) {
  return is_block_memory(call.inputs[0].lanes * width_of(call.table(table)), beats(call));
}

Resources block_resources(const BlockCall& call) {
  const Element& x = call.inputs[0].element;
  const std::int64_t lanes = call.inputs[0].lanes;
  Resources result{.dsp = lanes * (dsp_of_product(x.width + (x.is_signed ? 0 : 1),
                                                  width_of(call.table("factor")), sum_width(call)) +
                                   dsp_of_scaling(sum_width(call), call.parameter("multiplier")))};
  for (const char* table : {"factor", "summand"})
    if (is_block(call, table))
      result.bram18 +=
          bram18_of_memory(lanes * width_of(call.table(table)), beats(call), MemoryUse::ReadOnly);
  return result;
}

ModuleParameters module_parameters(const BlockCall& call) {
  const Stream& input = call.inputs[0];
  const MemoryImage factor = image(call, call.table("factor"));
  const MemoryImage summand = image(call, call.table("summand"));
  ModuleParameters result{.integers = {{"LANES", input.lanes},
                                       {"BEATS", beats(call)},
                                       {"IW", input.element.width},
                                       {"ISIGNED", input.element.is_signed ? 1 : 0},
                                       {"GW", factor.width},
                                       {"BW", summand.width},
                                       {"AW", sum_width(call)}},
                          .memories = {{"FACTORS", factor}, {"SUMMANDS", summand}}};
  append_requantization(result, call.requantization());
  result.integers.push_back({"BLOCK", is_block(call, "factor") ? 1 : 0});
  result.integers.push_back({"BLOCK_B", is_block(call, "summand") ? 1 : 0});
  return result;
}

const Register registration{Block{
    .name = "channel_scale",
    .summary = "a factor and a summand for each element of a vector",
    .parameters = with_requantization(
        {{.name = "rows", .default_value = 1, .summary = "vectors that have their own"}}),
    .tables = {"factor", "summand"},
    .parts = {"requant", "rom"},
    .infer = infer,
    .evaluate = evaluate,
    .timing = [](const BlockCall&) -> Timing { return beat_by_beat(1, 3); },
    .resources = block_resources,
    .module_parameters = module_parameters,
    .describe =
        [](const BlockCall& call) {
          return fmt::format("y = x * g + b, x {}, {}-bit factors, {}-bit sums, {}",
                             call.inputs[0].element.text(), width_of(call.table("factor")),
                             sum_width(call), call.requantization().text());
        },
}};

}  // namespace
}  // namespace lathe::hardware::channel_scale
