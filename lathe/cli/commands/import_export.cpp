#include "lathe/cli/command.h"
#include "lathe/cli/output_directory.h"
#include "lathe/cli/say.h"
#include "lathe/compress/lora.h"
#include "lathe/compress/low_rank/low_rank.h"
#include "lathe/compress/packed_weights.h"
#include "lathe/compress/quantizers.h"
#include "lathe/compress/without_batch_norms.h"
#include "lathe/core/graph_text.h"
#include "lathe/experiment/read_data.h"
#include "lathe/io/atomic_file.h"
#include "lathe/io/graph_json.h"
#include "lathe/io/model.h"
#include "lathe/io/onnx/export_onnx.h"
#include "lathe/io/write_elsewhere.h"

namespace lathe::cli::import_export_command {
namespace {

constexpr double kShardMegabytes = 50'000;

struct Arguments {
  ModelArguments model;
  std::string out;
  bool force = false;
  bool is_float = false;
  io::Storage storage = io::Storage::Sparse;
  std::string format;
  std::optional<double> shard_megabytes;
};

io::Model load(const Arguments& arguments, const Settings& settings) {
  io::Model model = io::load_model(arguments.model.model, {.task = arguments.model.task,
                                                           .inputs = arguments.model.inputs,
                                                           .num_labels = arguments.model.num_labels,
                                                           .seed = settings.seed});
  experiment::set_images(model, arguments.model.images);
  return model;
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
  if (!model.left_out.empty())
    say("note: left out, for nothing reads it here: {}\n", fmt::join(model.left_out, ", "));
}

// Writes an ONNX file and says what other programs cannot run of it.
void write_onnx(const io::Model& model, const Arguments& arguments, const Settings& settings) {
  const io::onnx::ExportedModel exported =
      with_place(arguments.model.model, [&] { return io::onnx::export_onnx(model); });
  io::onnx::write_onnx(arguments.out, exported.model);
  const auto bytes = static_cast<double>(std::filesystem::file_size(arguments.out));
  if (settings.json)
    fmt::print(
        "{{\"out\": {}, \"kind\": \"ONNX\", \"opset\": {}, \"nodes\": {}, \"rounded\": {}, "
        "\"custom\": {}, \"bytes\": {}}}\n",
        to_text(Attribute(arguments.out)), io::onnx::kExportedOpset,
        exported.model.graph.nodes.size(), exported.num_rounded, exported.custom.size(), bytes);
  else
    fmt::print("wrote {}: ONNX, opset {}, {} nodes, {:.1f} MB\n", arguments.out,
               io::onnx::kExportedOpset, exported.model.graph.nodes.size(), bytes / 1e6);
  if (exported.num_rounded > 0)
    say("note: {} arrays are rounded by QuantizeLinear and DequantizeLinear\n",
        exported.num_rounded);
  if (!exported.custom.empty())
    say("note: ONNX has no such formats, so other programs cannot run these nodes of domain {}: "
        "{}\n",
        io::onnx::kCustomDomain, fmt::join(exported.custom, ", "));
}

void export_onnx_file(const Arguments& arguments, const Settings& settings) {
  if (arguments.shard_megabytes) fail("shard-mb: an ONNX file is not split");
  std::error_code error;
  if (std::filesystem::is_directory(arguments.out, error))
    fail("{}: is a directory, expected the name of a file to write", arguments.out);
  if (!arguments.force && std::filesystem::exists(arguments.out, error))
    throw UserError(fmt::format("{}: exists", arguments.out), "replace it with --force");
  io::Model model = load(arguments, settings);
  if (arguments.is_float) compress::make_float(model.graph, model.state);
  write_onnx(model, arguments, settings);
  if (model.family->reads == models::Reads::Tokens)
    say("note: the file holds no vocabulary: whoever gives it texts wants that of the model beside "
        "it\n");
  if (model.images != data::ImageReading())
    say("note: the file does not say what is done to images: --images {}\n",
        data::to_text(model.images));
}

void add_options(Flags flags, Arguments& arguments) {
  add_model_option(flags, arguments.model);
  add_task_options(flags, arguments.model);
  flags.add_option("--out", arguments.out, "directory or file to write").required();
  flags.add_flag("--force", arguments.force, "replace what exists");
}

std::function<int(const Settings&)> setup_import(Flags flags) {
  auto arguments = std::make_shared<Arguments>();
  add_options(flags, *arguments);
  add_storage_option(flags, arguments->storage);
  add_image_option(flags, arguments->model.images);
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
  flags.add_option("--format", arguments->format,
                   "what to write: huggingface or torchvision, a directory with that library's "
                   "names of tensors, or onnx, a file [onnx where --out ends in .onnx, else "
                   "huggingface]");
  return [arguments](const Settings& settings) {
    if (arguments->format.empty())
      arguments->format = arguments->out.ends_with(".onnx") ? "onnx" : "huggingface";
    if (arguments->format == "onnx") {
      export_onnx_file(*arguments, settings);
      return 0;
    }
    const bool is_huggingface = arguments->format == "huggingface";
    if (!is_huggingface && arguments->format != "torchvision")
      throw unknown_name("format", arguments->format, {"huggingface", "onnx", "torchvision"});
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
    compress::restore_batch_norms(model);
    const auto shard_bytes =
        static_cast<std::int64_t>(arguments->shard_megabytes.value_or(kShardMegabytes) * 1e6);
    write_output_directory(arguments->out, arguments->force, [&](const auto& path) {
      if (is_huggingface)
        io::write_huggingface(path, model, shard_bytes);
      else
        io::write_elsewhere(path, model, arguments->format, shard_bytes);
    });
    report(model, *arguments,
           is_huggingface ? "Hugging Face directory" : "directory with torchvision's names",
           settings);
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
    .summary = "write a model as a Hugging Face directory or an ONNX file",
    .examples = "  lathe export --model checkpoint --out for-hugging-face\n"
                "  lathe export --model checkpoint --out model.onnx\n"
                "  lathe export --model DIR --shard-mb 500 --out sharded",
    .setup = setup_export,
}};

}  // namespace
}  // namespace lathe::cli::import_export_command
