#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/hardware/block.h"

namespace lathe::hardware::row_reduce {
namespace {

enum Operation { kSum, kSquares, kLargest, kSmallest, kIndex };

// Exact: as wide as the ends of the elements' range make it.
Element result_element(const BlockCall& call) {
  const Stream& row = call.inputs[0];
  const Wide low = row.element.lowest(), high = row.element.highest();
  const auto narrowest = [](Wide least, Wide most) -> Element {
    return {.width = least < 0 ? signed_width(least, most) : signed_width(0, most) - 1,
            .is_signed = least < 0};
  };
  switch (call.parameter("op")) {
    case kSum:
      return narrowest(low * row.size, high * row.size);
    case kSquares:
      return narrowest(0, std::max(low * low, high * high) * row.size);
    case kIndex:
      return narrowest(0, row.size - 1);
    default:
      return row.element;
  }
}

std::vector<Stream> infer(const BlockCall& call) {
  const std::int64_t op = call.parameter("op");
  if (op < kSum || op > kIndex)
    fail("op {} must be 0 (sum), 1 (squares), 2 (largest), 3 (smallest) or 4 (its index)", op);
  const Element element = result_element(call);
  if (element.width > 64) fail("a sum needs {} bits, more than 64", element.width);
  return {{.element = element, .lanes = 1, .size = 1, .vectors = call.inputs[0].vectors}};
}

std::vector<Values> evaluate(const BlockCall& call, const std::vector<Values>& inputs) {
  const std::int64_t op = call.parameter("op");
  Values result;
  for (auto row = inputs[0].begin(); row != inputs[0].end(); row += call.inputs[0].size) {
    const auto end = row + call.inputs[0].size;
    if (op == kLargest) result.push_back(*std::max_element(row, end));
    if (op == kSmallest) result.push_back(*std::min_element(row, end));
    if (op == kIndex) result.push_back(std::max_element(row, end) - row);
    if (op > kSquares) continue;
    std::int64_t sum = 0;
    for (auto x = row; x != end; ++x) sum += op == kSum ? *x : *x * *x;
    result.push_back(sum);
  }
  return {result};
}

Timing timing(const BlockCall& call) {
  const std::int64_t beats = call.inputs[0].beats_per_vector();
  SequenceTiming result{.period = {}, .stages = 2, .merge = 2};
  if (beats > 1) result.period.push_back({.count = beats - 1, .takes = 1, .gives = false});
  result.period.push_back({.count = 1, .takes = 1, .gives = true});
  return result;
}

const Register registration{Block{
    .name = "row_reduce",
    .summary =
        "one number of each vector: sum, squares, largest, smallest, or where the largest is",
    .parameters = {{.name = "op",
                    .summary =
                        "0 sum, 1 sum of squares, 2 largest, 3 smallest, 4 index of the largest"}},
    .infer = infer,
    .evaluate = evaluate,
    .timing = timing,
    .resources = [](const BlockCall& call) -> Resources {
      if (call.parameter("op") != kSquares) return {};
      const Element& x = call.inputs[0].element;
      const int bits = x.width + (x.is_signed ? 0 : 1);
      return {.dsp = call.inputs[0].lanes * dsp_of_product(bits, bits)};
    },
    .module_parameters = [](const BlockCall& call) -> ModuleParameters {
      return {.integers = {{"LANES", call.inputs[0].lanes},
                           {"SIZE", call.inputs[0].size},
                           {"IW", call.inputs[0].element.width},
                           {"ISIGNED", call.inputs[0].element.is_signed ? 1 : 0},
                           {"OP", call.parameter("op")},
                           {"OW", call.outputs[0].element.width}}};
    },
    .describe =
        [](const BlockCall& call) {
          constexpr std::array<const char*, 5> kNames = {"sum", "sum of squares", "largest",
                                                         "smallest", "index of the largest"};
          return fmt::format(
              "{} of {} {}, in {}", kNames[static_cast<std::size_t>(call.parameter("op"))],
              call.inputs[0].size, call.inputs[0].element.text(), call.outputs[0].element.text());
        },
}};

}  // namespace
}  // namespace lathe::hardware::row_reduce
