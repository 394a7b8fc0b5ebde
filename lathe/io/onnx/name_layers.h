#pragma once

#include "lathe/io/onnx/import_onnx.h"

namespace lathe::io::onnx {

/// Gives layers the names of their parameters: a node that reads `encoder.0.up.bias` is called
/// `encoder.0.up`, and a weight without a name of its own `encoder.0.up.weight`, as in Hugging
/// Face's files; so rules and reports mean the same. Constants that no layer reads and that have no
/// name of their own are buffers: nothing to train.
void name_layers(ImportedGraph& imported);

}  // namespace lathe::io::onnx
