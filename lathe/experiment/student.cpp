#include "lathe/experiment/student.h"

#include <algorithm>

#include "lathe/compress/layer_match.h"
#include "lathe/compress/lora.h"
#include "lathe/compress/lora_adapter.h"
#include "lathe/compress/lora_options.h"
#include "lathe/compress/packed_weights.h"
#include "lathe/compress/quantizers.h"
#include "lathe/compress/trained_parameters.h"
#include "lathe/core/role.h"
#include "lathe/data/match_labels.h"
#include "lathe/experiment/read_data.h"
#include "lathe/io/model_family.h"
#include "lathe/train/make_source.h"
#include "lathe/train/training_feed.h"
#include "lathe/train/training_graph.h"

namespace lathe::experiment {
namespace {

namespace fs = std::filesystem;

// A classifier that was trained and knows the data's labels keeps its head; any other starts one
// with a logit for each of them.
bool keeps_labels(const io::Model& model, const data::Dataset& examples) {
  if (model.labels != examples.label_kind) return false;
  if (examples.label_kind == LabelKind::Number) return true;
  const std::string& layer = models::find_task(*model.family, model.task).label_layer;
  for (const std::string& name : model.fresh)
    if (layer.empty() || name.starts_with(layer + ".")) return false;
  data::Dataset names{.examples = {}, .label_names = examples.label_names};
  for (std::int32_t label = 0; label < examples.num_labels(); ++label)
    names.examples.push_back({.text = {}, .label = label});
  try {
    data::match_labels(std::move(names), model.label_names);
    return true;
  } catch (const UserError&) {
    return examples.label_names.size() == model.label_names.size();
  }
}

io::Model unpacked(io::Model model) {
  compress::unpack_model(model);
  return model;
}

}  // namespace

std::vector<std::string> inputs_with_labels(const models::ModelFamily& family,
                                            const std::string& task) {
  std::vector<std::string> inputs = models::find_task(family, task).inputs;
  if (std::find(inputs.begin(), inputs.end(), "labels") == inputs.end()) inputs.push_back("labels");
  return inputs;
}

void remember_reading(io::Model& model, const FineTuneOptions& options) {
  io::Reading& reading = model.reading;
  if (options.length > 0) reading.length = options.length;
  reading.truncation = options.truncation.value_or(reading.truncation);
  if (!options.text_column.empty()) reading.text_columns = options.text_column;
  if (!options.label_column.empty()) reading.label_columns = options.label_column;
  reading.label_separator = options.label_separator;
  set_images(model, options.images);
}

io::Model load_student(const FineTuneOptions& options, const data::Dataset& examples) {
  const std::string task = train::task_of(options.graph.objective);
  io::LoadOptions loading{.task = task,
                          .inputs = inputs_with_labels(io::model_family(options.model), task),
                          .seed = options.trainer.seed,
                          .with_masters = true};
  const bool is_classifier = models::gives_labels(task);
  if (is_classifier) loading.labels = examples.label_kind;
  if (is_classifier && examples.label_kind == LabelKind::Number) loading.num_labels = 1;
  if (examples.has_pairs) {
    const std::vector<std::string>& others =
        models::find_task(io::model_family(options.model), task).optional_inputs;
    if (std::ranges::find(others, train::kTokenTypes) != others.end())
      loading.inputs.emplace_back(train::kTokenTypes);
  }
  if (options.labels > 0 || options.new_head) {
    if (!is_classifier) fail("labels: a model for {} has none to choose", task);
    if (options.labels > 0 && options.labels < examples.num_labels())
      fail("labels {}: the data has {}: {}", options.labels, examples.num_labels(),
           fmt::join(examples.label_names, ", "));
    loading.new_head = options.new_head;
    if (examples.label_kind != LabelKind::Number)
      loading.num_labels = options.labels > 0 ? options.labels : examples.num_labels();
    return unpacked(load_with_tokenizer(options.model, options.tokenizer, options.data, loading));
  }
  io::LoadOptions first = loading;
  first.labels = std::nullopt;  // as it was trained, to see whether that fits
  if (examples.label_kind == LabelKind::Number) first.num_labels = 0;
  io::Model model = load_with_tokenizer(options.model, options.tokenizer, options.data, first);
  if (is_classifier && !keeps_labels(model, examples)) {
    if (examples.label_kind != LabelKind::Number)
      loading.num_labels =
          std::max(examples.label_kind == LabelKind::Class ? 2 : 1, examples.num_labels());
    if (loading.num_labels != static_cast<std::int64_t>(model.label_names.size()) ||
        model.labels != examples.label_kind) {
      // What told classes apart has nothing to say of numbers or sets.
      loading.new_head = model.labels != examples.label_kind && model.fresh.empty();
      model = load_with_tokenizer(options.model, options.tokenizer, options.data, loading);
    }
  }
  return unpacked(std::move(model));
}

void warn_of_idle_patterns(const FineTuneOptions& options, const Graph& graph,
                           const Callbacks& callbacks) {
  for (const std::string& pattern : options.graph.freeze) {
    with_place("freeze", [&] { compress::check_match(compress::MatchBy::Regex, pattern); });
    const std::vector<NodeId> states = states_of(graph, StateRole::Parameter);
    const bool is_idle = std::ranges::none_of(states, [&](NodeId id) {
      return compress::matches(compress::MatchBy::Regex, pattern, "state", graph.name(id));
    });
    if (is_idle) callbacks.warn(fmt::format("freeze \"{}\": matches no parameter", pattern));
  }
}

std::vector<std::string> prepare_lora(io::Model& model, const FineTuneOptions& options,
                                      const train::TrainingCheckpoint* resumed,
                                      const Callbacks& callbacks) {
  if (resumed != nullptr) {
    State state = model.state;
    return compress::parameters_with_moments(
        train::make_training_graph(model, options.graph, state).graph, resumed->state);
  }
  const compress::LoraOptions lora =
      with_place("lora", [&] { return compress::parse_lora_options(options.lora); });
  if (compress::is_quantized(model.graph))
    callbacks.warn(
        "lora: the model is quantized, so that its paths cannot be fused into the weights; to have "
        "one model in the end, fuse on the float model and quantize that");
  // Before the insertion, after which the paths' states would count as the file's.
  const std::vector<std::string> fresh = compress::fresh_head(model);
  if (const std::vector<std::string> rounded =
          compress::unround_parameters(model.graph, model.state, fresh);
      !rounded.empty())
    callbacks.warn(fmt::format("lora: no file had trained values for {}: floats, and so they stay",
                               fmt::join(rounded, ", ")));
  with_place("lora",
             [&] { compress::insert_lora(model.graph, model.state, lora, options.trainer.seed); });
  return compress::lora_parameters(model.graph, fresh);
}

void save_adapter(const fs::path& run, const io::Model& model,
                  const std::vector<std::string>& trained, const std::string& base,
                  const Callbacks& callbacks) {
  for (const compress::LoraPath& path : compress::find_lora(model.graph))
    if (path.mask.index >= 0) {
      callbacks.warn(
          "no adapter is written: masks cover the LoRA paths, which an adapter has no place for");
      return;
    }
  std::vector<std::string> saved = trained;
  for (const compress::LoraPath& path : compress::find_lora(model.graph))
    for (const NodeId id : {path.a, path.b}) std::erase(saved, model.graph.name(id));
  compress::save_adapter(run / "adapter", model, saved, base);
}

}  // namespace lathe::experiment
