#include "lathe/train/training_graph.h"

#include <re2/re2.h>

#include <algorithm>

#include "lathe/core/differentiate.h"
#include "lathe/core/pass.h"
#include "lathe/core/role.h"
#include "lathe/core/scalar_constant.h"
#include "lathe/train/find_loss.h"
#include "lathe/train/make_source.h"
#include "lathe/train/movement.h"
#include "lathe/train/targets.h"
#include "lathe/train/use_batch_statistics.h"

namespace lathe::train {
namespace {

// Share of a batch in the statistics that are kept, as PyTorch has it.
constexpr double kStatisticsMomentum = 0.1;

bool matches_any(const std::string& name, const std::vector<std::string>& patterns) {
  for (const std::string& text : patterns) {
    const RE2 pattern(text, RE2::Quiet);
    if (!pattern.ok()) fail("freeze \"{}\": {}", text, pattern.error());
    if (RE2::PartialMatch(name, pattern)) return true;
  }
  return false;
}

// The head of a masked language model is needed at the chosen tokens only, a seventh of them, and
// its 30,000 logits a token dominate the step: the chosen rows are gathered before it.
void gather_masked_rows(Graph& graph, const models::TaskRecord& task) {
  if (task.head.empty()) fail("the task {} does not say where its head begins", task.name);
  const NodeId head = graph.at(task.head);
  const Size chosen = Size::symbol("M");
  const Value masked{
      graph.insert_before(
          head, {.name = "masked", .op = "input", .inputs = {}, .types = {{DType::I32, {chosen}}}}),
      0};
  const NodeId rows = graph.insert_before(
      head, {.name = "masked_rows", .op = "gather_rows", .inputs = {graph.input(head, 0), masked}});
  graph.set_input(head, 0, {rows, 0});
  graph.set_types(graph.at("labels"), {{DType::I32, {chosen}}});
  run_pass("infer-types", graph);
}

std::string moment_name(const char* kind, const std::string& parameter) {
  return fmt::format("optimizer.{}.{}", kind, parameter);
}

class TrainingGraphBuilder {
 public:
  TrainingGraphBuilder(Graph& graph, const TrainingGraphOptions& options,
                       const DistillationStates& taught, State& state)
      : graph_(graph), options_(options), taught_(taught), state_(state) {}

  std::vector<std::string> build() {
    const std::vector<SeenStatistic> statistics =
        use_batch_statistics(graph_, [&](const std::string& name) { return !is_trained(name); });
    const Loss loss = find_loss(graph_);
    std::vector<Value> parameters;
    std::vector<std::string> names;
    for (const NodeId id : graph_.nodes_of("state")) {
      if (!can_learn(id) || !is_trained(graph_.name(id))) continue;
      parameters.push_back({id, 0});
      names.push_back(graph_.name(id));
    }
    if (parameters.empty()) fail("every parameter is frozen: nothing is left to train");
    std::vector<Value> gradients = differentiate(graph_, loss.sum, parameters);
    for (const auto& [name, value] : std::vector(graph_.outputs())) graph_.remove_output(name);
    graph_.set_output("loss_sum", loss.sum);
    graph_.set_output("loss_count", loss.count);
    learning_rate_ = input("learning_rate", DType::F32, {});
    random_ =
        graph_.find("random") ? Value{graph_.at("random"), 0} : input("random", DType::I32, {3});

    Value count = loss.count;
    if (options_.accumulation > 1) count = accumulate(gradients, names, count);
    scale_ = gradient_scale(gradients, count);
    keep_statistics(statistics);
    std::vector<std::string> trained;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (gradients[i].is_none()) continue;  // the loss does not depend on it
      update(parameters[i], gradients[i]);
      if (std::ranges::count(options_.movement, names[i]) > 0)
        add_movement(parameters[i], gradients[i]);
      trained.push_back(names[i]);
    }
    for (const std::string& name : options_.movement)
      if (std::ranges::count(trained, name) == 0) fail("movement: \"{}\" is not trained", name);
    return trained;
  }

 private:
  // Parameters learn, and so do the scales of quantizers.
  bool can_learn(NodeId state) const {
    const StateRole role = state_role(graph_, state);
    return (role == StateRole::Parameter || role == StateRole::Scale) &&
           graph_.types(state)[0].dtype == DType::F32;
  }

  bool is_trained(const std::string& name) const {
    const auto is_among = [&](const std::vector<std::string>& names) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    if (is_among(taught_.teachers)) return false;
    if (is_among(taught_.maps)) return true;
    if (!options_.train_only.empty() && !is_among(options_.train_only)) return false;
    return !matches_any(name, options_.freeze);
  }

  Value input(const std::string& name, DType dtype, Shape shape) {
    return {graph_.add({.name = name, .op = "input", .inputs = {}, .types = {{dtype, shape}}}), 0};
  }

