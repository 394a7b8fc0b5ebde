#pragma once

#include <map>
#include <string>

#include "lathe/core/graph.h"

namespace lathe {

/// Copies nodes of one graph into another and remembers which value became which.
class NodeCopier {
 public:
  NodeCopier(const Graph& from, Graph& to) : from_(from), to_(to) {}

  /// Says that `value` of the one graph is `copy` in the other, without copying anything.
  void map(Value value, Value copy) { copies_[value] = copy; }
  bool has(Value value) const { return copies_.contains(value); }
  /// What a value became; none for none. It must have been copied or mapped.
  Value at(Value value) const;
  /// Copies one node under a name (made unique if taken); its operands must have been copied.
  NodeId copy(NodeId node, std::string name);

 private:
  const Graph& from_;
  Graph& to_;
  std::map<Value, Value> copies_;
};

}  // namespace lathe
