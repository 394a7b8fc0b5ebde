#include "lathe/experiment/bench/memory.h"

#include <map>
#include <nlohmann/json.hpp>

#include "lathe/core/error.h"
#include "lathe/core/number_format.h"
#include "lathe/core/pass.h"
#include "lathe/core/role.h"
#include "lathe/engine/backend.h"
#include "lathe/models/family.h"
#include "lathe/models/initialize.h"
#include "lathe/ops/quantized_operands.h"

namespace lathe::experiment::bench {
namespace {

Graph encoder_graph(const MemoryOptions& options) {
  const std::optional<models::NamedModel> named = models::find_named_model("bert-base");
  check(named.has_value(), "the builder bert-base");
  Attributes config = named->config;
  config["num_hidden_layers"] = options.layers;
  config["hidden_size"] = options.hidden;
  config["intermediate_size"] = options.intermediate;
  config["num_attention_heads"] = options.heads;
  config["vocab_size"] = options.vocabulary;
  Graph graph = named->family->build(AttributeReader(config, named->family->config),
                                     {.task = "classify", .inputs = {"input_ids"}});
  run_pass("remove-dropout", graph);
  run_pass("remove-dead-nodes", graph);
  return graph;
}

// Layers are alike and so are their weights: one tensor of each kind, which all of them share on
// this side. A device has each of them.
class SharedWeights {
 public:
  SharedWeights(const Graph& graph, std::uint64_t seed) : graph_(graph), seed_(seed) {}

  const Tensor& floats(NodeId state) {
    Tensor& tensor = floats_[to_text(graph_.types(state)[0])];
    if (tensor.num_elements() == 0) tensor = models::initialize_state(graph_, state, seed_);
    return tensor;
  }
  const EncodedMatrix& codes(NodeId state, const NumberFormat& format) {
    EncodedMatrix& encoded = codes_[to_text(graph_.types(state)[0])];
    if (encoded.codes.empty()) {
      const Tensor& tensor = floats(state);
      encoded = format.encode(
          {.rows = tensor.dim(0), .columns = tensor.dim(1), .x = tensor.data<float>().data()});
    }
    return encoded;
  }