  Value new_state(const std::string& name, const Type& type) {
    if (!state_.contains(name)) state_[name] = Tensor(type.dtype, type.dims({}));
    return {graph_.add({.name = name,
                        .op = "state",
                        .inputs = {},
                        .attributes = {{"role", std::string(lathe::name(StateRole::Moment))}},
                        .types = {type}}),
            0};
  }

  Value add(const std::string& name, const std::string& op, std::vector<Value> inputs,
            Attributes attributes = {}) {
    return {graph_.add({.name = name,
                        .op = op,
                        .inputs = std::move(inputs),
                        .attributes = std::move(attributes)}),
            0};
  }

  // Sums gradients and counts over micro-batches; `apply` is 1 on the last one of a step, and the
  // sums start again from zero after it.
  Value accumulate(std::vector<Value>& gradients, const std::vector<std::string>& names,
                   Value count) {
    apply_ = input("apply", DType::F32, {});
    const Value one = add_scalar_constant(graph_, "accumulation/one", 1);
    const Value keep = add("accumulation/keep", "sub", {one, apply_});
    const auto sum = [&](const std::string& name, Value term) {
      const Value slot = new_state("accumulation." + name, graph_.type(term));
      const Value total = add("accumulation/" + name, "add", {slot, term});
      graph_.bind_state(slot.node, add("accumulation/" + name + "/next", "mul", {total, keep}));
      return total;
    };
    for (std::size_t i = 0; i < gradients.size(); ++i)
      if (!gradients[i].is_none()) gradients[i] = sum(names[i], gradients[i]);
    return sum("count", count);
  }

  Value gradient_scale(const std::vector<Value>& gradients, Value count) {
    // All sums before the first addition: what does not need each other stands together.
    std::vector<Value> squares;
    for (const Value& gradient : gradients)
      if (!gradient.is_none())
        squares.push_back(add(graph_.name(gradient.node) + "/squares", "sum_squares", {gradient}));
    Value total = kNone;
    for (const Value& sum : squares)
      total = total.is_none() ? sum : add("gradient_norm/total", "add", {total, sum});
    if (total.is_none()) fail("the loss depends on no parameter that is trained");
    // 0, or NaN since a step failed: a step that was begun before anybody knew must change nothing.
    const Value guard = new_state("optimizer.guard", graph_.type(total));
    total = add("gradient_norm/guarded", "add", {total, guard});
    const Value scale =
        add("gradient_norm", "gradient_scale", {total, count}, {{"max_norm", options_.max_norm}});
    graph_.set_output("gradient_norm", {scale.node, 1});
    const Value failed = add("gradient_norm/failed", "sub", {scale, scale});
    graph_.bind_state(guard.node, add("gradient_norm/guard", "add", {guard, failed}));
    finite_ = scale;
    if (apply_.is_none()) return scale;
    // 0/0 is NaN, which tells the optimizer to leave everything as it is.
    return add("accumulation/scale", "div",
               {add("accumulation/scale/gated", "mul", {scale, apply_}), apply_});
  }

  // Every micro-batch is seen, whether a step ends with it or not.
  void keep_statistics(const std::vector<SeenStatistic>& statistics) {
    for (const auto& [buffer, seen] : statistics)
      graph_.bind_state(
          buffer, add(graph_.name(buffer) + "/next", "running_average",
                      {Value{buffer, 0}, seen, finite_}, {{"momentum", kStatisticsMomentum}}));
  }

  // With a rate of 1 and no momentum, a step of gradient descent adds up, and like the optimizer it
  // leaves everything as it is where the gradient is not finite.
  void add_movement(Value parameter, Value gradient) {
    const std::string name = graph_.name(parameter.node);
    const Value sum = new_state(movement_name(name), graph_.type(parameter));
    const Value product = add(name + "/movement", "mul", {parameter, gradient});
    if (one_.is_none()) one_ = add_scalar_constant(graph_, "movement/rate", 1);
    const Value step = add(name + "/moved", "sgd", {sum, product, sum, one_, scale_},
                           {{"momentum", 0.0}, {"weight_decay", 0.0}});
    graph_.bind_state(sum.node, step);
  }

  // Scales are positive and of any size: a step moves one by a share of itself. An eight-bit scale
  // is a hundredth of the weights it serves, and their rate would carry it past zero.
  Value scale_rate(Value scale, const std::string& name) {
    constexpr double kRelativeRate = 10;
    const Value mean = add(name + "/mean", "mean", {scale});
    const Value factor = add_scalar_constant(graph_, name + "/relative_rate", kRelativeRate);
    return add(name + "/rate", "mul",
               {learning_rate_, add(name + "/scaled_mean", "mul", {mean, factor})});
  }

