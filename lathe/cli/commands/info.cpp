#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "lathe/cli/command.h"
#include "lathe/cli/execution.h"
#include "lathe/cli/print_json.h"
#include "lathe/compress/pruning/pruning_report.h"
#include "lathe/compress/size_target.h"
#include "lathe/core/passes/dropout.h"
#include "lathe/core/passes/profile.h"
#include "lathe/core/role.h"
#include "lathe/engine/backend.h"
#include "lathe/engine/parameter_graph.h"
#include "lathe/io/model.h"
#include "lathe/io/model_size.h"
#include "lathe/io/onnx/load_onnx.h"
#include "lathe/io/stored_sizes.h"
#include "lathe/report/table.h"

namespace lathe::cli::info_command {
namespace {

// "3 steps to reference kernels: conv2d (2), max_pool2d (1)"
std::string to_text(const std::map<std::string, int>& fallbacks) {
  int total = 0;
  std::vector<std::string> counts;
  for (const auto& [op, count] : fallbacks) {
    total += count;
    counts.push_back(fmt::format("{} ({})", op, count));
  }
  return fmt::format("{} {} to reference kernels: {}", total, total == 1 ? "step" : "steps",
                     fmt::join(counts, ", "));
}

// "17.81 MB: model.safetensors 17.55 MB, vocab.txt 232 kB, ...", the largest first.
std::string to_text(const io::ModelSize& size) {
  std::vector<std::pair<std::int64_t, std::string>> files;
  for (const auto& [name, bytes] : size.files) files.emplace_back(bytes, name);
  std::sort(files.rbegin(), files.rend());
  std::vector<std::string> parts;
  for (const auto& [bytes, name] : files)
    parts.push_back(fmt::format("{} {}", name, compress::bytes_text(bytes)));
  return fmt::format("{}: {}", compress::bytes_text(size.bytes()), fmt::join(parts, ", "));
}

// How many layers run by each kernel that was chosen for the zeros of their weights.
std::map<std::string, int> count_choices(const io::Model& model, const Settings& settings) {
  Execution execution(settings);
  std::map<std::string, int> counts;
  const auto executor = engine::make_executor(model.graph, model.state, execution.options());
  for (const engine::PlannedStep& step : executor->report().steps)
    if (!step.choice.kernel.empty()) ++counts[step.choice.kernel];
  return counts;
}

struct Arguments {
  ModelArguments model;
  bool shows_tensors = false;
};

nlohmann::ordered_json to_json(const std::vector<io::StoredSize>& sizes) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const io::StoredSize& size : sizes)
    list.push_back({{"name", size.name},
                    {"dtype", name(size.dtype)},
                    {"shape", size.dims},
                    {"bytes", size.bytes},
                    {"stored_bytes", size.stored_bytes},
                    {"form", size.form}});
  return list;
}

void print_tensors(const std::vector<io::StoredSize>& sizes) {
  report::Table table({"tensor", "type", "bytes", "stored", "how"});
  std::int64_t bytes = 0, stored = 0;
  for (const io::StoredSize& size : sizes) {
    table.row({size.name, fmt::format("{}{}", name(size.dtype), lathe::to_text(size.dims)),
               std::to_string(size.bytes), std::to_string(size.stored_bytes), size.form});
    bytes += size.bytes;
    stored += size.stored_bytes;
  }
  table.row({"all", "", std::to_string(bytes), std::to_string(stored), ""});
  fmt::print("\n{}", table.to_text());
}

