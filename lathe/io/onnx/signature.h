#pragma once

#include <cstdint>
#include <string_view>

#include "lathe/io/onnx/onnx_model.h"

namespace lathe::io::onnx {

/// Whether ONNX's own words for an op of the default domain are known here.
bool has_signature(std::string_view op);

/// Fails where a node of the default domain has an op that its opset has not, an attribute that its
/// op has not in that opset, or more operands than it takes. ONNX forbids all of it; a bound of
/// Clip that is an attribute in an opset that wants an operand would else be ignored without a
/// word.
void check_signature(const OnnxNode& node, std::int64_t opset);

}  // namespace lathe::io::onnx
