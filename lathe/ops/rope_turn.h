#pragma once

#include <string_view>
#include <vector>

#include "lathe/core/op.h"
#include "lathe/ops/rope_scaling.h"

/// The rotation that rope and its gradient share.
namespace lathe::ops {

std::vector<AttributeSpec> rope_attributes();
RopeScaling rope_scaling(const AttributeReader& attributes);
/// The radians that each pair of a head of that size turns by from a position to the next.
std::vector<double> rope_frequencies(const AttributeReader& attributes, std::int64_t head_size);
/// The result type; fails unless heads divide the last axis and positions fit the rows.
std::vector<Type> infer_rope(std::string_view op, const OpCall& call);
/// Turns each pair of features of operand 0 by `direction` times its angle.
void turn_pairs(const KernelCall& call, double direction);

}  // namespace lathe::ops
