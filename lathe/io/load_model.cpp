#include <algorithm>
#include <set>

#include "lathe/core/graph_difference.h"
#include "lathe/core/graph_text.h"
#include "lathe/core/json_reader.h"
#include "lathe/core/role.h"
#include "lathe/io/checkpoint_manifest.h"
#include "lathe/io/directory_text.h"
#include "lathe/io/family_weights.h"
#include "lathe/io/mapped_file.h"
#include "lathe/io/model.h"
#include "lathe/io/model_config.h"
#include "lathe/io/onnx/load_onnx.h"
#include "lathe/io/portable_weights.h"
#include "lathe/io/preprocessor_config.h"
#include "lathe/io/safetensors.h"
#include "lathe/io/weight_directory.h"
#include "lathe/models/initialize.h"
#include "lathe/models/loss.h"
#include "lathe/models/set_inputs.h"
#include "lathe/models/set_label_count.h"
#include "lathe/models/tensor_names.h"

namespace lathe::io {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Whether a state may hold infinities: what is not learned and only added or chosen, as masks of
// scores are. A product with one would make every answer NaN.
bool may_be_infinite(const Graph& graph, NodeId id) {
  if (state_role(graph, id) != StateRole::Buffer) return false;
  return std::ranges::all_of(graph.uses(id), [&](const Use& use) {
    if (use.kind != Use::Kind::Operand) return true;
    const OperandRole role = operand_role(graph, use.user, static_cast<std::size_t>(use.operand));
    return role == OperandRole::Other || role == OperandRole::Bias;
  });
}

// Gives a state its value and refuses one that is no number, which would make every answer NaN.
void set_state(Model& model, NodeId id, Tensor value, const LoadOptions& options) {
  const std::string& name = model.graph.name(id);
  const bool is_mask = may_be_infinite(model.graph, id);
  if (const std::optional<std::int64_t> index =
          is_mask ? find_nan(value) : find_non_finite(value)) {
    if (!options.allow_non_finite)
      fail("tensor \"{}\" holds {} at index {}: expected finite numbers", name, value.at(*index),
           *index);
    model.non_finite.push_back(name);
  }
  model.state[name] = std::move(value);
}

void start_fresh(Model& model, NodeId id, const LoadOptions& options) {
  const std::string& name = model.graph.name(id);
  set_state(model, id, models::initialize_state(model.graph, id, options.seed), options);
  model.fresh.push_back(name);
}

// States that a file made for another task may lack.
void add_missing_heads(const Model& model, const State& weights, std::vector<std::string>& fresh) {
  for (const NodeId id : model.graph.nodes_of("state")) {
    const std::string& name = model.graph.name(id);
    if (models::belongs_to_head(*model.family, name) &&
        std::ranges::find(fresh, name) == fresh.end() &&
        !find_tensor(*model.family, model.config, weights, name))
      fresh.push_back(name);
  }
}

// Whether a model has a parameter, as a state or as codes: that it is untrained counts either way.
bool is_held(const Model& model, const std::string& name) {
  if (model.state.contains(name)) return true;
  return std::ranges::any_of(model.graph.nodes_of("decode"), [&](NodeId id) {
    return model.graph.attribute(id).text("of") == name;
  });
}

// Gives every state of the graph its value: from the file, or `fresh`.
void fill_state(Model& model, const State& weights, const std::vector<std::string>& fresh,
                const LoadOptions& options) {
  std::set<std::string> used;
  for (const NodeId id : model.graph.nodes_of("state")) {
    const std::string& name = model.graph.name(id);
    const std::optional<FoundTensor> stored =
        find_tensor(*model.family, model.config, weights, name);
    if (stored) used.insert(stored->name);
    if (std::ranges::find(fresh, name) != fresh.end()) {
      start_fresh(model, id, options);
      continue;
    }
    if (!stored)
      fail("tensor \"{}\" is missing: expected {}", name, to_text(model.graph.types(id)[0]));
    set_state(model, id, fit_state(model.graph, id, *stored), options);
  }
  for (const SecondName& second : find_second_names(*model.family, model.config, weights))
    if (second.is_same && model.graph.find(second.tied->state)) used.insert(second.name);
  for (const auto& [name, tensor] : weights)
    if (!used.contains(name)) model.left_out.push_back(name);
}

// Layers, norms and biases that the file has and the configuration does not would be missing from
// every answer; heads of other tasks are not.
void refuse_unread_parts(const Model& model, const State& weights) {
  const std::vector<std::string> parts = parts_of_base(*model.family, weights, model.left_out);
  if (parts.empty()) return;
  throw UserError(
      fmt::format("tensor \"{}\"{} has no place in the {} model that config.json describes",
                  parts.front(),
                  parts.size() == 1 ? "" : fmt::format(" (and {} more)", parts.size() - 1),
                  model.family->name),
      "the number of layers, which of them have biases, and model_type must be those of the "
      "weights");
}

const models::ModelFamily& find_family(const json& config, const State& weights) {
  const models::FamilyRegistry& families = models::FamilyRegistry::instance();
  const auto type = config.find("model_type");
  if (type != config.end() && !type->is_null()) {
    if (!type->is_string()) fail("model_type is {}: expected a text", type->dump());
    return families.at(type->get<std::string>(), "model_type");
  }
  // Old directories do not name their family; the tensors' names do.
  for (const auto& [name, family] : families.all())
    for (const auto& [tensor, value] : weights)
      if (!family.naming.base_prefix.empty() && tensor.starts_with(family.naming.base_prefix))
        return family;
  fail("model_type is missing and the tensors' names do not tell it; known: {}",
       fmt::join(families.names(), ", "));
}

std::vector<std::string> numbered_labels(std::int64_t count) {
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < count; ++i) names.push_back(fmt::format("LABEL_{}", i));
  return names;
}

