#pragma once

#include <cstdint>
#include <string_view>

#include "lathe/core/op.h"

/// What shape rules demand of their operands, each failing with one line that names the op.
namespace lathe::ops {

/// Fails unless operand `index` holds floating-point numbers.
void require_floating(std::string_view op, const OpCall& call, std::size_t index);
/// Fails unless operand `index` holds integers (bool counts: masks are 0 and 1).
void require_integer(std::string_view op, std::string_view operand, const Type& type);
/// Fails unless the type has exactly `rank` axes.
void require_rank(std::string_view op, std::string_view operand, const Type& type,
                  std::size_t rank);
/// Fails unless the type has at least `rank` axes.
void require_rank_at_least(std::string_view op, std::string_view operand, const Type& type,
                           std::size_t rank);
/// Fails unless the type is a vector of `size` elements.
void require_vector(std::string_view op, std::string_view operand, const Type& type,
                    const Size& size);
/// Fails unless the two operands store their elements alike.
void require_same_dtype(std::string_view op, const Type& a, const Type& b);
/// The value of a size that a rule computes with; fails when it depends on symbols.
std::int64_t constant_size(std::string_view op, const Size& size, const Type& of);
/// The result type written on the node; fails when none or several are.
const Type& declared_type(std::string_view op, const OpCall& call);

}  // namespace lathe::ops
