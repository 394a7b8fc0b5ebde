#include <algorithm>

#include "lathe/numerics/integer/slope_register.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/integer/integer_result.h"
#include "lathe/ops/operand_checks.h"

// integer_rrelu(x[..,n]) {lanes, first, taps}: x where it is not negative, floor(x * slope / 64)
// elsewhere. Rows come in beats of `lanes` elements, the last of a row perhaps partly filled; the
// register that gives a beat's slope goes on from row to row.
namespace lathe::ops::integer_rrelu {
namespace {

std::vector<Type> infer(const OpCall& call) {
  const Type& x = call.input(0);
  require_integer("integer_rrelu", "x", x);
  require_rank_at_least("integer_rrelu", "x", x, 1);
  const AttributeReader attributes = call.attributes();
  if (attributes.integer("lanes") < 1)
    fail("integer_rrelu: {} lanes, and expected at least one", attributes.integer("lanes"));
  for (const char* name : {"first", "taps"})
    if (attributes.integer(name) < 1 || attributes.integer(name) > 255)
      fail("integer_rrelu: {} {}, and expected 1 to 255", name, attributes.integer(name));
  return {{.dtype = x.dtype, .shape = x.shape}};
}

void reference(const KernelCall& call) {
  std::vector<std::int64_t> values = read_integers(call.input(0));
  numerics::SlopeRegister slopes{.state = static_cast<unsigned>(call.attributes.integer("first")),
                                 .taps = static_cast<unsigned>(call.attributes.integer("taps"))};
  const auto size = static_cast<std::size_t>(call.input(0).dims().back());
  const auto lanes = static_cast<std::size_t>(call.attributes.integer("lanes"));
  for (std::size_t row = 0; row < values.size(); row += size)
    for (std::size_t beat = 0; beat < size; beat += lanes, slopes.step())
      for (std::size_t i = beat; i < std::min(size, beat + lanes); ++i)
        values[row + i] = slopes.apply(values[row + i]);
  write_integers(call.outputs[0], values);
}

const Register registration{Op{
    .name = "integer_rrelu",
    .summary = "a randomised leaky relu of integers, with a slope for each beat",
    .operands = {{.name = "x"}},
    .attributes = {{.name = "lanes", .default_value = 4, .summary = "elements of a beat"},
                   {.name = "first",
                    .default_value = numerics::SlopeRegister::kFirst,
                    .summary = "where the register starts, 1 to 255"},
                   {.name = "taps",
                    .default_value = numerics::SlopeRegister::kTaps,
                    .summary = "the bits of the register whose parity is shifted in"}},
    .infer = infer,
    .flops = [](const OpCall& call) { return call.input(0).num_elements(); },
    .reference = reference,
    .is_differentiable = false,
    .examples = {"integer_rrelu(i8[B,8])", "integer_rrelu(i16[2,5]) {lanes=2, first=9, taps=29}"},
}};

}  // namespace
}  // namespace lathe::ops::integer_rrelu