void build_graph(Model& model, const std::vector<std::string>& inputs) {
  for (const auto& [key, value] : models::find_task(*model.family, model.task).config)
    model.config[key] = value;
  model.graph = models::build(*model.family, model.config,
                              {.task = model.task,
                               .inputs = inputs,
                               .num_labels = static_cast<std::int64_t>(model.label_names.size()),
                               .labels = model.labels});
}

// The loss that belongs to the labels, where the graph has one.
void choose_label_kind(Model& model, const LoadOptions& options) {
  if (model.task != "classify") return;
  if (options.labels) model.labels = *options.labels;
  const bool is_one = models::label_count(model.graph) == 1;
  if (!options.labels && is_one && model.labels == LabelKind::Class)
    model.labels = LabelKind::Number;
  const std::optional<LabelKind> present = models::loss_kind(model.graph);
  if (!present || *present == model.labels) return;
  models::detach_loss(model.graph);
  models::attach_loss(model.graph, model.labels);
}

// The states of the layer that gives the logits, as they would be where it is made anew.
void add_head(const Model& model, std::vector<std::string>& fresh) {
  const std::string& layer = models::find_task(*model.family, model.task).label_layer;
  const std::optional<NodeId> node = layer.empty() ? std::nullopt : model.graph.find(layer);
  if (!node) fail("new-head: a {} model has no layer of labels to replace", model.family->name);
  for (const Value& operand : model.graph.inputs(*node)) {
    if (operand.is_none() || !model.graph.is(operand.node, "state")) continue;
    const std::string& name = model.graph.name(operand.node);
    if (std::ranges::find(fresh, name) == fresh.end()) fresh.push_back(name);
  }
  if (fresh.empty())
    fail("new-head: the layer \"{}\" is not made of plain parameters and stays", layer);
}

// Makes the graph give the number of labels asked for; returns the states that start afresh then.
std::vector<std::string> choose_labels(Model& model, const LoadOptions& options) {
  if (!models::gives_labels(model.task)) {
    if (options.num_labels > 0)
      fail("{} labels: a model for {} has none to choose", options.num_labels, model.task);
    return {};
  }
  std::vector<std::string> fresh;
  if (options.num_labels > 0)
    fresh = models::set_label_count(model.graph, models::find_task(*model.family, model.task),
                                    options.num_labels);
  // What the graph gives is what there is; names that do not fit it name nothing.
  const std::optional<std::int64_t> count = models::label_count(model.graph);
  if (count && *count != static_cast<std::int64_t>(model.label_names.size()))
    model.label_names = numbered_labels(*count);
  choose_label_kind(model, options);
  if (options.new_head) {
    add_head(model, fresh);
    model.label_names = numbered_labels(static_cast<std::int64_t>(model.label_names.size()));
  }
  return fresh;
}

