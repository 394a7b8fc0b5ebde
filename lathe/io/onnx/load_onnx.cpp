#include "lathe/io/onnx/load_onnx.h"

#include <algorithm>
#include <set>

#include "lathe/core/json_reader.h"
#include "lathe/core/pass.h"
#include "lathe/io/json_file.h"
#include "lathe/io/model_config.h"
#include "lathe/io/onnx/import_onnx.h"
#include "lathe/io/onnx/name_layers.h"
#include "lathe/io/onnx/rows_apart.h"
#include "lathe/models/imported.h"
#include "lathe/models/set_label_count.h"

namespace lathe::io::onnx {
namespace {

namespace fs = std::filesystem;

// Order matters: reshapes and biases are joined first, so that what is looked for has nothing in
// between; attention is last, because its queries may be made by what is recognised before.
constexpr const char* kPasses[] = {"merge-reshapes",      "join-biases",
                                   "recognize-norms",     "recognize-activations",
                                   "recognize-positions", "recognize-attention",
                                   "merge-reshapes",      "eliminate-common-subexpressions",
                                   "remove-dead-nodes"};

// Without axes it drops every axis of 1, that of a single row among them.
bool drops_any_axis(const OnnxNode& node) {
  return node.op == "Squeeze" && node.inputs.size() < 2 && !node.attributes.contains("axes");
}

// A file may be exported for a single row. It means any number where the graph allows it and
// computes each from itself alone; a mean over the first axis, of one row, would be one over all.
ImportedGraph import_with_rows(OnnxModel& model) {
  bool has_one_row = !model.graph.inputs.empty();
  std::set<std::string> initializers;
  for (const auto& [name, tensor] : model.graph.initializers) initializers.insert(name);
  for (const OnnxValue& input : model.graph.inputs)
    if (!initializers.contains(input.name))
      has_one_row = has_one_row && !input.shape.empty() && input.shape[0].number == 1;
  if (!has_one_row || std::ranges::any_of(model.graph.nodes, drops_any_axis))
    return import_onnx(model);
  OnnxModel free = model;
  for (OnnxValue& input : free.graph.inputs)
    if (!initializers.contains(input.name)) input.shape[0] = {.number = {}, .name = "\nrows"};
  try {
    ImportedGraph imported = import_onnx(free);
    for (const auto& [name, value] : imported.graph.outputs())
      if (imported.graph.type(value).rank() == 0 ||
          imported.graph.type(value).shape[0] != Size::symbol("B"))
        return import_onnx(model);
    return keeps_rows_apart(imported.graph, "B") ? std::move(imported) : import_onnx(model);
  } catch (const UserError&) {
    return import_onnx(model);
  }
}

bool reads_tokens(const Graph& graph) {
  const std::optional<NodeId> ids = graph.find("input_ids");
  return ids && graph.is(*ids, "input") && !is_floating(graph.types(*ids)[0].dtype) &&
         graph.types(*ids)[0].rank() == 2;
}

// Tokens are counted in 32 bits here, and batches are made so. Ops that compute with ids, and not
// only look something up, get them in 64 as in the file.
void use_small_ids(Graph& graph) {
  for (const char* const name : {"input_ids", "attention_mask", "token_type_ids"}) {
    const std::optional<NodeId> input = graph.find(name);
    if (!input || !graph.is(*input, "input") || graph.types(*input)[0].dtype != DType::I64)
      continue;
    const Type wide = graph.types(*input)[0];
    const std::vector<Use> uses = graph.uses(*input);
    graph.set_types(*input, {{.dtype = DType::I32, .shape = wide.shape}});
    std::optional<NodeId> cast;
    for (const Use& use : uses) {
      const bool is_operand = use.kind == Use::Kind::Operand;
      if (is_operand && (graph.is(use.user, "embedding") || graph.is(use.user, "attention") ||
                         graph.is(use.user, "positions")))
        continue;
      if (!cast)
        cast = graph.insert_after(*input, {.name = fmt::format("{}/wide", name),
                                           .op = "cast",
                                           .inputs = {{*input, 0}},
                                           .attributes = {},
                                           .types = {wide}});
      if (is_operand)
        graph.set_input(use.user, static_cast<std::size_t>(use.operand), {*cast, 0});
      else if (use.kind == Use::Kind::Output)
        graph.set_output(use.output, {*cast, 0});
    }
  }
  for (const NodeId id : graph.nodes_of("positions"))
    graph.set_types(id, {{.dtype = DType::I32, .shape = graph.types(id)[0].shape}});
  run_pass("infer-types", graph);
}

// What gives a score for each label or token: `logits`, or the only output.
std::optional<Value> find_logits(const Graph& graph) {
  if (const std::optional<Value> logits = graph.output("logits")) return logits;
  if (graph.outputs().size() == 1) return graph.outputs()[0].second;
  return std::nullopt;
}

std::string find_task_name(const Graph& graph, std::optional<Value> logits, bool has_tokens) {
  if (!logits || graph.type(*logits).dtype != DType::F32) return "encode";
  const Type& type = graph.type(*logits);
  if (type.rank() == 2 && type.shape[0] == Size::symbol("B") && type.shape[1].is_constant())
    return "classify";
  if (!has_tokens || type.rank() != 3 || !graph.is(logits->node, "linear")) return "encode";
  for (const NodeId id : graph.nodes_of("attention"))
    if (graph.attribute(id).flag("causal")) return "causal-lm";
  return "mlm";
}

// Sizes that tokenizers and batches ask for, as the tables of the graph have them.
Attributes read_token_sizes(const Graph& graph) {
  Attributes config;
  for (const NodeId id : graph.nodes_of("embedding")) {
    const Value ids = graph.input(id, 0);
    const Size& rows = graph.type(graph.input(id, 1)).shape[0];
    if (!rows.is_constant()) continue;
    if (graph.is(ids.node, "input") && graph.name(ids.node) == "input_ids")
      config["vocab_size"] = rows.constant();
    if (graph.is(ids.node, "positions")) config["max_position_embeddings"] = rows.constant();
  }
  return config;
}

// The names that Lathe writes into its files.
void read_written_names(const OnnxModel& file, Model& model) {
  const auto found = file.metadata.find(kLabelsKey);
  if (found == file.metadata.end() || model.label_names.empty()) return;
  const nlohmann::json names = parse_json(found->second, kLabelsKey);
  const bool are_names =
      names.is_array() &&
      std::ranges::all_of(names, [](const nlohmann::json& name) { return name.is_string(); });
  if (!are_names || names.size() != model.label_names.size())
    fail("{}: expected the names of {} labels", kLabelsKey, model.label_names.size());
  model.label_names = names.get<std::vector<std::string>>();
}

void read_config_beside(const fs::path& path, Model& model) {
  const fs::path config_path = path.parent_path() / "config.json";
  std::error_code error;
  if (!fs::is_regular_file(config_path, error)) return;
  const nlohmann::json config = read_json(config_path);
  with_place(config_path.string(), [&] {
    if (!config.is_object()) fail("expected an object of configuration keys");
    // What the graph says is true; the file adds what it does not show.
    Attributes found = read_family_config(*model.family, config);
    for (const auto& [key, value] : model.config) found[key] = value;
    model.config = std::move(found);
    const std::vector<std::string> names = read_label_names(config);
    if (names.size() == model.label_names.size()) model.label_names = names;
    model.reading = read_reading(config);
  });
}

}  // namespace

bool is_onnx_file(const fs::path& path) {
  std::error_code error;
  return path.extension() == ".onnx" && !fs::is_directory(path, error);
}

Model read_onnx_model(const fs::path& path) {
  OnnxModel file = read_onnx(path);
  return with_place(path.string(), [&] {
    ImportedGraph imported = import_with_rows(file);
    for (const char* const pass : kPasses) run_pass(pass, imported.graph);
    name_layers(imported);
    Model model;
    const bool has_tokens = reads_tokens(imported.graph);
    if (has_tokens) use_small_ids(imported.graph);
    model.family = &models::imported_family(has_tokens);
    const std::optional<Value> logits = find_logits(imported.graph);
    model.task = find_task_name(imported.graph, logits, has_tokens);
    if (model.task != "encode" && !imported.graph.output("logits"))
      imported.graph.set_output("logits", *logits);
    if (has_tokens) model.config = read_token_sizes(imported.graph);
    model.config_text = "{}";
    if (model.task == "classify") {
      const std::int64_t count = models::label_count(imported.graph).value_or(0);
      for (std::int64_t i = 0; i < count; ++i)
        model.label_names.push_back(fmt::format("LABEL_{}", i));
      read_written_names(file, model);
    }
    model.graph = std::move(imported.graph);
    model.state = std::move(imported.state);
    std::erase_if(model.state, [&](const auto& entry) { return !model.graph.find(entry.first); });
    model.directory = path.parent_path().empty() ? fs::path(".") : path.parent_path();
    read_config_beside(path, model);
    return model;
  });
}

}  // namespace lathe::io::onnx
