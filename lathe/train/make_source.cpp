#include "lathe/train/make_source.h"

#include <algorithm>

#include "lathe/core/pass.h"
#include "lathe/models/set_inputs.h"
#include "lathe/train/array_source.h"
#include "lathe/train/targets.h"
#include "lathe/train/text_source.h"

namespace lathe::train {
namespace {

// A value that a family says its configuration holds under some key.
std::int64_t config_integer(const io::Model& model, const std::string& key) {
  return AttributeReader(model.config, model.family->config).integer(key);
}

bool reads_tokens(const io::Model& model) {
  return model.family->reads == models::Reads::Tokens;
}

// The one input that takes an example's numbers.
NodeId number_input(const Graph& graph) {
  std::optional<NodeId> found;
  for (const NodeId id : graph.nodes_of("input")) {
    if (graph.types(id)[0].dtype != DType::F32 || graph.name(id) == "labels") continue;
    if (found)
      fail("the model has the inputs \"{}\" and \"{}\": expected one that reads numbers",
           graph.name(*found), graph.name(id));
    found = id;
  }
  if (!found) fail("the model has no input that reads numbers");
  return *found;
}

// Whether data of one shape can be fed where another is read: 28 x 28 pixels are 784 features where
// the model takes features, and grey images can be coloured; but pixels that a model reads with
// their channels side by side would be mistaken for others.
bool can_feed(const std::vector<std::int64_t>& data, const std::vector<std::int64_t>& model) {
  if (data.size() != 3 || model.size() != 3) return num_elements(data) == num_elements(model);
  const bool is_coloured = data[0] == 1 && model[0] == 3;
  if (data[1] == model[1] && data[2] == model[2] && (data[0] == model[0] || is_coloured))
    return true;
  return data[0] == 1 && model[2] == 1 && data[1] == model[0] && data[2] == model[1];
}

std::string hint_for(const std::vector<std::int64_t>& data,
                     const std::vector<std::int64_t>& model) {
  if (data.size() != 3 || model.size() != 3) return "";
  if (model[2] == data[0] && model[0] == data[1] && model[1] == data[2])
    return "the model reads the channels of a pixel side by side, which images are not fed as";
  if (data[0] != model[0] && !(data[0] == 1 && model[0] == 3)) return "";
  return fmt::format("images resize={}x{} brings them to that size", model[1], model[2]);
}

// What batches for training do to images; nothing where they are as they are.
std::optional<ImageTraining> image_training(const io::Model& model, const data::Arrays& arrays,
                                            const SourceOptions& options) {
  if (options.augmentation == Augmentation()) return std::nullopt;
  if (arrays.shape.size() != 3)
    fail("augment: the data is no images, but examples of shape {}", to_text(arrays.shape));
  ImageTraining training{
      .augmentation = options.augmentation, .shape = arrays.shape, .seed = options.seed};
  for (std::int64_t channel = 0; channel < arrays.shape[0]; ++channel)
    training.background.push_back(data::pixel_value(model.images, channel, 0));
  return training;
}

std::unique_ptr<ExampleSource> make_array_source(const io::Model& model,
                                                 const data::Dataset& dataset,
                                                 const SourceOptions& options) {
  if (!dataset.arrays) fail("the model reads numbers, but the data has texts");
  const NodeId input = number_input(model.graph);
  const Type& type = model.graph.types(input)[0];
  std::vector<std::int64_t> shape;
  for (std::size_t axis = 1; axis < type.rank(); ++axis)
    shape.push_back(type.shape[axis].constant());
  if (!can_feed(dataset.arrays->shape, shape))
    throw UserError(
        fmt::format("the model reads examples of shape {}, but the data's are of shape {}",
                    to_text(shape), to_text(dataset.arrays->shape)),
        hint_for(dataset.arrays->shape, shape));
  const auto copies =
      static_cast<std::size_t>(num_elements(shape) / num_elements(dataset.arrays->shape));
  return std::make_unique<ArraySource>(model.graph.name(input), std::move(shape),
                                       dataset.arrays->values, dataset.labels(), copies,
                                       image_training(model, *dataset.arrays, options));
}

// Rows of numbers as labels, where the data has them.
std::unique_ptr<ExampleSource> with_targets(std::unique_ptr<ExampleSource> source,
                                            const data::Dataset& dataset,
                                            const SourceOptions& options) {
  if (!dataset.targets.empty())
    return std::make_unique<WithTargets>(std::move(source), dataset.targets, dataset.num_targets());
  if (labels_of(options.objective) != LabelKind::Number) return source;
  // Classes are numbers too, for whoever wants to come close to them.
  const std::vector<std::int32_t> labels = dataset.labels();
  return std::make_unique<WithTargets>(std::move(source),
                                       std::vector<float>(labels.begin(), labels.end()), 1);
}

TextFeeding make_feeding(const io::Model& model, const data::Tokenizer& tokenizer,
                         const SourceOptions& options) {
  TextFeeding feeding{
      .objective = make_objective(options.objective, tokenizer, options.mask_share, options.seed)};
  const std::optional<NodeId> types = model.graph.find(kTokenTypes);
  feeding.objective.has_token_types = types && model.graph.is(*types, "input");
  if (options.is_padded)
    feeding.padding_id =
        static_cast<std::int32_t>(config_integer(model, model.family->token_keys.padding));
  return feeding;
}

}  // namespace

std::string objective_of(const io::Model& model) {
  const std::vector<std::string>& names = objective_names();
  const bool is_objective = std::find(names.begin(), names.end(), model.task) != names.end();
  return is_objective ? model.task : "classify";
}

io::Model with_token_types(io::Model model) {
  const std::vector<std::string>& others =
      models::find_task(*model.family, model.task).optional_inputs;
  const std::optional<NodeId> present = model.graph.find(kTokenTypes);
  if (std::ranges::find(others, kTokenTypes) == others.end() ||
      (present && model.graph.is(*present, "input")))
    return model;
  std::vector<std::string> inputs = models::input_names(model.graph);
  inputs.emplace_back(kTokenTypes);
  models::set_inputs(model.graph, *model.family, models::find_task(*model.family, model.task),
                     inputs, model.labels);
  return model;
}

data::Reads reads_of(const models::ModelFamily& family, std::string_view task) {
  if (task == "tokens") return data::Reads::Words;
  return family.reads == models::Reads::Tokens ? data::Reads::Text : data::Reads::Numbers;
}

std::shared_ptr<const data::Tokenizer> load_tokenizer(const io::Model& model) {
  if (!reads_tokens(model)) fail("a {} model does not read text", model.family->name);
  if (model.tokenizer == nullptr && model.directory.empty())
    fail("a model made by name has no vocabulary: give a model directory");
  std::shared_ptr<const data::Tokenizer> tokenizer =
      model.tokenizer != nullptr ? model.tokenizer : data::load_tokenizer(model.directory);
  tokenizer->check_size(config_integer(model, model.family->token_keys.vocabulary));
  return tokenizer;
}

std::int64_t max_length(const io::Model& model) {
  if (!reads_tokens(model)) return 0;
  const models::TokenKeys& keys = model.family->token_keys;
  const std::int64_t positions = config_integer(model, keys.length);
  return keys.counts_behind_padding ? positions - config_integer(model, keys.padding) - 1
                                    : positions;
}

std::int64_t text_length(const io::Model& model, std::int64_t length) {
  const std::int64_t longest = max_length(model);
  if (longest == 0) return 0;
  if (length == 0)
    return model.reading.length > 0 ? std::min(model.reading.length, longest) : longest;
  if (length < 3 || length > longest)
    fail("length {}: expected 3 to {}, the model's longest sequence", length, longest);
  return length;
}

void pack_inputs(Graph& graph, const io::Model& model) {
  if (reads_tokens(model)) run_pass("pack-sequences", graph);
}

std::unique_ptr<ExampleSource> make_evaluation_source(const io::Model& model,
                                                      const data::Dataset& dataset,
                                                      const SourceOptions& options,
                                                      ThreadPool* pool,
                                                      const ShouldStop& should_stop) {
  if (!reads_tokens(model))
    return with_targets(make_array_source(model, dataset, options), dataset, options);
  const std::shared_ptr<const data::Tokenizer> tokenizer = load_tokenizer(model);
  const std::int64_t length = text_length(model, options.length);
  TextFeeding feeding = make_feeding(model, *tokenizer, options);
  if (dataset.store)
    return with_targets(
        std::make_unique<UnkeptTexts>(dataset, tokenizer, length,
                                      options.truncation.value_or(model.reading.truncation),
                                      std::move(feeding)),
        dataset, options);
  ThreadPool alone(1);
  return with_targets(std::make_unique<TokenizedTexts>(
                          data::tokenize(dataset, *tokenizer, length,
                                         options.truncation.value_or(model.reading.truncation),
                                         pool != nullptr ? *pool : alone, should_stop),
                          std::move(feeding)),
                      dataset, options);
}

std::unique_ptr<ExampleSource> make_training_source(const io::Model& model,
                                                    const data::Dataset& dataset,
                                                    const SourceOptions& options,
                                                    std::vector<std::int64_t> order) {
  if (!reads_tokens(model))
    return with_targets(make_array_source(model, dataset, options), dataset, options);
  std::shared_ptr<const data::Tokenizer> tokenizer = load_tokenizer(model);
  const std::int64_t length = text_length(model, options.length);
  TextFeeding feeding = make_feeding(model, *tokenizer, options);
  if (dataset.store)
    return with_targets(
        std::make_unique<UnkeptTexts>(dataset, std::move(tokenizer), length,
                                      options.truncation.value_or(model.reading.truncation),
                                      std::move(feeding)),
        dataset, options);
  return with_targets(
      std::make_unique<StreamedTexts>(dataset, std::move(tokenizer), length,
                                      options.truncation.value_or(model.reading.truncation),
                                      std::move(order), std::move(feeding)),
      dataset, options);
}

}  // namespace lathe::train
