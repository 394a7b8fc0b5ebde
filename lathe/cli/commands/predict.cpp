#include <CLI/App.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "lathe/cli/command.h"
#include "lathe/cli/text_lines.h"
#include "lathe/train/evaluation.h"
#include "lathe/train/text_classifier.h"

namespace lathe::cli {
namespace {

constexpr std::size_t kGroup = 64;
constexpr std::int64_t kBatchTokens = 4096;

struct Arguments {
  ModelArguments model;
  std::string file;
};

void print_prediction(const std::vector<std::string>& labels, std::span<const float> logits,
                      const Settings& settings) {
  const std::vector<double> probabilities = train::softmax(logits);
  const auto best =
      static_cast<std::size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  if (!settings.json) {
    fmt::print("{}\t{:.4f}\n", labels[best], probabilities[best]);
    return;
  }
  nlohmann::ordered_json line;
  line["label"] = best;
  line["label_name"] = labels[best];
  line["probabilities"] = probabilities;
  line["logits"] = std::vector<float>(logits.begin(), logits.end());
  fmt::print("{}\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

std::function<int(const Settings&)> setup(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  add_model_option(app, arguments->model);
  app.add_option("file", arguments->file, "texts, one a line [standard input]");
  return [arguments](const Settings& settings) {
    const io::Model model = io::load_model(arguments->model.model, {.task = "classify"});
    const std::shared_ptr<const data::Tokenizer> tokenizer = train::load_tokenizer(model);
    ThreadPool pool(settings.threads);
    train::ClassifierOptions options;
    options.execution = settings.execution(pool);
    train::TextClassifier classifier(model, options);
    const std::int64_t longest = train::max_length(model);
    read_lines(arguments->file, kGroup, [&](const std::vector<std::string>& lines) {
      data::TokenizedDataset group;
      for (const std::string& line : lines) {
        tokenizer->encode(line, group.ids, longest);
        group.offsets.push_back(static_cast<std::int64_t>(group.ids.size()));
        group.labels.push_back(0);
      }
      const data::BatchPlan plan =
          data::plan_batches(group.lengths(), {.max_examples = 0, .max_tokens = kBatchTokens});
      for (std::int64_t b = 0; b < plan.num_batches(); ++b) {
        const Tensor logits = classifier.logits(data::make_batch(group, plan.examples(b)));
        const auto labels = static_cast<std::size_t>(logits.dim(1));
        for (std::size_t row = 0; row < static_cast<std::size_t>(logits.dim(0)); ++row)
          print_prediction(model.label_names, logits.data<float>().subspan(row * labels, labels),
                           settings);
      }
      std::fflush(stdout);
    });
    return 0;
  };
}

const Register registration{Command{
    .name = "predict",
    .summary = "labels and probabilities of texts, one text a line",
    .examples = "  echo 'a fine film' | lathe predict --model DIR\n"
                "  lathe predict --model DIR reviews.txt --json",
    .setup = setup,
}};

}  // namespace
}  // namespace lathe::cli
