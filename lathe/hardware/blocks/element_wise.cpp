#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/hardware/block.h"
#include "lathe/hardware/row_operand.h"

namespace lathe::hardware::element_wise {
namespace {

enum Operation { kAdd, kSubtract, kMultiply, kLarger };

bool is_row_wise(const BlockCall& call) {
  return call.parameter("per_row") != 0;
}

// The bits of what is computed before it is rounded, from the ends of the operands' ranges.
int sum_width(const BlockCall& call) {
  const Element &a = call.inputs[0].element, &b = call.inputs[1].element;
  const Wide factor_a = call.parameter("multiplier_a"), factor_b = call.parameter("multiplier_b");
  const Wide low_a = a.lowest() * factor_a, high_a = a.highest() * factor_a;
  const Wide low_b = b.lowest() * factor_b, high_b = b.highest() * factor_b;
  switch (call.parameter("op")) {
    case kAdd:
      return signed_width(low_a + low_b, high_a + high_b);
    case kSubtract:
      return signed_width(low_a - high_b, high_a - low_b);
    case kMultiply:
      return signed_width(std::min({low_a * low_b, low_a * high_b, high_a * low_b}),
                          std::max(low_a * low_b, high_a * high_b));
    default:
      return signed_width(std::min(low_a, low_b), std::max(high_a, high_b));
  }
}

std::vector<Stream> infer(const BlockCall& call) {
  const Stream &a = call.inputs[0], &b = call.inputs[1];
  const int op = call.small_parameter("op");
  if (op < kAdd || op > kLarger) fail("op {} must be 0 (+), 1 (-), 2 (*) or 3 (max)", op);
  for (const char* name : {"multiplier_a", "multiplier_b"}) {
    const std::int64_t multiplier = call.parameter(name);
    if (multiplier < 1 || multiplier > INT32_MAX || (op == kMultiply && multiplier != 1))
      fail("{} {} must be 1 to {}, and 1 in a product", name, multiplier, INT32_MAX);
  }
  const int width = sum_width(call);
  if (width > 64) fail("needs {} bits before it is rounded, more than 64", width);
  if (is_row_wise(call))
    require_row_operand(call);
  else if (a.size != b.size || a.lanes != b.lanes || a.vectors != b.vectors)
    fail("{} and {} do not go together", a.text(), b.text());
  Stream result = a;
  result.element = call.requantization().element;
  return {result};
}

std::vector<Values> evaluate(const BlockCall& call, const std::vector<Values>& inputs) {
  const Requantization requantization = call.requantization();
  const int op = call.small_parameter("op");
  const Wide factor_a = call.parameter("multiplier_a"), factor_b = call.parameter("multiplier_b");
  const auto row = is_row_wise(call) ? static_cast<std::size_t>(row_size(call)) : 1;
  Values result(inputs[0].size());
  for (std::size_t i = 0; i < result.size(); ++i) {
    const Wide a = inputs[0][i] * factor_a, b = inputs[1][i / row] * factor_b;
    const Wide y = op == kAdd        ? a + b
                   : op == kSubtract ? a - b
                   : op == kMultiply ? a * b
                                     : std::max(a, b);
    result[i] = requantization.apply(y);
  }
  return {result};
}

Timing timing(const BlockCall& call) {
  return is_row_wise(call) ? row_operand_timing(call, 2) : beat_by_beat(0b11, 2);
}

ModuleParameters module_parameters(const BlockCall& call) {
  const Stream &a = call.inputs[0], &b = call.inputs[1];
  ModuleParameters result{.integers = {{"LANES", a.lanes},
                                       {"AW", a.element.width},
                                       {"ASIGNED", a.element.is_signed ? 1 : 0},
                                       {"AM", call.parameter("multiplier_a")},
                                       {"BW", b.element.width},
                                       {"BSIGNED", b.element.is_signed ? 1 : 0},
                                       {"BM", call.parameter("multiplier_b")},
                                       {"ROW", is_row_wise(call) ? row_beats(call) : 0},
                                       {"OP", call.parameter("op")},
                                       {"XW", sum_width(call)}}};
  append_requantization(result, call.requantization());
  return result;
}

Resources block_resources(const BlockCall& call) {
  const auto bits = [&](std::size_t input) {
    const Element& element = call.inputs[input].element;
    return element.width + (element.is_signed ? 0 : 1);
  };
  std::int64_t lane = dsp_of_scaling(sum_width(call), call.parameter("multiplier"));
  if (call.parameter("op") == kMultiply) lane += dsp_of_product(bits(0), bits(1), sum_width(call));
  lane += dsp_of_scaling(bits(0), call.parameter("multiplier_a"), sum_width(call));
  lane += dsp_of_scaling(bits(1), call.parameter("multiplier_b"), sum_width(call));
  return {.dsp = call.inputs[0].lanes * lane};
}

std::string describe(const BlockCall& call) {
  constexpr std::array<const char*, 4> kSymbols = {"a + b", "a - b", "a * b", "max(a, b)"};
  const auto operand = [&](const char* name, std::size_t input, const char* parameter) {
    const std::int64_t multiplier = call.parameter(parameter);
    return fmt::format("{} {}{}", name, call.inputs[input].element.text(),
                       multiplier == 1 ? "" : fmt::format(" times {}", multiplier));
  };
  return fmt::format("y = {}, {}, {}{}, {}",
                     kSymbols[static_cast<std::size_t>(call.parameter("op"))],
                     operand("a", 0, "multiplier_a"), operand("b", 1, "multiplier_b"),
                     is_row_wise(call) ? ", one for a row" : "", call.requantization().text());
}

const Register registration{Block{
    .name = "element_wise",
    .summary = "sum, difference, product or maximum of two streams, brought to one point",
    .parameters = with_requantization(
        {{.name = "op", .default_value = 0, .summary = "0 a + b, 1 a - b, 2 a * b, 3 max"},
         {.name = "multiplier_a", .default_value = 1, .summary = "a is multiplied by"},
         {.name = "multiplier_b", .default_value = 1, .summary = "b is multiplied by"},
         {.name = "per_row", .default_value = 0, .summary = "1: b is one element a row"}}),
    .parts = {"requant"},
    .input_ports = {"s0", "s1"},
    .infer = infer,
    .evaluate = evaluate,
    .timing = timing,
    .resources = block_resources,
    .module_parameters = module_parameters,
    .describe = describe,
}};

}  // namespace
}  // namespace lathe::hardware::element_wise
