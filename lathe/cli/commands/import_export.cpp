#include "lathe/cli/command.h"
#include "lathe/cli/output_directory.h"
#include "lathe/cli/say.h"
#include "lathe/compress/lora.h"
#include "lathe/compress/low_rank/low_rank.h"
#include "lathe/compress/packed_weights.h"
#include "lathe/compress/quantizers.h"
#include "lathe/core/graph_text.h"
#include "lathe/io/atomic_file.h"
#include "lathe/io/graph_json.h"
#include "lathe/io/model.h"

namespace lathe::cli::import_export_command {
namespace {

struct Arguments {
  ModelArguments model;
  std::string out;
  bool force = false;
  bool is_float = false;
  io::Storage storage = io::Storage::Sparse;
  double shard_megabytes = 50'000;
};

io::Model load(const Arguments& arguments, const Settings& settings) {
  return io::load_model(arguments.model.model, {.task = arguments.model.task,
                                                .inputs = arguments.model.inputs,
                                                .num_labels = arguments.model.num_labels,
                                                .seed = settings.seed});
}

void report(const io::Model& model, const Arguments& arguments, const char* kind,
            const Settings& settings) {
  std::int64_t bytes = 0;
  for (const auto& [name, tensor] : model.state) bytes += tensor.num_bytes();
  if (settings.json)
    fmt::print("{{\"out\": {}, \"kind\": \"{}\", \"tensors\": {}, \"bytes\": {}, \"fresh\": {}}}\n",
               to_text(Attribute(arguments.out)), kind, model.state.size(), bytes,
               model.fresh.size());
  else
    fmt::print("wrote {}: {}, {} tensors, {:.1f} MB\n", arguments.out, kind, model.state.size(),
               static_cast<double>(bytes) / 1e6);
  if (model.fresh.size() == model.state.size())
    say("note: every tensor is freshly initialised\n");
  else if (!model.fresh.empty())
    say("note: freshly initialised: {}\n", fmt::join(model.fresh, ", "));
}

void add_options(Flags flags, Arguments& arguments) {
  add_model_option(flags, arguments.model);
  add_task_options(flags, arguments.model);
  flags.add_option("--out", arguments.out, "directory to write").required();
  flags.add_flag("--force", arguments.force, "replace an existing directory");
}

std::function<int(const Settings&)> setup_import(Flags flags) {
  auto arguments = std::make_shared<Arguments>();
  add_options(flags, *arguments);
  add_storage_option(flags, arguments->storage);
  return [arguments](const Settings& settings) {
    check_output_directory(arguments->out, arguments->force);
    const io::Model model = load(*arguments, settings);
    write_output_directory(arguments->out, arguments->force, [&](const auto& path) {
      io::write_checkpoint(path, model, arguments->storage);
    });
    report(model, *arguments, "Lathe checkpoint", settings);
    return 0;
  };
}

std::function<int(const Settings&)> setup_export(Flags flags) {
  auto arguments = std::make_shared<Arguments>();
  add_options(flags, *arguments);
  flags
      .add_option("--shard-mb", arguments->shard_megabytes,
                  "split the weights into files of at most so many MB")
      .range(1e-6, 1e9, "0.000001 to 1e9");
  flags.add_flag("--float", arguments->is_float, "plain float weights, whatever the model stores");
  return [arguments](const Settings& settings) {
    check_output_directory(arguments->out, arguments->force);
    io::Model model = load(*arguments, settings);
    // Other programs would leave the paths out and run another model.
    if (const int count = compress::fuse_lora(model.graph, model.state); count > 0)
      say("note: LoRA was fused into {} linears\n", count);
    if (arguments->is_float)
      compress::make_float(model.graph, model.state);
    else if (compress::is_quantized(model.graph))
      throw UserError(fmt::format("{}: is quantized, and other programs would not round as it does",
                                  arguments->model.model),
                      "export its rounded weights as plain floats: lathe export --float");
    if (const int count = compress::multiply_factors(model); count > 0)
      say("note: factors of low rank were multiplied in {} weights\n", count);
    const auto shard_bytes = static_cast<std::int64_t>(arguments->shard_megabytes * 1e6);
    write_output_directory(arguments->out, arguments->force, [&](const auto& path) {
      io::write_huggingface(path, model, shard_bytes);
    });
    report(model, *arguments, "Hugging Face directory", settings);
    return 0;
  };
}

const Register import_command{Command{
    .name = "import",
    .summary = "turn a Hugging Face directory or a builder's model into a Lathe checkpoint",
    .examples = "  lathe import --model DIR --task classify --out checkpoint\n"
                "  lathe import --model checkpoint --storage compact --out small\n"
                "  lathe import --model bert-mini --seed 1 --out fresh",
    .setup = setup_import,
}};
const Register export_command{Command{
    .name = "export",
    .summary = "write a model as a Hugging Face directory",
    .examples = "  lathe export --model checkpoint --out for-hugging-face\n"
                "  lathe export --model DIR --shard-mb 500 --out sharded",
    .setup = setup_export,
}};

}  // namespace
}  // namespace lathe::cli::import_export_command
