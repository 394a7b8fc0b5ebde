#pragma once

#include <memory>
#include <string_view>

#include "lathe/core/number_format.h"
#include "lathe/core/op.h"

/// What the ops on number formats share: a matrix, its format, its scales and zero points.
namespace lathe::ops {

/// The format named by a node's attribute; fails on "float", which rounds nothing.
std::shared_ptr<const NumberFormat> format_of(const AttributeReader& attributes);

/// The attribute `axis` of the ops on number formats: see channel_matrix.h.
AttributeSpec axis_attribute();

/// The shape of the scales that are handed in with a matrix of this type.
Shape given_scale_shape(const NumberFormat& format, const Type& x);

/// The shape of the bytes that hold the scales a format makes itself, beside codes of this type:
/// the codes' own rows where each row has scales, else one row for each row of tiles.
Shape local_scale_shape(const NumberFormat& format, const Type& codes, std::int64_t columns);

/// Fails unless x is float32, a matrix by its attribute `axis`, and operands `scale` and `scale +
/// 1` are what its format needs: scales where they are handed in, zero points where it has them,
/// nothing otherwise.
void check_quantized_operands(std::string_view op, const OpCall& call, const Type& x,
                              std::size_t scale);

/// The index of the scale that covers element i of a matrix of so many columns.
std::int64_t scale_index(const FormatFacts& facts, std::int64_t columns, std::int64_t element);
/// The scale a format uses for the one it is handed: its nearest power of two where it must be one.
double effective_scale(const FormatFacts& facts, float scale);
/// The places x/s + zero whose codes are not clipped: up to half a step beyond the last numbers. A
/// scale that covers a tensor puts its largest value on the last number, give or take a rounding.
struct PlaceRange {
  double minimum, maximum;
};
PlaceRange unclipped_places(const FormatFacts& facts);
/// What the gradient of a learned scale is multiplied with.
double step_gradient_factor(const FormatFacts& facts, std::int64_t columns);

/// A reference kernel's operands as the format wants them.
struct QuantizedMatrix {
  std::shared_ptr<const NumberFormat> format;
  Tensor x;           ///< in the matrix's order
  QuantizeArgs args;  ///< without y
};
QuantizedMatrix quantized_matrix(const KernelCall& call, const Tensor& x, std::size_t scale);

}  // namespace lathe::ops
