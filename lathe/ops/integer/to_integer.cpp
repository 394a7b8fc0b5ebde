#include "lathe/numerics/codecs/integer_codec.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/integer/integer_result.h"
#include "lathe/ops/operand_checks.h"

// to_integer(x) {width, signed, symmetric, scale}: where floats enter an integer graph. The nearest
// integer to x / scale, a tie to the even one, brought to the range: the code that `quantize` gives
// x in the format of that width and scale. The quotient is a float's, as it is there. NaN is 0.
namespace lathe::ops::to_integer {
namespace {

std::vector<Type> infer(const OpCall& call) {
  const Type& x = call.input(0);
  if (x.dtype != DType::F32) fail("to_integer needs x of f32, not {}", to_text(x));
  const std::vector<double> scale = call.attributes().reals(kScale);
  if (scale.size() != 1 || !(scale[0] > 0)) fail("to_integer needs one scale, above 0");
  return {{.dtype = storage_of(integer_range(call.attributes())), .shape = x.shape}};
}

void reference(const KernelCall& call) {
  const numerics::IntegerRange range = integer_range(call.attributes);
  const numerics::IntegerCodec codec{
      .bits = range.width, .low = range.low(), .high = range.high(), .zero = 0};
  const auto scale = static_cast<float>(call.attributes.reals(kScale)[0]);
  std::vector<std::int64_t> y;
  for (const float x : call.input(0).data<float>())
    y.push_back(codec.round(x / scale, Rounding::NearestEven, 0));
  write_integers(call.outputs[0], y);
}

const Register registration{Op{
    .name = "to_integer",
    .summary = "the nearest integers to x / scale",
    .operands = {{.name = "x"}},
    .attributes = with_integer_result({}),
    .infer = infer,
    .flops = [](const OpCall& call) { return Size(4) * call.input(0).num_elements(); },
    .reference = reference,
    .is_differentiable = false,
    .is_per_token = true,
    .examples = {"to_integer(f32[T,8]) {width=8, scale=[0.125]}",
                 "to_integer(f32[B,4]) {width=4, signed=false, scale=[0.1]}"},
}};

}  // namespace
}  // namespace lathe::ops::to_integer
