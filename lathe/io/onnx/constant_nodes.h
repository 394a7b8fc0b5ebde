#pragma once

#include <string>

#include "lathe/io/onnx/import_onnx.h"
#include "lathe/io/onnx/known.h"

/// Nodes for what is known of an ONNX graph before it runs.
namespace lathe::io::onnx {

/// A constant as part of what the graph says, or as a state of it: a parameter, or a buffer where
/// nothing can learn.
Value add_constant(ImportedGraph& to, const std::string& name, const Tensor& tensor,
                   bool is_buffer = false);

/// An affine array as a sum of ranges; fails where it holds a size that only a run knows.
Value add_affine(Graph& graph, const std::string& name, const AffineArray& array);

}  // namespace lathe::io::onnx