int run(const Arguments& all, const Settings& settings) {
  const ModelArguments& arguments = all.model;
  io::Model model = io::load_model(arguments.model, {.task = arguments.task,
                                                     .inputs = arguments.inputs,
                                                     .num_labels = arguments.num_labels,
                                                     .seed = settings.seed,
                                                     .allow_non_finite = true});
  // An ONNX file holds its graph and weights alone; what lies beside it is not the model.
  const bool is_directory = !model.directory.empty() && !io::onnx::is_onnx_file(arguments.model);
  if (all.shows_tensors && !is_directory)
    fail("--tensors: {} lies in no directory, so nothing of it is stored", arguments.model);
  const Profile cost = profile(model.graph);
  const DropoutCount dropout = count_dropout(model.graph);
  std::int64_t bytes = 0;
  for (const auto& [name, tensor] : model.state) bytes += tensor.num_bytes();
  const std::int64_t parameters = num_parameters(model.graph);
  const std::size_t buffers = states_of(model.graph, StateRole::Buffer).size();
  const std::int64_t buffered = num_elements(model.graph, StateRole::Buffer);
  const std::vector<compress::MaskReport> masks = compress::report_masks(model.graph, model.state);
  std::int64_t masked = 0, pruned = 0;
  for (const compress::MaskReport& mask : masks) {
    masked += mask.elements;
    pruned += mask.zeros;
  }
  // Of what every run computes: weights are unpacked once, if at all.
  const std::map<std::string, int> fallbacks = engine::count_fallbacks(
      engine::split_parameters(model.graph).main, engine::find_backend(settings.device));
  std::map<std::string, int> choices;
  if (!masks.empty() && model.non_finite.empty()) choices = count_choices(model, settings);
  std::map<std::string, int> ops;
  for (const NodeId id : model.graph.topological_order()) ++ops[model.graph.op(id).name];

  if (settings.json) {
    nlohmann::ordered_json line;
    line["family"] = model.family->name;
    line["task"] = model.task;
    line["labels"] = model.label_names;
    line["parameters"] = parameters;
    line["buffers"] = buffered;
    line["bytes"] = bytes;
    line["tensors"] = model.state.size();
    if (is_directory) {
      const io::ModelSize size = io::model_size(model.directory);
      line["files"] = size.files;
      line["size"] = size.bytes();
      if (all.shows_tensors) line["stored"] = to_json(io::stored_sizes(model.directory));
    }
    line["nodes"] = model.graph.num_nodes();
    line["ops"] = ops;
    line["fallbacks"] = fallbacks;
    line["flops"] = cost.flops.text();
    line["dropout_nodes"] = dropout.nodes;
    line["dropout_attributes"] = dropout.attributes;
    for (const compress::MaskReport& mask : masks)
      line["masks"].push_back({{"parameter", mask.parameter},
                               {"shape", mask.shape},
                               {"elements", mask.elements},
                               {"zeros", mask.zeros}});
    if (!choices.empty()) line["layers_with_zeros"] = choices;
    line["fresh"] = model.fresh;
    line["left_out"] = model.left_out;
    line["non_finite"] = model.non_finite;
    for (const AttributeSpec& spec : model.family->config) {
      const auto given = model.config.find(spec.name);
      const Attribute& value = given == model.config.end() ? spec.default_value : given->second;
      line["config"][spec.name] =
          std::visit([](const auto& v) { return nlohmann::ordered_json(v); }, value);
    }
    print_json(line);
    return 0;
  }
  const std::string& architecture = models::find_task(*model.family, model.task).architecture;
  fmt::print("family      {}: {}\ntask        {}{}\n", model.family->name, model.family->summary,
             model.task, architecture.empty() ? "" : fmt::format(" ({})", architecture));
  if (models::gives_labels(model.task))
    fmt::print("labels      {}\n", fmt::join(model.label_names, ", "));
  fmt::print("parameters  {} in {} tensors, {:.1f} MB\n", parameters, model.state.size() - buffers,
             static_cast<double>(bytes) / 1e6);
  if (buffers > 0)
    fmt::print("buffers     {} in {} tensors, not learned: running statistics and the like\n",
               buffered, buffers);
  if (is_directory) fmt::print("files       {}\n", to_text(io::model_size(model.directory)));
  fmt::print("graph       {} nodes, flops {}\n", model.graph.num_nodes(), cost.flops.text());
  fmt::print("dropout     {} nodes, {} attention attributes\n", dropout.nodes, dropout.attributes);
  if (!masks.empty())
    fmt::print("masks       of {} parameters: {} of {} elements pruned, sparsity {:.4f}\n",
               masks.size(), pruned, masked,
               static_cast<double>(pruned) / static_cast<double>(masked));
  std::vector<std::string> kernels;
  for (const auto& [kernel, count] : choices)
    kernels.push_back(fmt::format("{} {}", count, kernel));
  if (!kernels.empty())
    fmt::print("zeros       of weights, layers by how they run: {}\n", fmt::join(kernels, ", "));
  std::vector<std::string> counts;
  for (const auto& [op, count] : ops) counts.push_back(fmt::format("{} {}", count, op));
  fmt::print("ops         {}\n", fmt::join(counts, ", "));
  if (!fallbacks.empty()) fmt::print("falls back  {}\n", to_text(fallbacks));
  if (!model.fresh.empty() && !model.directory.empty())
    fmt::print("fresh       {} (never trained: freshly initialised)\n",
               fmt::join(model.fresh, ", "));
  if (!model.non_finite.empty())
    fmt::print("not finite  {} (NaN or infinity: the model cannot be run)\n",
               fmt::join(model.non_finite, ", "));
  if (!model.left_out.empty())
    fmt::print("left out    {} (in the files, not in this graph)\n",
               fmt::join(model.left_out, ", "));
  fmt::print("\nconfiguration\n");
  for (const AttributeSpec& spec : model.family->config) {
    const auto given = model.config.find(spec.name);
    fmt::print("  {:<30} {:<12} {}\n", spec.name,
               lathe::to_text(given == model.config.end() ? spec.default_value : given->second),
               spec.summary);
  }
  if (all.shows_tensors) print_tensors(io::stored_sizes(model.directory));
  return 0;
}

const Register registration{Command{
    .name = "info",
    .summary = "what a model is: parameters, sizes, costs, configuration",
    .examples = "  lathe info --model DIR\n  lathe info --model DIR --tensors\n"
                "  lathe info --model bert-base --json",
    .setup =
        [](Flags flags) {
          auto arguments = std::make_shared<Arguments>();
          add_model_option(flags, arguments->model);
          add_task_options(flags, arguments->model);
          flags.add_flag(
              "--tensors", arguments->shows_tensors,
              "list every tensor of the files: what it takes there and how it is stored");
          return [arguments](const Settings& settings) { return run(*arguments, settings); };
        },
}};

}  // namespace
}  // namespace lathe::cli::info_command
