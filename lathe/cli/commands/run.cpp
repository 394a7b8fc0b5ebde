#include <nlohmann/json.hpp>

#include "lathe/cli/command.h"
#include "lathe/cli/print_json.h"
#include "lathe/cli/say.h"
#include "lathe/io/safetensors.h"
#include "lathe/train/run_model.h"

namespace lathe::cli::run_command {
namespace {

struct Arguments {
  std::string model, task, inputs, out;
};

Feed read_tensors(const std::string& path) {
  const io::SafetensorsFile file = io::SafetensorsFile::open(path);
  Feed tensors;
  for (const io::TensorInfo& info : file.tensors()) tensors[info.name] = file.tensor(info.name);
  return tensors;
}

void print(const Feed& outputs, const Arguments& arguments, const Settings& settings) {
  if (settings.json) {
    nlohmann::ordered_json line;
    line["out"] = arguments.out;
    for (const auto& [name, tensor] : outputs) line["outputs"][name] = tensor.dims();
    print_json(line);
    return;
  }
  for (const auto& [name, tensor] : outputs)
    fmt::print("{:<20} {}{}\n", name, lathe::name(tensor.dtype()), to_text(tensor.dims()));
  fmt::print("wrote {}\n", arguments.out);
}

int run(const Arguments& arguments, const Settings& settings) {
  const io::Model model =
      io::load_model(arguments.model, {.task = arguments.task, .seed = settings.seed});
  if (!model.fresh.empty() && !settings.quiet)
    say("note: freshly initialised: {}\n", model.fresh.size() == model.state.size()
                                               ? "every tensor"
                                               : fmt::format("{}", fmt::join(model.fresh, ", ")));
  const Feed tensors = read_tensors(arguments.inputs);
  ThreadPool pool(settings.threads);
  const Feed outputs = with_place(
      arguments.inputs, [&] { return train::run_model(model, tensors, settings.execution(pool)); });
  io::write_safetensors(arguments.out, State(outputs.begin(), outputs.end()));
  print(outputs, arguments, settings);
  return 0;
}

const Register registration{Command{
    .name = "run",
    .summary = "run a model on given tensors, to compare it with another program",
    .examples =
        "  lathe run --model DIR --inputs tensors.safetensors --out outputs.safetensors\n"
        "  lathe run --model m.onnx --inputs t.safetensors --out o.safetensors\n"
        "  lathe run --model DIR --inputs t.safetensors --out o.safetensors --device reference",
    .setup =
        [](Flags flags) {
          auto arguments = std::make_shared<Arguments>();
          flags
              .add_option("--model", arguments->model,
                          "model directory, ONNX file, or a builder's name")
              .required();
          flags.add_option("--task", arguments->task,
                           "what to load the model for [as it was saved]");
          flags
              .add_option("--inputs", arguments->inputs,
                          "safetensors file with a tensor for each input, named as it is; labels "
                          "give the loss")
              .required();
          flags.add_option("--out", arguments->out, "safetensors file to write the outputs to")
              .required();
          return [arguments](const Settings& settings) { return run(*arguments, settings); };
        },
}};

}  // namespace
}  // namespace lathe::cli::run_command
