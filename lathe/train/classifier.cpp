#include "lathe/train/classifier.h"

#include "lathe/core/select_outputs.h"
#include "lathe/engine/backend.h"
#include "lathe/io/family_weights.h"
#include "lathe/train/make_source.h"

namespace lathe::train {
namespace {

constexpr const char* kTrainFirst = "train it first: lathe train --model M --data D --out DIR";

std::string place_of(const io::Model& model) {
  return model.directory.empty() ? "the model" : model.directory.string();
}

void check_is_trained(const io::Model& model) {
  for (const std::string& name : model.fresh)
    if (model.graph.find(name))
      throw UserError(fmt::format("{}: has no trained classifier: tensor \"{}\" is missing",
                                  place_of(model), name),
                      kTrainFirst);
}

// A stored graph may be anything: it must read what examples have and give a logit for each label.
void check_is_classifier(const Graph& graph, const io::Model& model, bool is_padded) {
  const bool reads_tokens = model.family->reads == models::Reads::Tokens;
  const std::optional<NodeId> mask = graph.find("attention_mask");
  if (is_padded && reads_tokens && !(mask && graph.is(*mask, "input")))
    fail("{}: its graph has no input attention_mask, so that padding would change its answers",
         place_of(model));
  if (reads_tokens)
    for (const NodeId id : graph.nodes_of("input"))
      if (graph.name(id) != "input_ids" && graph.name(id) != "attention_mask" &&
          graph.name(id) != kTokenTypes)
        fail("{}: its graph has the input \"{}\", which is not made from texts", place_of(model),
             graph.name(id));
  const Type& logits = graph.type(graph.outputs().front().second);
  Type expected{DType::F32, {Size::symbol("B")}};
  if (model.task == "tokens") expected.shape.push_back(Size::symbol("L"));
  expected.shape.emplace_back(static_cast<std::int64_t>(model.label_names.size()));
  if (logits != expected)
    fail("{}: its graph gives logits {}: expected {}, one for each label", place_of(model),
         to_text(logits), to_text(expected));
}

}  // namespace

Classifier::Classifier(const io::Model& model, const ClassifierOptions& options)
    : place_(place_of(model)),
      batch_tokens_(engine::find_backend(options.execution.device).batch_tokens) {
  if (!models::gives_labels(model.task))
    throw UserError(
        fmt::format("{}: is a model for {}, not a classifier", place_of(model), model.task),
        kTrainFirst);
  if (!options.allows_fresh) check_is_trained(model);
  Graph graph = select_outputs(model.graph, {"logits"});
  check_is_classifier(graph, model, options.is_padded);
  if (!options.is_padded) pack_inputs(graph, model);
  executor_ = engine::make_executor(graph, model.state, options.execution);
}

Tensor Classifier::logits(const Feed& feed) {
  Tensor logits = executor_->run(feed).at("logits");
  if (io::find_non_finite(logits))
    fail("{}: gives a logit that is not finite: its weights or formats overflow", place_);
  return logits;
}

}  // namespace lathe::train
