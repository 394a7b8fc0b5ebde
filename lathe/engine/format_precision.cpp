#include "lathe/engine/format_precision.h"

#include <algorithm>
#include <bit>

#include "lathe/numerics/scaled_format.h"
#include "lathe/numerics/term_format.h"
#include "lathe/ops/quantized_operands.h"

namespace lathe::engine {
namespace {

constexpr int kFloatBits = 24, kBf16Bits = 8;

}  // namespace

int significant_bits(const NumberFormat& format) {
  if (numerics::find_term_spec(format) != nullptr) return 1;  // signs
  const numerics::ScaledSpec* const spec = numerics::find_scaled_spec(format);
  if (spec == nullptr) return format.facts().element_bits;
  if (const auto* integer = std::get_if<numerics::IntegerCodec>(&spec->codec)) {
    // A largest magnitude of 2^b is one bit, and those below it have b.
    const std::int64_t most = std::max(integer->high - integer->zero, integer->zero - integer->low);
    return std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(most, 1) - 1));
  }
  if (const auto* minifloat = std::get_if<numerics::MinifloatCodec>(&spec->codec))
    return minifloat->mantissa_bits + 1;
  return spec->level_bits == 1 ? 1 : kFloatBits;  // two levels are signs, more are any floats
}

void check_format(const NumberFormat& format, Precision precision) {
  if (precision != Precision::Bf16) return;
  if (const int bits = significant_bits(format); bits > kBf16Bits)
    fail("format {} has {} significant bits, but precision bf16 keeps {}", format.facts().text,
         bits, kBf16Bits);
}

void check_formats(const Graph& graph, Precision precision) {
  if (precision != Precision::Bf16) return;
  for (const char* const op : {"quantize", "decode"})
    for (const NodeId id : graph.nodes_of(op))
      with_place(fmt::format("node \"{}\"", graph.name(id)),
                 [&] { check_format(*ops::format_of(graph.attribute(id)), precision); });
}

}  // namespace lathe::engine
