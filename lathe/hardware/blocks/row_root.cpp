#include <fmt/format.h>

#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/hardware/block.h"
#include "lathe/numerics/integer/normalization.h"

// What layer norm divides by (docs/integer.md), from the sum of a row and that of its squares.
namespace lathe::hardware::row_root {
namespace {

numerics::Normalization normalization(const BlockCall& call) {
  return {.size = call.parameter("size"),
          .epsilon = call.parameter("epsilon"),
          .root_fraction = call.small_parameter("fraction"),
          .fraction = 0};
}

int variance_width(const BlockCall& call) {
  return signed_width(0, Wide{call.inputs[1].element.highest()} * call.parameter("size") +
                             call.parameter("epsilon"));
}

int root_width(const BlockCall& call) {
  return (variance_width(call) + 2 * call.small_parameter("fraction") + 1) / 2;
}

std::vector<Stream> infer(const BlockCall& call) {
  const Stream &sum = call.inputs[0], &squares = call.inputs[1];
  if (sum.size != 1 || squares.size != 1 || sum.lanes != 1 || squares.lanes != 1 ||
      sum.vectors != squares.vectors)
    fail("{} and {} are not one element for each row", sum.text(), squares.text());
  if (squares.element.is_signed) fail("squares that may be negative");
  const numerics::Normalization normalization = row_root::normalization(call);
  if (normalization.size < 1 || normalization.size > INT32_MAX)
    fail("size {} must be 1 to {}", normalization.size, INT32_MAX);
  if (normalization.epsilon < 0) fail("epsilon {} is negative", normalization.epsilon);
  if (normalization.root_fraction < 0 || normalization.root_fraction > 16)
    fail("fraction {} must be 0 to 16", normalization.root_fraction);
  if (2 * root_width(call) > 64) fail("a variance of {} bits, more than 64", 2 * root_width(call));
  return {{.element = {.width = root_width(call), .is_signed = false},
           .lanes = 1,
           .size = 1,
           .vectors = sum.vectors}};
}

std::vector<Values> evaluate(const BlockCall& call, const std::vector<Values>& inputs) {
  Values result;
  for (std::size_t i = 0; i < inputs[0].size(); ++i)
    result.push_back(numerics::row_moments(inputs[0][i], inputs[1][i], normalization(call)).root);
  return {result};
}

Timing timing(const BlockCall& call) {
  return SequenceTiming{.period = {{.count = 1, .takes = 0b11, .gives = false},
                                   {.count = root_width(call) + 1, .takes = 0, .gives = false},
                                   {.count = 1, .takes = 0, .gives = true}},
                        .stages = 1,
                        .merge = 1};
}

const Register registration{Block{
    .name = "row_root",
    .summary = "size times the standard deviation of rows, from their sums and sums of squares",
    .parameters = {{.name = "size", .summary = "elements of a row"},
                   {.name = "epsilon", .default_value = 0, .summary = "added to size^2 * variance"},
                   {.name = "fraction", .default_value = 0, .summary = "bits behind the point"}},
    .input_ports = {"s0", "s1"},
    .infer = infer,
    .evaluate = evaluate,
    .timing = timing,
    .resources = [](const BlockCall& call) -> Resources {
      return {.dsp = dsp_of_product(call.inputs[0].element.width, call.inputs[0].element.width) +
                     dsp_of_scaling(call.inputs[1].element.width + 1, call.parameter("size"))};
    },
    .module_parameters = [](const BlockCall& call) -> ModuleParameters {
      return {.integers = {{"SW", call.inputs[0].element.width},
                           {"SSIGNED", call.inputs[0].element.is_signed ? 1 : 0},
                           {"QW", call.inputs[1].element.width},
                           {"SIZE", call.parameter("size")},
                           {"EPSILON", call.parameter("epsilon")},
                           {"VW", variance_width(call)},
                           {"FRACTION", call.parameter("fraction")},
                           {"OW", root_width(call)}}};
    },
    .describe =
        [](const BlockCall& call) {
          return fmt::format("y = isqrt(({} * q - s^2 + {}) * 4^{}), at least 1, s {}, q {}",
                             call.parameter("size"), call.parameter("epsilon"),
                             call.parameter("fraction"), call.inputs[0].element.text(),
                             call.inputs[1].element.text());
        },
}};

}  // namespace
}  // namespace lathe::hardware::row_root