  // A row's scale may be far below the mean of all, and a step as long as the mean's share would
  // carry it past zero, where its codes change sign: no step more than halves a scale.
  Value bounded_step(Value scale, Value stepped, const std::string& name) {
    const Value half = add_scalar_constant(graph_, name + "/half", 0.5);
    return add(name + "/bounded", "maximum", {stepped, add(name + "/least", "mul", {scale, half})});
  }

  // What counts a parameter's steps. Young moments are corrected for their age, and one that came
  // late would take steps several times too long by the age of the others.
  Value steps_of(const std::string& name) {
    if (std::ranges::find(options_.late, name) == options_.late.end()) return random_;
    if (late_random_.is_none()) late_random_ = input("late_random", DType::I32, {3});
    return late_random_;
  }

  void update(Value parameter, Value gradient) {
    // Copies: the graph grows under way, and its nodes move.
    const std::string name = graph_.name(parameter.node);
    const Type type = graph_.type(parameter);
    const bool is_of_quantizer = state_role(graph_, parameter.node) == StateRole::Scale;
    // Decay pulls matrices towards zero; biases and the scales of norms have no reason to be small.
    const double decay = type.rank() >= 2 && !is_of_quantizer ? options_.weight_decay : 0;
    const Value rate = is_of_quantizer ? scale_rate(parameter, name) : learning_rate_;
    if (options_.optimizer == OptimizerKind::AdamW) {
      const Value m = new_state(moment_name("m", name), type);
      const Value v = new_state(moment_name("v", name), type);
      const Value step =
          add(name + "/adamw", "adamw", {parameter, gradient, m, v, rate, scale_, steps_of(name)},
              {{"beta1", options_.beta1},
               {"beta2", options_.beta2},
               {"eps", options_.eps},
               {"weight_decay", decay}});
      graph_.bind_state(parameter.node,
                        is_of_quantizer ? bounded_step(parameter, step, name) : step);
      graph_.bind_state(m.node, {step.node, 1});
      graph_.bind_state(v.node, {step.node, 2});
      return;
    }
    const Value velocity = new_state(moment_name("velocity", name), type);
    const Value step = add(name + "/sgd", "sgd", {parameter, gradient, velocity, rate, scale_},
                           {{"momentum", options_.momentum}, {"weight_decay", decay}});
    graph_.bind_state(parameter.node, is_of_quantizer ? bounded_step(parameter, step, name) : step);
    graph_.bind_state(velocity.node, {step.node, 1});
  }

  Graph& graph_;
  const TrainingGraphOptions& options_;
  const DistillationStates& taught_;
  State& state_;
  Value learning_rate_, random_, apply_, scale_, one_;
  Value late_random_;  // where there are late parameters
  Value finite_;       // NaN where the gradient is not finite
};

}  // namespace

OptimizerKind parse_optimizer(std::string_view name) {
  if (name == "adamw") return OptimizerKind::AdamW;
  if (name == "sgd") return OptimizerKind::Sgd;
  throw unknown_name("optimizer", name, {"adamw", "sgd"});
}

std::string_view name(OptimizerKind optimizer) {
  return optimizer == OptimizerKind::AdamW ? "adamw" : "sgd";
}

std::vector<std::string> possible_moments(const std::string& parameter) {
  return {moment_name("m", parameter), moment_name("v", parameter),
          moment_name("velocity", parameter)};
}

TrainingGraph make_training_graph(const io::Model& model, const TrainingGraphOptions& options,
                                  State& state) {
  TrainingGraph result;
  result.graph = model.graph;
  Graph& graph = result.graph;
  pack_inputs(graph, model);
  if (options.objective == "mlm")
    gather_masked_rows(graph, models::find_task(*model.family, model.task));
  if (options.dropout)
    run_pass("randomize-dropout", graph);
  else
    run_pass("remove-dropout", graph);
  if (!options.class_weights.empty()) weigh_classes(graph);
  // While every row is there: choosing rows early leaves fewer to compare.
  const DistillationStates taught = add_distillation(graph, state, options.distillation);
  result.teachers = taught.teachers;
  run_pass("select-rows-early", graph);
  result.trained = TrainingGraphBuilder(graph, options, taught, state).build();
  run_pass("remove-dead-nodes", graph);
  run_pass("eliminate-common-subexpressions", graph);
  verify(graph);
  return result;
}

std::vector<std::string> moments_of(const Graph& training_graph, const std::string& parameter) {
  const auto update = training_graph.state_updates().find(training_graph.at(parameter));
  if (update == training_graph.state_updates().end()) return {};
  std::vector<std::string> names;
  for (const Value& value : training_graph.inputs(update->second.node))
    if (!value.is_none() && training_graph.is(value.node, "state") &&
        state_role(training_graph, value.node) == StateRole::Moment)
      names.push_back(training_graph.name(value.node));
  return names;
}

}  // namespace lathe::train
