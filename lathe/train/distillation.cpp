#include "lathe/train/distillation.h"

#include "lathe/core/scalar_constant.h"
#include "lathe/train/find_loss.h"
#include "lathe/train/soft_labels.h"

namespace lathe::train {
namespace {

class LossBuilder {
 public:
  explicit LossBuilder(Graph& graph) : graph_(graph) {}

  Value add(const std::string& name, const std::string& op, std::vector<Value> inputs,
            Attributes attributes = {}) {
    return {graph_.add({.name = "distillation/" + name,
                        .op = op,
                        .inputs = std::move(inputs),
                        .attributes = std::move(attributes)}),
            0};
  }

  Value times(const std::string& name, Value x, double factor) {
    const Value constant = add_scalar_constant(graph_, "distillation/" + name + "/factor", factor);
    return add(name, "mul", {x, constant});
  }

 private:
  Graph& graph_;
};

// The cross-entropy of the model with the soft labels, summed over examples.
Value soft_label_loss(Graph& graph, LossBuilder& loss, double temperature) {
  const std::optional<Value> logits = graph.output("logits");
  if (!logits) fail("a model without logits cannot learn from a teacher's");
  const Value expected{
      graph.add(
          {.name = kSoftLabelsInput, .op = "input", .inputs = {}, .types = {graph.type(*logits)}}),
      0};
  const Value given =
      loss.add("given", "log_softmax", {loss.times("softened", *logits, 1 / temperature)},
               {{"axis", std::int64_t{-1}}});
  const Value agreement =
      loss.add("agreement", "sum", {loss.add("agreements", "mul", {expected, given})});
  return loss.times("teacher", agreement, -temperature * temperature);
}

}  // namespace

void check_distillation(const DistillationOptions& options) {
  if (!(options.weight >= 0 && options.weight <= 1))
    fail("teacher-weight {}: expected 0 to 1", options.weight);
  if (!(options.temperature > 0))
    fail("temperature {}: expected a number above 0", options.temperature);
}

void add_distillation(Graph& graph, const DistillationOptions& options) {
  check_distillation(options);
  if (!options.has_soft_labels) return;
  LossBuilder loss(graph);
  const Loss labels = find_loss(graph);
  const Value taught = soft_label_loss(graph, loss, options.temperature);
  const Value sum = loss.add("loss", "add",
                             {loss.times("labels_part", labels.sum, 1 - options.weight),
                              loss.times("teacher_part", taught, options.weight)});
  graph.set_output("loss", loss.add("mean", "div", {sum, labels.count}));
}

}  // namespace lathe::train
