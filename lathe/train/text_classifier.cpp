#include "lathe/train/text_classifier.h"

#include "lathe/core/pass.h"
#include "lathe/core/select_outputs.h"

namespace lathe::train {
namespace {

std::int64_t config_integer(const io::Model& model, std::string_view key) {
  return AttributeReader(model.config, model.family->config).integer(key);
}

void check_is_trained(const io::Model& model) {
  const std::string where = model.directory.empty() ? "the model" : model.directory.string();
  for (const std::string& name : model.fresh)
    if (model.graph.find(name))
      throw UserError(
          fmt::format("{}: has no trained classifier: tensor \"{}\" is missing", where, name),
          "train it first: lathe train --model M --data D --out DIR");
}

// A stored graph may be anything: it must read what a batch of texts has and give a logit for each
// label.
void check_is_classifier(const Graph& graph, const io::Model& model, bool is_padded) {
  const std::string where = model.directory.empty() ? "the model" : model.directory.string();
  const std::optional<NodeId> mask = graph.find("attention_mask");
  if (is_padded && !(mask && graph.is(*mask, "input")))
    fail("{}: its graph has no input attention_mask, so that padding would change its answers",
         where);
  for (const NodeId id : graph.nodes_of("input"))
    if (graph.name(id) != "input_ids" && graph.name(id) != "attention_mask")
      fail("{}: its graph has the input \"{}\", which is not made from texts", where,
           graph.name(id));
  const Type& logits = graph.type(graph.outputs().front().second);
  const Type expected{
      DType::F32, {Size::symbol("B"), Size(static_cast<std::int64_t>(model.label_names.size()))}};
  if (logits != expected)
    fail("{}: its graph gives logits {}: expected {}, one for each label", where, to_text(logits),
         to_text(expected));
}

}  // namespace

std::shared_ptr<const data::Tokenizer> load_tokenizer(const io::Model& model) {
  if (model.family->name != "bert") fail("a {} model does not read text", model.family->name);
  const std::int64_t expected = config_integer(model, "vocab_size");
  if (!model.tokenizer && model.directory.empty())
    fail("a model made by name has no vocabulary: give a model directory");
  auto tokenizer = model.tokenizer ? model.tokenizer : data::load_tokenizer(model.directory);
  tokenizer->check_size(expected);
  return tokenizer;
}

std::int64_t max_length(const io::Model& model) {
  return config_integer(model, "max_position_embeddings");
}

TextClassifier::TextClassifier(const io::Model& model, const ClassifierOptions& options)
    : options_(options) {
  if (model.task != "classify")
    throw UserError(
        fmt::format("{}: is a model for {}, not a classifier",
                    model.directory.empty() ? "the model" : model.directory.string(), model.task),
        "train it first: lathe train --model M --data D --out DIR");
  if (!options.allow_fresh) check_is_trained(model);
  Graph graph = select_outputs(model.graph, {"logits"});
  check_is_classifier(graph, model, options.is_padded);
  if (!options.is_padded) run_pass("pack-sequences", graph);
  padding_id_ = static_cast<std::int32_t>(config_integer(model, "pad_token_id"));
  executor_ = engine::make_executor(graph, model.state, options.execution);
}

Tensor TextClassifier::logits(const data::Batch& batch) {
  Feed feed;
  const auto tensor = [](std::vector<std::int64_t> dims, const std::vector<std::int32_t>& values) {
    return Tensor::from<std::int32_t>(std::move(dims), std::span<const std::int32_t>(values));
  };
  if (options_.is_padded) {
    const data::PaddedBatch padded = data::to_padded(batch, padding_id_);
    feed["input_ids"] = tensor({padded.num_rows, padded.length}, padded.ids);
    feed["attention_mask"] = tensor({padded.num_rows, padded.length}, padded.mask);
  } else {
    feed["input_ids"] = tensor({batch.num_tokens()}, batch.ids);
    feed["offsets"] = tensor({batch.num_sequences() + 1}, batch.offsets);
  }
  return executor_->run(feed).at("logits");
}

}  // namespace lathe::train
