#include "lathe/compress/pruning/insert_masks.h"

#include <algorithm>
#include <vector>

#include "lathe/compress/masked_lora.h"
#include "lathe/compress/quantizers.h"
#include "lathe/compress/rounded_parameter.h"
#include "lathe/core/role.h"

namespace lathe::compress {
namespace {

bool lacks_zero(const Graph& graph, NodeId quantizer) {
  return !has_zero(*parse_format(graph.attribute(quantizer).text("format")));
}

// The mask that one of these readers multiplies with.
std::optional<NodeId> mask_of_readers(const Graph& graph, NodeId id) {
  for (const NodeId reader : graph.users(id))
    if (const auto masked = masked_operand(graph, reader);
        masked && graph.input(reader, *masked).node == id)
      return graph.input(reader, 1 - *masked).node;
  return std::nullopt;
}

class MaskInserter {
 public:
  MaskInserter(Graph& graph, State& state) : graph_(graph), state_(state) {}

  void insert(const std::string& name, const Tensor& mask) {
    const NodeId parameter = graph_.at(name);
    check(identical_shapes(mask, state_.at(name)), "a mask of the parameter's shape");
    clear_pruned(state_.at(name), mask);
    if (const std::optional<NodeId> held = find_mask(graph_, parameter)) {
      clear_pruned(state_.at(graph_.name(*held)), mask);
      return;
    }
    const std::string mask_name = graph_.unique_name(name + ".mask");
    const Value added{graph_.insert_after(parameter, {.name = mask_name,
                                                      .op = "state",
                                                      .inputs = {},
                                                      .attributes = {{"role", std::string("mask")}},
                                                      .types = {graph_.types(parameter)[0]}}),
                      0};
    state_[mask_name] = mask;
    place(parameter, added);
    for (const LoraPath& path : find_lora(graph_)) {
      const Value weight =
          graph_.input(path.linear, operand_index(graph_, path.linear, OperandRole::Weight));
      if (weight_state(graph_, weight) == parameter) cover_lora_path(graph_, path, added.node);
    }
  }

 private:
  static bool identical_shapes(const Tensor& a, const Tensor& b) {
    return a.dims() == b.dims() && a.dtype() == b.dtype();
  }

  void place(NodeId parameter, Value mask) {
    const std::vector<Use> uses = graph_.uses(parameter);
    std::vector<NodeId> behind;  // quantizers whose results are masked
    std::vector<Use> before;
    for (const Use& use : uses) {
      const bool is_rounded = use.kind == Use::Kind::Operand && graph_.is(use.user, "quantize");
      if (use.kind == Use::Kind::Operand) check_lookup(use.user);
      if (is_rounded && lacks_zero(graph_, use.user))
        behind.push_back(use.user);
      else
        before.push_back(use);
    }
    if (!before.empty()) {
      const Value product{
          graph_.insert_after(mask.node,
                              {.name = graph_.unique_name(graph_.name(parameter) + "/masked"),
                               .op = "mul",
                               .inputs = {{parameter, 0}, mask}}),
          0};
      for (const Use& use : before) read(use, product);
    }
    for (const NodeId quantizer : behind) {
      const std::vector<Use> readers = graph_.uses(quantizer);
      const Value product = mask_behind(graph_, quantizer, mask);
      for (const Use& use : readers) read(use, product);
    }
  }

  // Rows that are rounded after their lookup cannot be masked there.
  void check_lookup(NodeId reader) const {
    if (!find_operand(graph_, reader, OperandRole::Table)) return;
    for (const NodeId quantizer : graph_.users(reader))
      if (graph_.is(quantizer, "quantize") && lacks_zero(graph_, quantizer))
        throw UserError(
            fmt::format("\"{}\": its rows are rounded to {} after they are looked up, which has no "
                        "zero for what is pruned",
                        graph_.name(reader), graph_.attribute(quantizer).text("format")),
            "prune the model first and quantize it then");
  }

  void read(const Use& use, Value value) {
    if (use.kind == Use::Kind::Output) graph_.set_output(use.output, value);
    if (use.kind == Use::Kind::Operand)
      graph_.set_input(use.user, static_cast<std::size_t>(use.operand), value);
  }

  Graph& graph_;
  State& state_;
};

}  // namespace

std::optional<NodeId> find_mask(const Graph& graph, NodeId parameter) {
  if (const auto mask = mask_of_readers(graph, parameter)) return mask;
  for (const NodeId reader : graph.users(parameter))
    if (graph.is(reader, "quantize"))
      if (const auto mask = mask_of_readers(graph, reader)) return mask;
  return std::nullopt;
}

State find_masks(const Graph& graph, const State& state) {
  State masks;
  for (const NodeId parameter : states_of(graph, StateRole::Parameter))
    if (const std::optional<NodeId> mask = find_mask(graph, parameter))
      masks[graph.name(parameter)] = state.at(graph.name(*mask));
  return masks;
}

void clear_pruned(Tensor& tensor, const Tensor& mask) {
  const std::span<float> values = tensor.mutable_data<float>();
  const std::span<const float> keeps = mask.data<float>();
  for (std::size_t i = 0; i < values.size(); ++i)
    if (keeps[i] == 0) values[i] = 0;
}

void insert_masks(Graph& graph, State& state, const State& masks) {
  MaskInserter inserter(graph, state);
  for (const auto& [name, mask] : masks) inserter.insert(name, mask);
  verify(graph);
}

}  // namespace lathe::compress
