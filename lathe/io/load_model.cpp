#include <algorithm>

#include "lathe/core/graph_text.h"
#include "lathe/core/json_reader.h"
#include "lathe/io/checkpoint_manifest.h"
#include "lathe/io/mapped_file.h"
#include "lathe/io/model.h"
#include "lathe/io/model_config.h"
#include "lathe/io/safetensors.h"
#include "lathe/io/weight_directory.h"
#include "lathe/models/initialize.h"

namespace lathe::io {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

bool starts_with_any(std::string_view name, const std::vector<std::string>& prefixes) {
  for (const std::string& prefix : prefixes)
    if (name.starts_with(prefix)) return true;
  return false;
}

// The tensor a state is stored under: its own name, or without the prefix in a file of the bare
// encoder.
const Tensor* find_weight(const State& weights, const std::string& name, const std::string& prefix,
                          std::string& found_as) {
  for (const std::string& candidate :
       {name, !prefix.empty() && name.starts_with(prefix) ? name.substr(prefix.size()) : name}) {
    const auto found = weights.find(candidate);
    if (found == weights.end()) continue;
    found_as = candidate;
    return &found->second;
  }
  return nullptr;
}

// Gives every state of the graph its value: from the file, or fresh where a head may be.
void fill_state(Model& model, const State& weights, std::uint64_t seed) {
  std::vector<std::string> used;
  for (const NodeId id : model.graph.nodes_of("state")) {
    const std::string& name = model.graph.name(id);
    const Type& type = model.graph.types(id)[0];
    std::string found_as;
    const Tensor* weight = find_weight(weights, name, model.family->base_prefix, found_as);
    if (weight == nullptr) {
      if (!starts_with_any(name, model.family->head_prefixes))
        fail("tensor \"{}\" is missing: expected {}", name, to_text(type));
      model.state[name] = models::initialize_state(model.graph, id, seed);
      model.fresh.push_back(name);
      continue;
    }
    if (weight->dims() != type.dims({}))
      fail("tensor \"{}\" has shape {}, but the configuration expects {}", found_as,
           to_text(weight->dims()), to_text(type.shape));
    if (!is_floating(weight->dtype()) && is_floating(type.dtype))
      fail("tensor \"{}\" is {}: expected floating-point numbers", found_as,
           lathe::name(weight->dtype()));
    model.state[name] = weight->converted(type.dtype);
    used.push_back(found_as);
  }
  std::sort(used.begin(), used.end());
  for (const auto& [name, tensor] : weights)
    if (!std::binary_search(used.begin(), used.end(), name)) model.left_out.push_back(name);
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
      if (!family.base_prefix.empty() && tensor.starts_with(family.base_prefix)) return family;
  fail("model_type is missing and the tensors' names do not tell it; known: {}",
       fmt::join(families.names(), ", "));
}

void build_graph(Model& model, const LoadOptions& options) {
  if (options.num_labels > 0 &&
      options.num_labels != static_cast<std::int64_t>(model.label_names.size())) {
    model.label_names.clear();
    for (std::int64_t i = 0; i < options.num_labels; ++i)
      model.label_names.push_back(fmt::format("LABEL_{}", i));
  }
  for (const auto& [key, value] : models::find_task(*model.family, model.task).config)
    model.config[key] = value;
  model.graph = models::build(*model.family, model.config,
                              {.task = model.task,
                               .inputs = options.inputs,
                               .num_labels = static_cast<std::int64_t>(model.label_names.size())});
}

Model load_huggingface(const fs::path& directory, const LoadOptions& options) {
  Model model;
  model.directory = directory;
  const fs::path config_path = directory / "config.json";
  const std::shared_ptr<const MappedFile> config_file = MappedFile::open(config_path);
  model.config_text = std::string(config_file->text());
  const json config = parse_json(model.config_text, config_path.string());
  const State weights = read_weights(directory);
  with_place(config_path.string(), [&] {
    if (!config.is_object()) fail("expected an object of configuration keys");
    model.family = &find_family(config, weights);
    model.config = read_family_config(*model.family, config);
    model.label_names = read_label_names(config);
    model.task = options.task.empty()
                     ? read_task(*model.family, config).value_or(model.family->tasks.front().name)
                     : options.task;
    build_graph(model, options);
  });
  with_place(directory.string(), [&] { fill_state(model, weights, options.seed); });
  return model;
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
  const State weights = read_weights(directory);
  std::error_code error;
  if (options.with_masters && fs::exists(directory / kMastersName, error))
    for (const SafetensorsFile file = SafetensorsFile::open(directory / kMastersName);
         const TensorInfo& info : file.tensors())
      model.masters[info.name] = file.tensor(info.name);
  const fs::path graph_path = directory / "graph.txt";
  model.graph = with_place(graph_path.string(), [&] {
    Graph graph = parse_graph(MappedFile::open(graph_path)->text());
    verify(graph);
    return graph;
  });
  if (!options.task.empty() && options.task != model.task) {
    // Another task is another graph: the stored one cannot be turned into it.
    model.task = options.task;
    build_graph(model, options);
  } else if (!options.inputs.empty() ||
             (options.num_labels > 0 &&
              options.num_labels != static_cast<std::int64_t>(model.label_names.size()))) {
    build_graph(model, options);
  }
  with_place(directory.string(), [&] { fill_state(model, weights, options.seed); });
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
  model.label_names = read_label_names(json::object());
  build_graph(model, options);
  model.state = models::initialize(model.graph, options.seed);
  for (const auto& [name, tensor] : model.state) model.fresh.push_back(name);
  return model;
}

}  // namespace

Model load_model(const std::string& directory_or_name, const LoadOptions& options) {
  if (const auto named = models::find_named_model(directory_or_name))
    return with_place(directory_or_name, [&] { return build_named(*named, options); });
  const fs::path directory = directory_or_name;
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
