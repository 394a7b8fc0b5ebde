#include "lathe/train/hidden_distillation.h"

#include <cmath>

#include "lathe/core/role.h"
#include "lathe/models/initialize.h"

namespace lathe::train {
namespace {

// What the layers read, then what the head reads.
std::vector<Value> hidden_states(const TransformerLayers& layers) {
  std::vector<Value> states = layers.inputs;
  states.push_back(layers.chosen);
  return states;
}

class HiddenLoss {
 public:
  HiddenLoss(LossBuilder& loss, State& state, std::string name, std::vector<std::string>& maps)
      : loss_(loss), graph_(loss.graph()), state_(state), name_(std::move(name)), maps_(maps) {}

  Value distance(std::size_t index, Value student, Value teacher) {
    const std::string name = fmt::format("{}.{}", name_, index);
    const std::int64_t width = graph_.type(teacher).axis(-1).constant();
    if (graph_.type(student).axis(-1) != graph_.type(teacher).axis(-1))
      student = mapped(name, student, width);
    if (graph_.type(student).shape[0] == Size::symbol("T")) {
      student = loss_.add(name + "/weighed", "mul", {student, root_shares()});
      teacher = loss_.add(name + "/teacher_weighed", "mul", {teacher, root_shares()});
    }
    const Value sum = loss_.add(name + "/squares", "squared_error", {student, teacher});
    return loss_.times(name, sum, 1 / static_cast<double>(width));
  }

 private:
  Value mapped(const std::string& name, Value student, std::int64_t width) {
    const std::string map = "distillation.map." + name;
    const std::int64_t own = graph_.type(student).axis(-1).constant();
    // Keeps the size of what it maps.
    const double scale = 1 / std::sqrt(static_cast<double>(own));
    const NodeId node =
        graph_.add({.name = map,
                    .op = "state",
                    .inputs = {},
                    .attributes = {{"role", std::string(lathe::name(StateRole::Parameter))},
                                   {"init", std::string("normal")},
                                   {"scale", scale}},
                    .types = {{graph_.type(student).dtype, {Size(width), Size(own)}}}});
    check(graph_.name(node) == map, "one map of a name");
    if (!state_.contains(map)) state_[map] = models::initialize_state(graph_, node, 0);
    maps_.push_back(map);
    return loss_.add(name + "/mapped", "linear", {student, {node, 0}, kNone});
  }

  // Squares of what is multiplied with these are averaged over each sequence's tokens.
  Value root_shares() {
    if (!root_shares_.is_none()) return root_shares_;
    const Type type{DType::F32, {Size::symbol("T")}};
    const Value shares =
        loss_.add("shares", "packed_shares", {{graph_.at("offsets"), 0}}, {}, {type});
    return root_shares_ = loss_.add("root_shares/column", "reshape",
                                    {loss_.add("root_shares", "sqrt", {shares})}, {},
                                    {{DType::F32, {Size::symbol("T"), Size(1)}}});
  }

  LossBuilder& loss_;
  Graph& graph_;
  State& state_;
  std::string name_;
  std::vector<std::string>& maps_;
  Value root_shares_ = kNone;
};

}  // namespace

Value hidden_state_loss(LossBuilder& loss, State& state, const TransformerLayers& student,
                        const TransformerLayers& teacher, const std::string& name,
                        std::vector<std::string>& maps) {
  const std::vector<Value> own = hidden_states(student), given = hidden_states(teacher);
  HiddenLoss hidden(loss, state, name, maps);
  std::vector<Value> terms;
  for (std::size_t i = 0; i < own.size(); ++i)
    terms.push_back(
        hidden.distance(i, own[i], given[matching_layer(i, own.size() - 1, given.size() - 1)]));
  return loss.times(name + "/mean", loss.sum(name + "/sum", terms),
                    1 / static_cast<double>(terms.size()));
}

}  // namespace lathe::train
