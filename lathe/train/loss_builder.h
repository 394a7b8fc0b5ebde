#pragma once

#include <string>
#include <vector>

#include "lathe/core/graph.h"

namespace lathe::train {

/// Adds the nodes of a loss to a graph, under a name of its own.
class LossBuilder {
 public:
  LossBuilder(Graph& graph, std::string name) : graph_(graph), name_(std::move(name)) {}

  Value add(const std::string& name, const std::string& op, std::vector<Value> inputs,
            Attributes attributes = {}, std::vector<Type> types = {});
  Value times(const std::string& name, Value x, double factor);
  /// The sum of scalars; none of none.
  Value sum(const std::string& name, const std::vector<Value>& terms);
  /// The graph's input of that name, added if it is missing.
  Value input(const std::string& name, const Type& type);

  Graph& graph() { return graph_; }

 private:
  Graph& graph_;
  std::string name_;
};

}  // namespace lathe::train
