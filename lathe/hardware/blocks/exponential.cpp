#include "lathe/numerics/integer/exponential.h"

#include <fmt/format.h>

#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/hardware/block.h"
#include "lathe/hardware/row_operand.h"

// The exponentials of softmax (docs/integer.md): of rows of scores and the largest of each row.
namespace lathe::hardware::exponential {
namespace {

std::vector<Stream> infer(const BlockCall& call) {
  require_row_operand(call);
  const Element &x = call.inputs[0].element, &m = call.inputs[1].element;
  const std::int64_t multiplier = call.parameter("multiplier"), shift = call.parameter("shift");
  if (x.width != m.width || x.is_signed != m.is_signed)
    fail("scores are {}, their largest {}", x.text(), m.text());
  if (multiplier < 0 || multiplier > INT32_MAX)
    fail("multiplier {} must be 0 to {}", multiplier, INT32_MAX);
  if (shift < 1 || shift > 62) fail("shift {} must be 1 to 62", shift);
  if (signed_width(0, (Wide{x.highest()} - x.lowest()) * multiplier + (Wide{1} << shift)) > 64)
    fail("scores of {} bits times {} need more than 63 bits", x.width, multiplier);
  Stream result = call.inputs[0];
  result.element = {.width = 15, .is_signed = false};
  return {result};
}

std::vector<Values> evaluate(const BlockCall& call, const std::vector<Values>& inputs) {
  const auto row = static_cast<std::size_t>(row_size(call));
  Values result = inputs[0];
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::int64_t distance = inputs[1][i / row] - result[i];
    check(distance >= 0, "no score above the largest");
    result[i] = numerics::exponential(numerics::exponential_steps(
        distance, call.parameter("multiplier"), call.small_parameter("shift")));
  }
  return {result};
}

int multiplier_width(const BlockCall& call) {
  return signed_width(0, call.parameter("multiplier")) - 1;
}

const Register registration{Block{
    .name = "exponential",
    .summary = "softmax's powers of two, by a table, of rows and the largest of each",
    .parameters = {{.name = "multiplier",
                    .summary = "over 2^shift: 64ths of a power of two a step"},
                   {.name = "shift", .summary = "at least 1"}},
    .parts = {"rom"},
    .input_ports = {"s0", "s1"},
    .infer = infer,
    .evaluate = evaluate,
    .timing = [](const BlockCall& call) -> Timing { return row_operand_timing(call, 4); },
    .resources = [](const BlockCall& call) -> Resources {
      return {.dsp = call.inputs[0].lanes * dsp_of_scaling(call.inputs[0].element.width + 2,
                                                           call.parameter("multiplier"))};
    },
    .module_parameters = [](const BlockCall& call) -> ModuleParameters {
      return {.integers = {{"LANES", call.inputs[0].lanes},
                           {"ROW", row_beats(call)},
                           {"IW", call.inputs[0].element.width},
                           {"ISIGNED", call.inputs[0].element.is_signed ? 1 : 0},
                           {"MW", multiplier_width(call)},
                           {"MULTIPLIER", call.parameter("multiplier")},
                           {"SHIFT", call.parameter("shift")}},
              .memories = {{"TABLE",
                            {.width = 15,
                             .per_word = 1,
                             .elements = {numerics::kExponentialTable.begin(),
                                          numerics::kExponentialTable.end()}}}}};
    },
    .describe =
        [](const BlockCall& call) {
          return fmt::format("y = 32767 * 2^(-steps / 64), steps = (m - x) * {} >> {}, x {}",
                             call.parameter("multiplier"), call.parameter("shift"),
                             call.inputs[0].element.text());
        },
}};

}  // namespace
}  // namespace lathe::hardware::exponential
