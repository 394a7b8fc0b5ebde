#pragma once

#include <optional>
#include <string_view>

#include "lathe/numerics/codecs/minifloat_codec.h"

namespace lathe::numerics {

/// "e4m3", "e5m2", "e3m2", "e2m3" and "e2m1" as OCP defines them.
std::optional<MinifloatCodec> named_minifloat(std::string_view name);

/// The bias that puts as many exponents below 1 as above.
int usual_bias(int exponent_bits);

/// The least and largest bias with which every number is a float and the kernels can round.
struct BiasRange {
  int low = 0, high = 0;
};
BiasRange bias_range(const MinifloatCodec& codec);

}  // namespace lathe::numerics
