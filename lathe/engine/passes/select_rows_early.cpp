#include "lathe/core/pass.h"
#include "lathe/engine/origin.h"

namespace lathe::engine {
namespace {

// A classifier reads the first token of each sequence. Ops that treat every row alone commute with
// choosing rows, so the choice can move up through them until it meets attention, where it remains
// as a choice of queries: the last layer of an encoder then computes one row a sequence instead of
// one a token. The numbers are the same, the work is not done for rows nobody reads.
//
// A decoder that gives the next token reads the last one of each sequence; that choice moves up in
// the same way, but stays below attention, whose choice of queries is that of the first.
//
// A choice is `select_in_sequence(x, offsets)` in a packed graph and a slice of axis 1 from 0 to 1
// in a padded one.

bool has_symbol(const Type& type, std::size_t axis, std::string_view symbol) {
  return type.rank() > axis && type.shape[axis] == Size::symbol(std::string(symbol));
}

class RowSelector {
 public:
  explicit RowSelector(Graph& graph) : graph_(graph) {
    if (const std::optional<NodeId> offsets = graph.find("offsets")) offsets_ = {*offsets, 0};
  }

  bool is_packed() const { return !offsets_.is_none(); }

  // `select {axis=1, index=0}` drops the axis, which no op on the way up would understand: it
  // becomes a slice that keeps the axis and a reshape that drops it.
  int split_selects() {
    if (is_packed()) return 0;
    int changed = 0;
    for (const NodeId id : graph_.nodes_of("select")) {
      const AttributeReader attributes = graph_.attribute(id);
      const Value x = graph_.input(id, 0);
      if (attributes.integer("axis") != 1 || attributes.integer("index") != 0 ||
          !is_token_shaped(graph_.type(x)))
        continue;
      const NodeId shaped = graph_.insert_before(id, {.name = graph_.name(id) + "/shaped",
                                                      .op = "reshape",
                                                      .inputs = {choose(x, id)},
                                                      .types = graph_.types(id)});
      graph_.replace_all_uses({id, 0}, {shaped, 0});
      const std::string name = graph_.name(id);
      graph_.erase(id);
      graph_.rename(shaped, name);
      ++changed;
    }
    return changed;
  }

  // Moves every choice one op up where it can; returns how many moved.
  int move_all() {
    int moved = 0;
    const std::vector<NodeId> order = graph_.topological_order();
    for (auto id = order.rbegin(); id != order.rend(); ++id)
      if (graph_.has(*id) && is_choice(*id) && move(*id)) ++moved;
    return moved;
  }

 private:
  bool is_token_shaped(const Type& type) const {
    return is_packed() ? has_symbol(type, 0, "T")
                       : has_symbol(type, 0, "B") && has_symbol(type, 1, "L");
  }

  bool is_choice(NodeId id) const {
    const AttributeReader attributes = graph_.attribute(id);
    if (is_packed()) return graph_.is(id, "select_in_sequence") && graph_.input(id, 1) == offsets_;
    return graph_.is(id, "slice") && attributes.integer("axis") == 1 &&
           attributes.integer("begin") == 0 && attributes.integer("end") == 1 &&
           is_token_shaped(graph_.type(graph_.input(id, 0)));
  }

  // A choice of the rows of `x` in the place of `choice`, and so for the nodes that one was for.
  Value choose(Value x, NodeId choice) {
    NodeSpec spec{
        .name = graph_.name(x.node) + "/first", .op = "select_in_sequence", .inputs = {x}};
    if (is_packed()) {
      spec.inputs.push_back(offsets_);
      spec.attributes = graph_.attributes(choice);
      if (index_of(choice) != 0) spec.name = graph_.name(x.node) + "/selected";
    } else {
      spec.op = "slice";
      spec.attributes = {
          {"axis", std::int64_t{1}}, {"begin", std::int64_t{0}}, {"end", std::int64_t{1}}};
    }
    const Origin* const earlier = graph_.find_annotation<Origin>(choice);
    Origin origin = earlier != nullptr ? *earlier : Origin{{graph_.name(choice)}};
    const NodeId chosen = graph_.insert_before(choice, std::move(spec));
    graph_.annotation<Origin>(chosen) = std::move(origin);
    return {chosen, 0};
  }

  // Which row of a sequence a choice takes.
  std::int64_t index_of(NodeId choice) const {
    return is_packed() ? graph_.attribute(choice).integer("index") : 0;
  }

  // Everybody who reads the node wants its chosen rows alone, the same ones.
  bool only_choices_read(NodeId id, std::int64_t index) const {
    for (const Use& use : graph_.uses(id))
      if (use.kind != Use::Kind::Operand || !is_choice(use.user) || index_of(use.user) != index)
        return false;
    return true;
  }

  // The chosen rows of the result come from the chosen rows of the token-shaped operands.
  bool is_row_wise(NodeId id) const {
    const Op& op = graph_.op(id);
    if (op.is_source || graph_.types(id).size() != 1) return false;
    if (op.is_per_token) return true;
    if (!op.is_elementwise) return false;
    for (const Value& value : graph_.inputs(id))
      if (!value.is_none() && is_token_shaped(graph_.type(value)) &&
          graph_.type(value).rank() != graph_.types(id)[0].rank())
        return false;
    return true;
  }

  bool is_attention(NodeId id) const {
    const bool attends = graph_.is(id, "attention") || graph_.is(id, "integer_attention");
    return attends && !graph_.attribute(id).flag("causal") &&
           is_token_shaped(graph_.type(graph_.input(id, 1)));
  }

  bool move(NodeId choice) {
    const Value x = graph_.input(choice, 0);
    const NodeId source = x.node;
    if (!only_choices_read(source, index_of(choice))) return false;
    const bool attends = is_attention(source) && index_of(choice) == 0;
    if (!attends && !is_row_wise(source)) return false;
    bool any = false;
    std::vector<Value> inputs = graph_.inputs(source);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].is_none() || !is_token_shaped(graph_.type(inputs[i]))) continue;
      if (attends && i != 0) continue;  // every key is still seen
      inputs[i] = choose(inputs[i], choice);
      any = true;
    }
    if (!any) return false;
    const NodeId moved = graph_.insert_before(choice, {.name = graph_.name(source) + "/chosen",
                                                       .op = graph_.op(source).name,
                                                       .inputs = std::move(inputs),
                                                       .attributes = graph_.attributes(source),
                                                       .types = graph_.types(choice)});
    graph_.replace_all_uses({choice, 0}, {moved, 0});
    graph_.erase(choice);
    if (graph_.uses(source).empty()) {
      const std::string name = graph_.name(source);
      graph_.erase(source);
      graph_.rename(moved, name);
    }
    return true;
  }

  Graph& graph_;
  Value offsets_ = kNone;
};

int select_rows_early(Graph& graph) {
  RowSelector selector(graph);
  int total = selector.split_selects();
  // Joining equal choices after each round lets a value that two ops read move as one.
  for (int moved = 1; moved > 0; total += moved) {
    moved = selector.move_all();
    run_pass("eliminate-common-subexpressions", graph);
  }
  return total;
}

const Register registration{Pass{
    .name = "select-rows-early",
    .summary =
        "compute only the rows that are read, where one token of a sequence is all that is used",
    .run = select_rows_early,
    .keeps = {"origin"},
}};

}  // namespace
}  // namespace lathe::engine
