#include "lathe/compress/integer/exponents.h"

#include <numbers>

#include "lathe/numerics/integer/exponential.h"
#include "lathe/numerics/integer/scale_multiplier.h"

namespace lathe::compress {

std::optional<Attributes> exponent_attributes(IntegerLowering& lowering, NodeId node, double scale,
                                              numerics::Integer128 distance) {
  const std::vector<double> ratio{numerics::kExponentialSteps * std::numbers::log2e * scale};
  const numerics::ScaleMultipliers found =
      numerics::multipliers_of(ratio, numerics::kMultiplierBits);
  // A half is added in front of the shift, so there must be one.
  const int up = std::max(0, 1 - found.shift);
  const numerics::Integer128 multiplier =
      up > 30 ? INT64_MAX : found.multipliers[0] * (numerics::Integer128{1} << up);
  const int shift = found.shift + up;
  if (multiplier > INT32_MAX || shift > 60 || distance > INT64_MAX ||
      numerics::signed_bits(0, distance * multiplier) > 62) {
    lowering.refuse(node, fmt::format("its scores, {} a step, need more than 62 bits", scale));
    return std::nullopt;
  }
  return Attributes{{"exponent_multiplier", static_cast<std::int64_t>(multiplier)},
                    {"exponent_shift", std::int64_t{shift}}};
}

}  // namespace lathe::compress
