#include "lathe/train/distillation.h"

#include <cmath>

#include "lathe/core/scalar_constant.h"
#include "lathe/train/attention_distillation.h"
#include "lathe/train/find_loss.h"
#include "lathe/train/hidden_distillation.h"
#include "lathe/train/loss_builder.h"
#include "lathe/train/soft_labels.h"
#include "lathe/train/teacher_copy.h"

namespace lathe::train {
namespace {

// The number of examples, labelled or not.
Value count_rows(LossBuilder& loss, Value soft_labels) {
  const Value compared = loss.add("elements", "squared_error", {soft_labels, soft_labels});
  const auto width = static_cast<double>(loss.graph().type(soft_labels).axis(-1).constant());
  return loss.add(
      "count", "div",
      {{compared.node, 1}, add_scalar_constant(loss.graph(), "distillation/count/labels", width)});
}

// The cross-entropy of the model with the soft labels, summed over examples.
Value soft_label_loss(LossBuilder& loss, Value logits, Value expected, double temperature) {
  const Value given =
      loss.add("given", "log_softmax", {loss.times("softened", logits, 1 / temperature)},
               {{"axis", std::int64_t{-1}}});
  const Value agreement =
      loss.add("agreement", "sum_to", {loss.add("agreements", "mul", {expected, given})}, {},
               {{loss.graph().type(logits).dtype, {}}});
  return loss.times("soft_labels", agreement, -temperature * temperature);
}

// What following the teachers' layers adds to the loss, term by term.
std::vector<Value> layer_losses(LossBuilder& loss, State& state, Value logits,
                                const DistillationOptions& options, DistillationStates& states) {
  const TransformerLayers own =
      with_place("the model", [&] { return find_transformer_layers(loss.graph(), logits); });
  const auto share = 1 / static_cast<double>(options.teachers.size());
  std::vector<Value> terms;
  for (std::size_t i = 0; i < options.teachers.size(); ++i) {
    const io::Model& teacher = *options.teachers[i];
    with_place("teacher " + teacher.directory.string(), [&] {
      const TransformerLayers theirs = copy_teacher(loss.graph(), state, teacher,
                                                    fmt::format("teacher.{}.", i), states.teachers);
      const auto add_term = [&](const std::string& name, double weight, Value distance) {
        terms.push_back(loss.times(name + "/weighed", distance, weight * share));
      };
      const std::string hidden = fmt::format("hidden.{}", i);
      if (options.hidden != 0)
        add_term(hidden, options.hidden,
                 hidden_state_loss(loss, state, own, theirs, hidden, states.maps));
      const std::string attention = fmt::format("attention.{}", i);
      if (options.attention != 0)
        add_term(attention, options.attention, attention_loss(loss, own, theirs, attention));
    });
  }
  return terms;
}

}  // namespace

void check_distillation(const DistillationOptions& options) {
  if (!(options.weight >= 0 && options.weight <= 1))
    fail("teacher-weight {}: expected 0 to 1", options.weight);
  if (!(options.temperature > 0) || !std::isfinite(options.temperature))
    fail("temperature {}: expected a number above 0", options.temperature);
  for (const auto& [name, weight] : {std::pair("teacher-hidden", options.hidden),
                                     std::pair("teacher-attention", options.attention)})
    if (!(weight >= 0) || !std::isfinite(weight)) fail("{} {}: expected 0 or more", name, weight);
}

DistillationStates add_distillation(Graph& graph, State& state,
                                    const DistillationOptions& options) {
  check_distillation(options);
  DistillationStates states;
  const bool follows = options.follows_layers() && !options.teachers.empty();
  if (!options.has_soft_labels && !follows) return states;
  const std::optional<Value> logits = graph.output("logits");
  if (!logits) fail("a model without logits cannot learn from a teacher");
  const Loss labels = find_loss(graph);
  LossBuilder loss(graph, "distillation");
  std::vector<Value> terms{labels.sum};
  Value count = labels.count;
  if (options.has_soft_labels) {
    const Value soft = loss.input(kSoftLabelsInput, graph.type(*logits));
    count = count_rows(loss, soft);
    terms = {loss.times("labels_part", labels.sum, 1 - options.weight),
             loss.times("soft_labels_part",
                        soft_label_loss(loss, *logits, soft, options.temperature), options.weight)};
  }
  if (follows)
    for (const Value& term : layer_losses(loss, state, *logits, options, states))
      terms.push_back(term);
  graph.set_output("loss", loss.add("mean", "div", {loss.sum("loss", terms), count}));
  return states;
}

}  // namespace lathe::train