 private:
  const Graph& graph_;
  std::uint64_t seed_;
  std::map<std::string, Tensor> floats_;
  std::map<std::string, EncodedMatrix> codes_;
};

bool is_read_as(const Graph& graph, NodeId state, std::string_view op) {
  const std::vector<Use>& uses = graph.uses(state);
  return !uses.empty() && std::all_of(uses.begin(), uses.end(), [&](const Use& use) {
    return use.kind == Use::Kind::Operand && use.operand == 1 && graph.is(use.user, op);
  });
}

struct Form {
  Graph graph;
  State state;
};

Form packed_form(const Graph& floats, SharedWeights& weights, const NumberFormat* format,
                 bool packs_tables) {
  Form form{floats, {}};
  const std::vector<NodeId> states = floats.nodes_of("state");
  for (const NodeId id : states) {
    const std::string name = floats.name(id);
    const bool is_packed =
        format != nullptr &&
        (is_read_as(floats, id, "linear") || (packs_tables && is_read_as(floats, id, "embedding")));
    if (!is_packed) {
      form.state[name] = weights.floats(id);
      continue;
    }
    const EncodedMatrix& encoded = weights.codes(id, *format);
    const auto add = [&](const std::string& what, Shape shape, StateRole role,
                         const std::vector<std::uint8_t>& bytes) {
      const Type type{DType::U8, std::move(shape)};
      const NodeId added =
          form.graph.insert_before(id, {.name = name + what,
                                        .op = "state",
                                        .inputs = {},
                                        .attributes = {{"role", std::string(lathe::name(role))}},
                                        .types = {type}});
      form.state[name + what] =
          Tensor::from<std::uint8_t>(type.dims({}), std::span<const std::uint8_t>(bytes));
      return Value{added, 0};
    };
    const Type codes{DType::U8, {Size(encoded.rows), Size(format->code_bytes(encoded.columns))}};
    NodeSpec decode{
        .name = name + ".decoded",
        .op = "decode",
        .inputs = {add(".codes", codes.shape, StateRole::Codes, encoded.codes)},
        .attributes = {
            {"format", format->facts().text}, {"columns", encoded.columns}, {"of", name}}};
    decode.inputs.push_back(add(".local", ops::local_scale_shape(*format, codes, encoded.columns),
                                StateRole::Scale, encoded.scales));
    form.graph.replace_all_uses({id, 0}, {form.graph.insert_before(id, std::move(decode)), 0});
    form.graph.erase(id);
  }
  verify(form.graph);
  return form;
}

}  // namespace

MemoryResult measure_memory(const MemoryOptions& options, const engine::ExecutionOptions& execution,
                            const Callbacks& callbacks) {
  if (std::min({options.layers, options.hidden, options.intermediate, options.heads,
                options.vocabulary}) < 1)
    fail("layers, hidden, intermediate, heads and vocabulary must be positive");
  const std::shared_ptr<const NumberFormat> format = parse_format(options.format);
  if (format == nullptr || format->facts().scale_source != ScaleSource::Local)
    fail("format {}: expected one that makes its own scales, such as mxint:8", options.format);
  const Graph graph = encoder_graph(options);
  SharedWeights weights(graph, options.seed);
  const engine::Backend& backend = engine::find_backend(execution.device);
  const std::unique_ptr<engine::DeviceMeasure> device =
      backend.measure == nullptr ? nullptr : backend.measure(execution.pool);
  MemoryResult result{.title = fmt::format("encoder of {} layers, {} wide, {} inside, {} words, {}",
                                           options.layers, options.hidden, options.intermediate,
                                           options.vocabulary, format->facts().text),
                      .device = device == nullptr ? execution.device : device->description(),
                      .parameters = 0,
                      .rows = {}};
  struct Kind {
    const char* name;
    const NumberFormat* format;
    bool packs_tables;
  };
  const Kind kinds[] = {{"float32", nullptr, false},
                        {"linears packed", format.get(), false},
                        {"linears and tables packed", format.get(), true}};
  std::int64_t done = 0;
  for (const Kind& kind : kinds) {
    if (!callbacks.goes_on({"measuring", "forms", done++, 3})) throw Interrupted();
    Form form = packed_form(graph, weights, kind.format, kind.packs_tables);
    MemoryRow row{.name = kind.name};
    for (const auto& [name, tensor] : form.state) row.state_bytes += tensor.num_bytes();
    if (result.rows.empty()) result.parameters = row.state_bytes / 4;
    const std::int64_t floats = result.rows.empty() ? row.state_bytes : result.rows[0].state_bytes;
    row.saved = 1 - static_cast<double>(row.state_bytes) / static_cast<double>(floats);
    const std::optional<engine::DeviceMemory> before =
        device == nullptr ? std::nullopt : device->memory();
    if (before) {  // a device whose memory is not this process's own
      const auto executor = engine::make_executor(form.graph, std::move(form.state), execution);
      executor->run(made_up_feed(form.graph, {{"B", 1}, {"L", 16}}, 1));
      row.device_bytes = before->free - device->memory()->free;
      row.arena_bytes = executor->report().arena_bytes;
    }
    result.rows.push_back(std::move(row));
  }
  return result;
}

report::Table to_table(const MemoryResult& result) {
  const bool has_device = !result.rows.empty() && result.rows.front().device_bytes > 0;
  std::vector<std::string> headers{"form", "states", "saved"};
  if (has_device) headers.insert(headers.end(), {"device memory", "saved there", "of it arena"});
  report::Table table(headers);
  const auto megabytes = [](std::int64_t bytes) {
    return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
  };
  for (const MemoryRow& row : result.rows) {
    std::vector<std::string> cells{row.name, megabytes(row.state_bytes),
                                   fmt::format("{:.1f} %", 100 * row.saved)};
    if (has_device) {
      const double all = static_cast<double>(result.rows.front().device_bytes);
      cells.push_back(megabytes(row.device_bytes));
      cells.push_back(
          fmt::format("{:.1f} %", 100 * (1 - static_cast<double>(row.device_bytes) / all)));
      cells.push_back(megabytes(row.arena_bytes));
    }
    table.row(std::move(cells));
  }
  return table;
}

nlohmann::ordered_json to_json(const MemoryResult& result) {
  nlohmann::ordered_json json{{"bench", "memory"},
                              {"title", result.title},
                              {"device", result.device},
                              {"parameters", result.parameters}};
  for (const MemoryRow& row : result.rows) {
    nlohmann::ordered_json line{
        {"name", row.name}, {"state_bytes", row.state_bytes}, {"saved", row.saved}};
    if (row.device_bytes > 0) {
      line["device_bytes"] = row.device_bytes;
      line["arena_bytes"] = row.arena_bytes;
    }
    json["rows"].push_back(std::move(line));
  }
  return json;
}

}  // namespace lathe::experiment::bench
