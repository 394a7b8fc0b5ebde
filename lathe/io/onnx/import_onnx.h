#pragma once

#include <map>
#include <string>

#include "lathe/core/graph.h"
#include "lathe/core/pass.h"
#include "lathe/io/onnx/onnx_model.h"

namespace lathe::io::onnx {

struct ImportOptions {
  /// Inputs that are the same in every run, with their values: shapes that a graph takes as inputs,
  /// which must be known before it runs.
  Feed constants = {};
};

/// A graph and the values of its states.
struct ImportedGraph {
  Graph graph;
  State state;
};

/// Makes our graph of an ONNX graph. Initializers become states and small constants; what can be
/// computed from them and from sizes is; dynamic axes become symbols, the first axis of inputs B
/// and the second L where they are dynamic. Fails in one line that names every op which is not
/// supported, or the node that is wrong.
ImportedGraph import_onnx(const OnnxModel& model, const ImportOptions& options = {});

/// The symbols that stand for the dynamic axes of a graph's inputs, by what the file calls them; an
/// axis without a name is called after its input and place.
std::map<std::string, std::string> choose_symbols(const OnnxGraph& graph);
/// What the file calls an axis of an input.
std::string axis_name(const OnnxValue& input, std::size_t axis);

}  // namespace lathe::io::onnx
