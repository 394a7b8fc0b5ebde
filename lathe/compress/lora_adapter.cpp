#include "lathe/compress/lora_adapter.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "lathe/compress/lora.h"
#include "lathe/compress/trained_parameters.h"
#include "lathe/io/atomic_file.h"
#include "lathe/io/json_file.h"
#include "lathe/io/safetensors.h"

namespace lathe::compress {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kConfigFile = "adapter_config.json";
constexpr const char* kWeightsFile = "adapter_model.safetensors";
constexpr std::string_view kPrefix = "base_model.model.";

bool is_suffix(std::string_view name, std::string_view suffix) {
  if (!name.ends_with(suffix)) return false;
  return name.size() == suffix.size() || name[name.size() - suffix.size() - 1] == '.';
}

// PEFT adapts every module whose path ends in one of these. The shortest endings that no other
// linear has read best: query, value, intermediate.dense.
std::vector<std::string> target_modules(const Graph& graph, const std::vector<LoraPath>& paths) {
  std::set<std::string> adapted;
  for (const LoraPath& path : paths) adapted.insert(path.name);
  const std::vector<NodeId> linears = adaptable_linears(graph);
  std::set<std::string> suffixes;
  for (const std::string& name : adapted) {
    std::size_t dot = name.rfind('.');
    while (true) {
      const std::string suffix = dot == std::string::npos ? name : name.substr(dot + 1);
      bool is_ours_alone = true;
      for (const NodeId id : linears)
        if (is_suffix(graph.name(id), suffix) && !adapted.contains(graph.name(id)))
          is_ours_alone = false;
      if (is_ours_alone || dot == std::string::npos) {
        suffixes.insert(suffix);
        break;
      }
      dot = dot == 0 ? std::string::npos : name.rfind('.', dot - 1);
    }
  }
  return {suffixes.begin(), suffixes.end()};
}

const char* task_type(const std::string& task) {
  if (task == "classify") return "SEQ_CLS";
  if (task == "tokens") return "TOKEN_CLS";
  if (task == "causal-lm") return "CAUSAL_LM";
  return nullptr;  // PEFT has no name for the others
}

json describe(const io::Model& model, const std::vector<LoraPath>& paths,
              const std::vector<std::string>& saved, const std::string& base) {
  const LoraPath& first = paths.front();
  for (const LoraPath& path : paths)
    if (path.rank != first.rank || path.scaling != first.scaling ||
        path.dropout_rate != first.dropout_rate)
      fail("linear \"{}\": its LoRA path has another rank, alpha or dropout than that of \"{}\"",
           path.name, first.name);
  std::set<std::string> modules;
  for (const std::string& name : saved) modules.insert(module_of(name));
  json config;
  config["peft_type"] = "LORA";
  const char* const task = task_type(model.task);
  config["task_type"] = task == nullptr ? json() : json(task);
  config["base_model_name_or_path"] = base;
  config["r"] = first.rank;
  config["lora_alpha"] = first.scaling * static_cast<double>(first.rank);
  // PEFT declares it an integer; a whole number is written as one.
  const double alpha = config["lora_alpha"].get<double>();
  if (alpha == std::floor(alpha)) config["lora_alpha"] = static_cast<std::int64_t>(alpha);
  config["lora_dropout"] = first.dropout_rate;
  config["target_modules"] = target_modules(model.graph, paths);
  config["modules_to_save"] = modules.empty() ? json() : json(modules);
  config["bias"] = "none";
  config["fan_in_fan_out"] = false;
  config["inference_mode"] = true;
  config["init_lora_weights"] = true;
  config["use_rslora"] = false;
  config["use_dora"] = false;
  return config;
}

struct AdapterConfig {
  int rank = 0;
  double scaling = 1, dropout = 0;
};

double number(const json& config, const char* key) {
  const auto found = config.find(key);
  if (found == config.end()) fail("{} is missing: expected a number", key);
  if (!found->is_number()) fail("{} is {}: expected a number", key, found->dump());
  return found->get<double>();
}

// Settings that change what the adapter computes, in ways no path of ours does.
void refuse_other_kinds(const json& config) {
  const json type = config.value("peft_type", json());
  if (type != "LORA") fail("peft_type is {}: expected \"LORA\"", type.dump());
  const json bias = config.value("bias", json("none"));
  if (bias != "none") fail("bias is {}: expected \"none\"", bias.dump());
  for (const char* key : {"fan_in_fan_out", "use_dora"}) {
    const json value = config.value(key, json(false));
    if (value != false && !value.is_null()) fail("{} is {}: expected false", key, value.dump());
  }
  for (const char* key : {"rank_pattern", "alpha_pattern"}) {
    const json value = config.value(key, json());
    if (!value.is_null() && !value.empty())
      fail("{} is {}: expected one rank and alpha for all", key, value.dump());
  }
}

AdapterConfig read_config(const fs::path& path) {
  const json config = io::read_json(path);
  return with_place(path.string(), [&] {
    if (!config.is_object()) fail("expected an object of configuration keys");
    refuse_other_kinds(config);
    AdapterConfig result;
    const double rank = number(config, "r");
    if (!(rank >= 1 && rank <= 65536) || rank != std::floor(rank))
      fail("r is {}: expected a whole number from 1 to 65536", rank);
    result.rank = static_cast<int>(rank);
    const double alpha = number(config, "lora_alpha");
    if (!(alpha > 0) || !std::isfinite(alpha))
      fail("lora_alpha is {}: expected a number above 0", alpha);
    const json stabilized = config.value("use_rslora", json(false));
    result.scaling = alpha / (stabilized == true ? std::sqrt(rank) : rank);
    if (config.contains("lora_dropout")) result.dropout = number(config, "lora_dropout");
    if (!(result.dropout >= 0 && result.dropout < 1))
      fail("lora_dropout is {}: expected 0 up to below 1", result.dropout);
    return result;
  });
}

// The module that a tensor `base_model.model.MODULE.lora_A.weight` belongs to; empty for others.
std::string adapted_module(std::string_view tensor) {
  if (!tensor.starts_with(kPrefix)) return {};
  tensor.remove_prefix(kPrefix.size());
  for (const std::string& ending : {lora_a_name(""), lora_b_name("")})
    if (tensor.ends_with(ending))
      return std::string(tensor.substr(0, tensor.size() - ending.size()));
  return {};
}

NodeId find_linear(const Graph& graph, const std::string& module, std::string_view tensor) {
  std::vector<std::string> names;
  for (const NodeId id : adaptable_linears(graph)) {
    if (graph.name(id) == module) return id;
    names.push_back(graph.name(id));
  }
  const std::string nearest = nearest_name(module, names);
  throw UserError(fmt::format("tensor \"{}\": the model has no linear \"{}\"", tensor, module),
                  nearest.empty() ? "" : fmt::format("did you mean \"{}\"?", nearest));
}

void take_tensor(const io::SafetensorsFile& file, const std::string& stored,
                 const std::string& name, io::Model& model) {
  const std::optional<NodeId> id = model.graph.find(name);
  if (!id || !model.graph.is(*id, "state"))
    fail("tensor \"{}\": the model has no parameter \"{}\"", stored, name);
  const Type& type = model.graph.types(*id)[0];
  if (!file.has(stored)) fail("tensor \"{}\" is missing: expected {}", stored, to_text(type));
  const Tensor tensor = file.tensor(stored);
  if (tensor.dims() != type.dims({}))
    fail("tensor \"{}\" has shape {}: expected {}", stored, to_text(tensor.dims()),
         to_text(type.shape));
  if (!is_floating(tensor.dtype()))
    fail("tensor \"{}\" is {}: expected floating-point numbers", stored,
         lathe::name(tensor.dtype()));
  model.state[name] = tensor.converted(type.dtype);
  std::erase(model.fresh, name);
}

}  // namespace