// A tensor with a second name is one only while both are the same: where a file says otherwise, the
// model has two, unless the configuration itself says that there is one.
void untie_what_differs(Model& model, const State& weights) {
  for (const SecondName& second : find_second_names(*model.family, model.config, weights))
    if (!second.is_same) model.config[second.tied->key] = false;
}

// Which of two tensors such a layer multiplies by is not known: other programs read one or both.
void refuse_contradicted_ties(const Model& model, const State& weights, const json& config) {
  for (const SecondName& second : find_second_names(*model.family, model.config, weights)) {
    const auto said = config.find(second.tied->key);
    if (second.is_same || said == config.end() || *said != true ||
        !model.graph.find(second.tied->name))
      continue;
    throw UserError(
        fmt::format(
            "tensor \"{}\" differs from \"{}\", but config.json says {}: expected one tensor",
            second.name, second.tied->state, second.tied->key),
        "say false there to have both, or take the one away that is not to be used");
  }
}

Model load_huggingface(const fs::path& directory, const LoadOptions& options) {
  Model model;
  model.directory = directory;
  const fs::path config_path = directory / "config.json";
  const std::shared_ptr<const MappedFile> config_file = MappedFile::open(config_path);
  model.config_text = std::string(config_file->text());
  const json config = parse_json(model.config_text, config_path.string());
  State weights = read_weights(directory);
  with_place(config_path.string(), [&] {
    if (!config.is_object()) fail("expected an object of configuration keys");
    model.family = &find_family(config, weights);
    model.config = read_family_config(*model.family, config);
    model.label_names = read_label_names(config);
    model.labels = options.labels.value_or(read_label_kind(config, model.label_names.size()));
    model.reading = read_reading(config);
    model.task = options.task.empty()
                     ? read_task(*model.family, config).value_or(model.family->tasks.front().name)
                     : options.task;
  });
  model.images = read_images_of(directory, *model.family);
  with_place(directory.string(), [&] {
    weights = read_tensor_names(*model.family, weights);
    untie_what_differs(model, weights);
  });
  std::vector<std::string> fresh = with_place(config_path.string(), [&] {
    build_graph(model, options.inputs);
    return choose_labels(model, options);
  });
  add_missing_heads(model, weights, fresh);
  with_place(directory.string(), [&] {
    refuse_contradicted_ties(model, weights, config);
    fill_state(model, weights, fresh, options);
    refuse_unread_parts(model, weights);
  });
  return model;
}

// Another task is another graph, which the family builds: that may replace only one that is the
// family's own, for whatever a pass put into it would be lost.
void change_task(Model& model, const std::string& task, const std::vector<std::string>& inputs) {
  const Graph own = family_graph(model);
  if (const std::optional<std::string> difference = describe_difference(model.graph, own))
    fail("cannot be loaded for {}: its graph for {} is not the one that {} builds: {}", task,
         model.task, model.family->name, *difference);
  model.task = task;
  build_graph(model, inputs);
}

