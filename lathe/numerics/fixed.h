#pragma once

#include "lathe/numerics/codecs/integer_codec.h"

namespace lathe::numerics {

/// Two's complement of `width` bits, or the numbers from 0 on.
IntegerCodec fixed_codec(int width, bool is_unsigned);

}  // namespace lathe::numerics
