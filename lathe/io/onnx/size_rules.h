#pragma once

#include "lathe/io/onnx/onnx_op.h"

/// What ops give where their operands are made of sizes and places alone (known.h): chains of
/// Shape, Gather, Concat and arithmetic become sizes here and never reach the graph. Each says
/// whether it could tell.
namespace lathe::io::onnx {

/// Of Add, Sub, Mul, Div, Mod, Max, Min and comparisons.
bool fold_arithmetic(OnnxCall& call);
bool fold_where(OnnxCall& call);
bool fold_cast(OnnxCall& call);
bool fold_concat(OnnxCall& call);
bool fold_expand(OnnxCall& call);
bool fold_gather(OnnxCall& call);
bool fold_gather_nd(OnnxCall& call);
bool fold_product(OnnxCall& call);
bool fold_slice(OnnxCall& call);

}  // namespace lathe::io::onnx