Model load_checkpoint(const fs::path& directory, const LoadOptions& options) {
  const Manifest manifest = read_manifest(directory);
  verify_files(directory, manifest);
  Model model;
  model.directory = directory;
  model.family = &models::FamilyRegistry::instance().at(manifest.family, "model family");
  model.task = manifest.task;
  model.label_names = manifest.label_names;
  model.config_text = std::string(MappedFile::open(directory / "config.json")->text());
  const json config = parse_json(model.config_text, (directory / "config.json").string());
  model.config = read_family_config(*model.family, config);
  with_place((directory / "config.json").string(), [&] {
    model.labels = read_label_kind(config, model.label_names.size());
    model.reading = read_reading(config);
  });
  model.images = read_images_of(directory, *model.family);
  const State weights = read_weights(directory);
  std::error_code error;
  if (options.with_masters && fs::exists(directory / kMastersName, error))
    for (const SafetensorsFile file = SafetensorsFile::open(directory / kMastersName);
         const TensorInfo& info : file.tensors())
      model.masters[info.name] = file.tensor(info.name);
  const std::string graph_text = read_text(directory, kGraphName);
  model.graph = with_place((directory / kGraphName).string(), [&] {
    Graph graph = parse_graph(graph_text);
    verify(graph);
    return graph;
  });
  with_place(directory.string(), [&] {
    const bool is_other_task = !options.task.empty() && options.task != model.task;
    if (is_other_task)
      change_task(model, options.task, options.inputs);
    else if (!options.inputs.empty())
      models::set_inputs(model.graph, *model.family, models::find_task(*model.family, model.task),
                         options.inputs, options.labels.value_or(model.labels));
    std::vector<std::string> fresh = choose_labels(model, options);
    if (is_other_task) add_missing_heads(model, weights, fresh);
    fill_state(model, weights, fresh, options);
    for (const std::string& name : manifest.fresh)
      if (is_held(model, name) && std::ranges::find(model.fresh, name) == model.fresh.end())
        model.fresh.push_back(name);
  });
  return model;
}

Model load_onnx(const fs::path& path, const LoadOptions& options) {
  Model model = onnx::read_onnx_model(path);
  model.images = read_images_of(path, *model.family);
  with_place(path.string(), [&] {
    if (!options.task.empty() && options.task != model.task)
      fail("is a graph for {}: it cannot be loaded for {}", model.task, options.task);
    if (!options.inputs.empty())
      models::set_inputs(model.graph, *model.family, models::find_task(*model.family, model.task),
                         options.inputs, options.labels.value_or(model.labels));
    for (const std::string& name : choose_labels(model, options))
      start_fresh(model, model.graph.at(name), options);
    for (const NodeId id : model.graph.nodes_of("state"))
      if (const std::string& name = model.graph.name(id);
          std::ranges::find(model.fresh, name) == model.fresh.end())
        set_state(model, id, model.state.at(name), options);
  });
  return model;
}

Model build_named(const models::NamedModel& named, const LoadOptions& options) {
  Model model;
  model.family = named.family;
  model.config = named.config;
  check_attributes(options.config, [&] {
    std::vector<AttributeSpec> specs = named.family->config;
    for (AttributeSpec& spec : specs) spec.required = false;
    return specs;
  }());
  for (const auto& [key, value] : options.config) model.config[key] = value;
  model.task = options.task.empty() ? named.family->tasks.front().name : options.task;
  model.label_names = options.num_labels > 0 ? numbered_labels(options.num_labels)
                                             : read_label_names(json::object());
  model.labels =
      options.labels.value_or(model.label_names.size() == 1 ? LabelKind::Number : LabelKind::Class);
  build_graph(model, options.inputs);
  choose_labels(model, options);
  model.state = models::initialize(model.graph, options.seed);
  for (const auto& [name, tensor] : model.state) model.fresh.push_back(name);
  return model;
}

}  // namespace

Model load_model(const std::string& directory_or_name, const LoadOptions& options) {
  if (const auto named = models::find_named_model(directory_or_name))
    return with_place(directory_or_name, [&] { return build_named(*named, options); });
  const fs::path directory = directory_or_name;
  if (onnx::is_onnx_file(directory)) return load_onnx(directory, options);
  std::error_code error;
  if (!fs::is_directory(directory, error)) {
    const std::vector<std::string> names = models::named_models();
    const std::string nearest = nearest_name(directory_or_name, names);
    throw UserError(fmt::format("{}: no such model directory, and no builder has this name; "
                                "builders: {}",
                                directory_or_name, fmt::join(names, ", ")),
                    nearest.empty() ? "" : fmt::format("did you mean \"{}\"?", nearest));
  }
  return is_checkpoint(directory) ? load_checkpoint(directory, options)
                                  : load_huggingface(directory, options);
}

}  // namespace lathe::io
