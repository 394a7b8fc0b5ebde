#include <fmt/format.h>

#include <algorithm>

#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/hardware/block.h"
#include "lathe/hardware/row_operand.h"
#include "lathe/numerics/integer/rounded_divide.h"

// x * multiplier / (d * 2^shift), d one for each vector of x: softmax and layer norm divide by it.
namespace lathe::hardware::divide {
namespace {

std::int64_t down(const BlockCall& call) {
  return std::max<std::int64_t>(0, call.parameter("shift"));
}
std::int64_t up(const BlockCall& call) {
  return std::max<std::int64_t>(0, -call.parameter("shift"));
}

int quotient_width(const BlockCall& call) {
  const Element element = call.requantization().element;
  return element.is_signed ? element.width - 1 : element.width;
}

std::int64_t steps(const BlockCall& call) {
  return (quotient_width(call) + call.parameter("bits") - 1) / call.parameter("bits");
}

// Of the dividend's magnitude; more than the bits that are shifted out of it.
std::int64_t dividend_width(const BlockCall& call) {
  const Element& x = call.inputs[0].element;
  const Wide most = std::max(-Wide{x.lowest()}, Wide{x.highest()}) * call.parameter("multiplier");
  return std::max<std::int64_t>(signed_width(0, most) - 1 + up(call),
                                steps(call) * call.parameter("bits") + 1);
}

std::vector<Stream> infer(const BlockCall& call) {
  require_row_operand(call);
  const Requantization requantization = call.requantization();
  if (requantization.rounding != IntegerRounding::NearestEven) fail("a quotient has mode 0");
  if (call.parameter("bits") < 1 || call.parameter("bits") > 16) fail("bits must be 1 to 16");
  if (call.parameter("shift") < -64 || call.parameter("shift") > 64)
    fail("shift {} must be -64 to 64", call.parameter("shift"));
  if (dividend_width(call) > 120 || call.inputs[1].element.width + down(call) > 120)
    fail("a dividend of {} bits and a divisor of {}: more than 120", dividend_width(call),
         call.inputs[1].element.width + down(call));
  if (call.inputs[1].element.is_signed) fail("a divisor that may be negative");
  Stream result = call.inputs[0];
  result.element = requantization.element;
  return {result};
}

std::vector<Values> evaluate(const BlockCall& call, const std::vector<Values>& inputs) {
  const Requantization requantization = call.requantization();
  const Requantization saturation{.is_symmetric = requantization.is_symmetric,
                                  .element = requantization.element};
  const auto row = static_cast<std::size_t>(row_size(call));
  Values result = inputs[0];
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::int64_t divisor = inputs[1][i / row];
    if (divisor == 0) fail("{}: division by zero", call.instance.name);
    const Wide quotient = numerics::rounded_divide(
        Wide{result[i]} * requantization.multiplier * (Wide{1} << up(call)),
        Wide{divisor} * (Wide{1} << down(call)));
    result[i] = saturation.apply(quotient);
  }
  return {result};
}

const Register registration{Block{
    .name = "divide",
    .summary = "rows divided by a number for each, rounded to the nearest",
    .parameters = with_requantization(
        {{.name = "bits", .default_value = 1, .summary = "of the quotient, in a cycle"}}),
    .input_ports = {"s0", "s1"},
    .infer = infer,
    .evaluate = evaluate,
    .timing = [](const BlockCall& call) -> Timing {
      return row_operand_timing(call, 1, steps(call) + 1);
    },
    .resources = [](const BlockCall& call) -> Resources {
      return {.dsp = call.inputs[0].lanes * dsp_of_scaling(call.inputs[0].element.width + 1,
                                                           call.parameter("multiplier"))};
    },
    .module_parameters = [](const BlockCall& call) -> ModuleParameters {
      const Requantization requantization = call.requantization();
      return {.integers = {{"LANES", call.inputs[0].lanes},
                           {"ROW", row_beats(call)},
                           {"XW", call.inputs[0].element.width},
                           {"XSIGNED", call.inputs[0].element.is_signed ? 1 : 0},
                           {"DW", call.inputs[1].element.width},
                           {"MULTIPLIER", requantization.multiplier},
                           {"UP", up(call)},
                           {"DOWN", down(call)},
                           {"NW", dividend_width(call)},
                           {"QW", quotient_width(call)},
                           {"BITS", call.parameter("bits")},
                           {"OW", requantization.element.width},
                           {"OSIGNED", requantization.element.is_signed ? 1 : 0},
                           {"SYMMETRIC", requantization.is_symmetric ? 1 : 0}}};
    },
    .describe =
        [](const BlockCall& call) {
          const Requantization requantization = call.requantization();
          return fmt::format("y = x * {} / (d * 2^{}), x {}, d {}, nearest even, saturated to {}",
                             requantization.multiplier, requantization.shift,
                             call.inputs[0].element.text(), call.inputs[1].element.text(),
                             requantization.element.text());
        },
}};

}  // namespace
}  // namespace lathe::hardware::divide
