#pragma once

namespace lathe {

/// How a value between two representable ones is placed. Alone in its file, because the element
/// codecs that CUDA compiles take it too.
enum class Rounding { NearestEven, Floor, Stochastic };

}  // namespace lathe
