#include "lathe/experiment/predict.h"

#include <nlohmann/json.hpp>

#include "lathe/cli/command.h"
#include "lathe/cli/execution.h"
#include "lathe/cli/print_json.h"
#include "lathe/cli/text_lines.h"

namespace lathe::cli::predict_command {
namespace {

constexpr std::size_t kGroup = 64;

struct Arguments {
  ModelArguments model;
  std::string file;
};

void print_prediction(const std::vector<std::string>& labels,
                      const experiment::Prediction& prediction, const Settings& settings) {
  if (!settings.json) {
    fmt::print("{}\t{:.4f}\n", labels[prediction.label],
               prediction.probabilities[prediction.label]);
    return;
  }
  nlohmann::ordered_json line;
  line["label"] = prediction.label;
  line["label_name"] = labels[prediction.label];
  line["probabilities"] = prediction.probabilities;
  line["logits"] = prediction.logits;
  print_json(line);
}

int run(const Arguments& arguments, const Settings& settings) {
  const io::Model model = io::load_model(arguments.model.model, {.task = "classify"});
  Execution execution(settings);
  experiment::Predictor predictor(model, execution.options());
  read_lines(arguments.file, kGroup, [&](const std::vector<std::string>& lines) {
    for (const experiment::Prediction& prediction : predictor.predict(lines))
      print_prediction(model.label_names, prediction, settings);
    std::fflush(stdout);
  });
  return 0;
}

const Register registration{Command{
    .name = "predict",
    .summary = "labels and probabilities of texts, one text a line",
    .examples = "  echo 'a fine film' | lathe predict --model DIR\n"
                "  lathe predict --model DIR reviews.txt --json",
    .setup =
        [](Flags flags) {
          auto arguments = std::make_shared<Arguments>();
          add_model_option(flags, arguments->model);
          flags.add_option("file", arguments->file, "texts, one a line [standard input]");
          return [arguments](const Settings& settings) { return run(*arguments, settings); };
        },
}};

}  // namespace
}  // namespace lathe::cli::predict_command
