#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/core/graph.h"

namespace lathe {

/// What a pattern found: the values its variables stand for and the nodes it went through.
struct Match {
  std::map<std::string, Value, std::less<>> values;
  std::vector<NodeId> nodes;  ///< the root first

  Value operator[](std::string_view variable) const;
};

/// A shape of graph to look for, written like the graph itself:
///
///     gelu(y = linear(x, w, b))
///
/// A lower-case word followed by `(` is an op; any other word is a variable that stands for one
/// value, the same everywhere it appears; `v = op(...)` also names an inner value; `_` is any value
/// and `none` an absent operand. Operands left out at the end must be absent. Operands of
/// commutative ops match in either order.
class Pattern {
 public:
  explicit Pattern(std::string_view text);
  ~Pattern();
  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;

  /// The op of every root.
  const std::string& root_op() const;
  /// The match whose root is this value, if there is one.
  std::optional<Match> match(const Graph& graph, Value root) const;

  struct Term;

 private:
  std::unique_ptr<Term> root_;
};

/// Walks the graph in topological order; wherever the pattern matches, asks `replace` for a value
/// (nullopt: leave it) and makes all readers of the root read that instead. Nodes that nobody reads
/// any more are left to remove-dead-nodes. Returns how often it replaced.
int rewrite(Graph& graph, const Pattern& pattern,
            const std::function<std::optional<Value>(Graph&, const Match&)>& replace);

}  // namespace lathe
