#pragma once

#include <cstdint>
#include <memory>
#include <variant>

#include "lathe/core/number_format.h"
#include "lathe/numerics/codecs/integer_codec.h"
#include "lathe/numerics/codecs/level_codec.h"
#include "lathe/numerics/codecs/minifloat_codec.h"
#include "lathe/numerics/codecs/shared_exponent.h"
#include "lathe/numerics/kernels/kernel_table.h"

namespace lathe::numerics {

class FormatArguments;

using ElementCodec = std::variant<IntegerCodec, MinifloatCodec, LevelCodec>;

/// How a block's scale comes about. `facts` say where from and for how many values.
enum class ScaleRule {
  Constant,          ///< there is none
  Given,             ///< a float
  GivenPowerOfTwo,   ///< the power of two nearest to a given float, by ratio
  SharedExponent,    ///< a power of two made of the block's largest magnitude
  LargestMagnitude,  ///< the largest finite magnitude divided by a number
  Range,             ///< the finite range, 0 included, over all codes; with a zero point
};

/// A number format as most are: an element codec, a granularity and a rule for scales.
struct ScaledSpec {
  /// text, family, granularity and blocks, scale_source, scale_bits, pass range; the rest follows
  /// from the codec and is filled in.
  FormatFacts facts;
  ElementCodec codec;
  ScaleRule rule = ScaleRule::Constant;
  int level_bits = 4;  ///< LevelCodec: there are 2^bits levels; the rest of both lists is NaN
  /// A power of two: what an integer element's 1 is worth at scale 1.
  float element_step = 1;
  SharedExponent exponent = {};  ///< ScaleRule::SharedExponent
  float divisor = 1;             ///< ScaleRule::LargestMagnitude
  /// LargestMagnitude: values are multiplied by the rounded 1 / scale instead of divided.
  bool by_reciprocal = false;
};

std::shared_ptr<const NumberFormat> make_scaled_format(ScaledSpec spec);
/// What a format was made of; nullptr for one of another kind. It lives as long as the format.
const ScaledSpec* find_scaled_spec(const NumberFormat& format);

/// Makes the scale a given power of two: one, or one a row where the arguments say "channel",
/// which is then added to the format's text.
void use_given_power_of_two(ScaledSpec& spec, FormatArguments& arguments);
/// Makes the scale a power of two of each block's own, stored in a byte.
void use_shared_exponent(ScaledSpec& spec, SharedExponent exponent, std::int64_t block_rows,
                         std::int64_t block_columns);
/// The least scale code with which a minifloat's smallest step is still a float.
int lowest_scale_code(const MinifloatCodec& codec);

/// The numbers of a codec, prepared for the kernels.
ElementTable element_table(const ElementCodec& codec, float element_step);

}  // namespace lathe::numerics
