#include "lathe/compress/lora.h"

#include <nlohmann/json.hpp>

#include "lathe/cli/command.h"
#include "lathe/cli/output_directory.h"
#include "lathe/cli/say.h"
#include "lathe/compress/lora_adapter.h"
#include "lathe/core/passes/profile.h"
#include "lathe/io/model.h"
#include "lathe/report/table.h"

namespace lathe::cli::lora_command {
namespace {

struct Arguments {
  ModelArguments model;
  std::string adapter, out;
  bool force = false;
};

io::Model load(const Arguments& arguments, const Settings& settings) {
  io::Model model = io::load_model(arguments.model.model, {.task = arguments.model.task,
                                                           .inputs = arguments.model.inputs,
                                                           .num_labels = arguments.model.num_labels,
                                                           .seed = settings.seed});
  if (!arguments.adapter.empty()) compress::load_adapter(arguments.adapter, model);
  return model;
}

void add_options(Flags flags, Arguments& arguments) {
  add_model_option(flags, arguments.model);
  add_task_options(flags, arguments.model);
  flags.add_option("--adapter", arguments.adapter,
                   "directory with an adapter in PEFT's layout, to add to the model first");
}

std::vector<compress::LoraPath> require_paths(const io::Model& model, const Arguments& arguments) {
  std::vector<compress::LoraPath> paths = compress::find_lora(model.graph);
  if (paths.empty())
    throw UserError(fmt::format("{}: has no LoRA paths", arguments.model.model),
                    "give --adapter DIR, or a model that lathe train --lora wrote");
  return paths;
}

int fuse(const Arguments& arguments, const Settings& settings) {
  check_output_directory(arguments.out, arguments.force);
  io::Model model = load(arguments, settings);
  const std::size_t count = require_paths(model, arguments).size();
  compress::fuse_lora(model.graph, model.state);
  write_output_directory(arguments.out, arguments.force,
                         [&](const auto& path) { io::write_checkpoint(path, model); });
  if (settings.json)
    fmt::print("{}\n", nlohmann::json{{"out", arguments.out}, {"fused", count}}.dump(
                           -1, ' ', false, nlohmann::json::error_handler_t::replace));
  else
    fmt::print("wrote {}: LoRA fused into {} linears\n", arguments.out, count);
  if (!model.fresh.empty()) say("note: freshly initialised: {}\n", fmt::join(model.fresh, ", "));
  return 0;
}

int info(const Arguments& arguments, const Settings& settings) {
  const io::Model model = load(arguments, settings);
  const std::vector<compress::LoraPath> paths = require_paths(model, arguments);
  report::Table table({"linear", "rank", "alpha", "dropout", "parameters"});
  nlohmann::json rows = nlohmann::json::array();
  std::int64_t added = 0;
  const std::int64_t total = num_parameters(model.graph);
  for (const compress::LoraPath& path : paths) {
    const std::int64_t count = num_elements(model.graph.types(path.a)[0].dims({})) +
                               num_elements(model.graph.types(path.b)[0].dims({}));
    const double alpha = path.scaling * static_cast<double>(path.rank);
    added += count;
    table.row({path.name, fmt::format("{}", path.rank), fmt::format("{:g}", alpha),
               fmt::format("{:g}", path.dropout_rate), fmt::format("{}", count)});
    rows.push_back({{"linear", path.name},
                    {"rank", path.rank},
                    {"alpha", alpha},
                    {"dropout", path.dropout_rate},
                    {"parameters", count}});
  }
  if (settings.json) {
    fmt::print("{}\n", nlohmann::json{{"paths", rows}, {"parameters", added}, {"all", total}}.dump(
                           -1, ' ', false, nlohmann::json::error_handler_t::replace));
    return 0;
  }
  fmt::print("{}{} parameters in {} paths, {:.2f} % of {}\n", table.to_text(), added, paths.size(),
             100 * static_cast<double>(added) / static_cast<double>(total), total);
  return 0;
}

std::function<int(const Settings&)> setup_fuse(Flags flags) {
  auto arguments = std::make_shared<Arguments>();
  add_options(flags, *arguments);
  flags.add_option("--out", arguments->out, "directory to write").required();
  flags.add_flag("--force", arguments->force, "replace an existing directory");
  return [arguments](const Settings& settings) { return fuse(*arguments, settings); };
}

std::function<int(const Settings&)> setup_info(Flags flags) {
  auto arguments = std::make_shared<Arguments>();
  add_options(flags, *arguments);
  return [arguments](const Settings& settings) { return info(*arguments, settings); };
}

const Register fuse_command{Command{
    .name = "lora fuse",
    .summary = "add what LoRA learned to the weights: a plain model of the original's shape",
    .examples = "  lathe lora fuse --model run --out fused\n"
                "  lathe lora fuse --model BASE --task classify --adapter run/adapter --out fused",
    .setup = setup_fuse,
}};
const Register info_command{Command{
    .name = "lora info",
    .summary = "list a model's LoRA paths",
    .examples = "  lathe lora info --model run",
    .setup = setup_info,
}};

}  // namespace
}  // namespace lathe::cli::lora_command