void save_adapter(const fs::path& directory, const io::Model& model,
                  const std::vector<std::string>& saved, const std::string& base) {
  const std::vector<LoraPath> paths = find_lora(model.graph);
  if (paths.empty()) fail("the model has no LoRA paths to save");
  for (const LoraPath& path : paths)
    if (path.mask.index >= 0)
      fail("linear \"{}\": a mask covers its LoRA path, which an adapter has no place for",
           path.name);
  const json config = describe(model, paths, saved, base);
  State tensors;
  const auto take = [&](const std::string& name, const std::string& stored) {
    const auto found = model.state.find(name);
    if (found == model.state.end()) fail("state \"{}\" has no value", name);
    tensors[fmt::format("{}{}", kPrefix, stored)] = found->second;
  };
  for (const LoraPath& path : paths) {
    take(model.graph.name(path.a), lora_a_name(path.name));
    take(model.graph.name(path.b), lora_b_name(path.name));
  }
  for (const std::string& name : saved) take(name, name);
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) fail("{}: cannot be created: {}", directory.string(), error.message());
  io::write_safetensors(directory / kWeightsFile, tensors, {{"format", "pt"}});
  io::write_atomically(directory / kConfigFile,
                       config.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
}

void load_adapter(const fs::path& directory, io::Model& model) {
  const AdapterConfig config = read_config(directory / kConfigFile);
  const io::SafetensorsFile file = io::SafetensorsFile::open(directory / kWeightsFile);
  io::Model result = model;
  with_place(file.path().string(), [&] {
    if (!find_lora(model.graph).empty()) fail("the model has LoRA paths already");
    std::set<std::string> modules;
    std::vector<std::string> whole;
    for (const io::TensorInfo& info : file.tensors()) {
      if (!info.name.starts_with(kPrefix))
        fail("tensor \"{}\": expected a name that starts with \"{}\"", info.name, kPrefix);
      const std::string module = adapted_module(info.name);
      if (module.empty()) {
        whole.push_back(info.name);
      } else if (modules.insert(module).second) {
        add_lora_path(result.graph, find_linear(result.graph, module, info.name), config.rank,
                      config.scaling, config.dropout);
      }
    }
    if (modules.empty()) fail("holds no tensor of LoRA");
    for (const std::string& module : modules)
      for (const std::string& name : {lora_a_name(module), lora_b_name(module)})
        take_tensor(file, fmt::format("{}{}", kPrefix, name), name, result);
    for (const std::string& stored : whole)
      take_tensor(file, stored, stored.substr(kPrefix.size()), result);
  });
  model = std::move(result);
}

}  // namespace lathe::compress
