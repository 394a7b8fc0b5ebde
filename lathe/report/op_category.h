#pragma once

#include <string_view>

#include "lathe/core/op.h"

namespace lathe::report {

/// What an op is for, as far as a reader of a picture cares.
enum class OpCategory {
  Product,
  Norm,
  Attention,
  Elementwise,
  Embedding,
  Dropout,
  Loss,
  Shape,
  Quantizer,  ///< rounds, packs or rescales numbers
  Source
};

/// How boxes of a category are filled and outlined, as `#rrggbb`.
struct BoxColors {
  std::string_view fill;
  std::string_view outline;
};

OpCategory category(const Op& op);
BoxColors colors(OpCategory category);

}  // namespace lathe::report
