#pragma once

#include "lathe/io/onnx/onnx_op.h"

/// What ops give that only change the axes of an operand made of sizes and places (known.h). Each
/// says whether it could tell.
namespace lathe::io::onnx {

bool fold_reshape(OnnxCall& call);
bool fold_squeeze(OnnxCall& call);
bool fold_unsqueeze(OnnxCall& call);

}  // namespace lathe::io::onnx
