#include <CLI/App.hpp>

#include "lathe/cli/command.h"

namespace lathe::cli {

void add_model_option(CLI::App& app, ModelArguments& arguments) {
  app.add_option("--model", arguments.model,
                 "model directory (Hugging Face or Lathe), or a builder such as bert-tiny")
      ->required();
}

void add_task_options(CLI::App& app, ModelArguments& arguments) {
  app.add_option("--task", arguments.task,
                 "what the graph is for: classify, mlm, causal-lm, encode");
  app.add_option("--inputs", arguments.inputs, "the graph's inputs, separated by commas")
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--labels", arguments.num_labels, "number of labels of a classifier");
}

}  // namespace lathe::cli
