#include "lathe/core/pass.h"

namespace lathe::engine {
namespace {

// The values that random numbers depend on besides the run's seed and step: which example a row
// belongs to and where in it the row stands. Never which batch, so any batching drops alike.
struct RowNames {
  Value examples, positions;
};

class DropoutRandomizer {
 public:
  explicit DropoutRandomizer(Graph& graph) : graph_(graph) {
    const NodeId first = graph.topological_order().front();
    const auto input = [&](const std::string& name, Shape shape) {
      return Value{graph.insert_after(first, {.name = name,
                                              .op = "input",
                                              .inputs = {},
                                              .types = {{DType::I32, std::move(shape)}}}),
                   0};
    };
    if (const std::optional<NodeId> offsets = graph.find("offsets")) offsets_ = {*offsets, 0};
    random_ = input("random", {3});
    examples_ = input("examples", {example_rows()});
  }

  void randomize(NodeId id) {
    const double rate = graph_.attribute(id).real("rate");
    const Value x = graph_.input(id, 0);
    if (rate == 0) {
      graph_.replace_all_uses({id, 0}, x);
      graph_.erase(id);
      return;
    }
    const RowNames rows = row_names(graph_.type(x));
    replace(id, {.name = graph_.name(id) + "/random",
                 .op = "random_dropout",
                 .inputs = {x, random_, rows.examples, rows.positions},
                 .attributes = {{"rate", rate}, {"site", graph_.attribute(id).integer("site")}}});
  }

  void randomize_rrelu(NodeId id) {
    const Value x = graph_.input(id, 0);
    const RowNames rows = row_names(graph_.type(x));
    Attributes attributes;
    for (const char* name : {"lower", "upper"}) attributes[name] = graph_.attribute(id).real(name);
    attributes["site"] = graph_.attribute(id).integer("site");
    replace(id, {.name = graph_.name(id) + "/random",
                 .op = "random_rrelu",
                 .inputs = {x, x, random_, rows.examples, rows.positions},
                 .attributes = std::move(attributes)});
  }

  void randomize_attention(NodeId id) {
    if (graph_.attribute(id).real("dropout") == 0) return;
    if (offsets_.is_none())
      fail("node \"{}\": dropout of attention needs a packed graph: run pack-sequences first",
           graph_.name(id));
    std::vector<Value> inputs = graph_.inputs(id);
    inputs.resize(5, kNone);
    inputs.push_back(random_);
    inputs.push_back(examples_);
    graph_.set_inputs(id, std::move(inputs));
  }

 private:
  // The new node takes the name and the readers of the old one.
  void replace(NodeId id, NodeSpec spec) {
    const NodeId random = graph_.insert_before(id, std::move(spec));
    graph_.replace_all_uses({id, 0}, {random, 0});
    const std::string name = graph_.name(id);
    graph_.erase(id);
    graph_.rename(random, name);
  }

  RowNames row_names(const Type& type) {
    const Size& rows = type.shape[0];
    if (rows == example_rows())
      return {examples_,
              made("dropout/first_positions", "full_like", {examples_}, {{"value", 0.0}}, {})};
    if (offsets_.is_none() || rows != Size::symbol("T"))
      fail("dropout on {} has neither rows of tokens nor of examples", to_text(type));
    const Type tokens{DType::I32, {Size::symbol("T")}};
    return {made("dropout/examples", "packed_examples", {examples_, offsets_}, {}, {tokens}),
            made("dropout/positions", "packed_positions", {offsets_}, {}, {tokens})};
  }

  // What has a row for each example: sequences of a packed graph, rows of any other.
  Size example_rows() const { return Size::symbol(offsets_.is_none() ? "B" : "S"); }

  // One node of each kind serves all sites.
  Value made(const std::string& name, const std::string& op, std::vector<Value> inputs,
             Attributes attributes, std::vector<Type> types) {
    if (const std::optional<NodeId> existing = graph_.find(name)) return {*existing, 0};
    return {graph_.insert_after(examples_.node, {.name = name,
                                                 .op = op,
                                                 .inputs = std::move(inputs),
                                                 .attributes = std::move(attributes),
                                                 .types = std::move(types)}),
            0};
  }

  Graph& graph_;
  Value offsets_, random_, examples_;
};

int randomize_dropout(Graph& graph) {
  if (graph.find("random")) return 0;
  if (!graph.find("offsets") && graph.symbols().contains("L"))
    fail("needs a packed graph: run pack-sequences first");
  DropoutRandomizer randomizer(graph);
  int changed = 0;
  for (const NodeId id : graph.topological_order()) {
    if (graph.is(id, "dropout"))
      randomizer.randomize(id);
    else if (graph.is(id, "rrelu"))
      randomizer.randomize_rrelu(id);
    else if (graph.is(id, "attention"))
      randomizer.randomize_attention(id);
    else
      continue;
    ++changed;
  }
  return changed;
}

const Register registration{Pass{
    .name = "randomize-dropout",
    .summary = "make dropout drop and rrelu draw, by numbers of example and position",
    .run = randomize_dropout,
}};

}  // namespace
}  // namespace lathe::engine
