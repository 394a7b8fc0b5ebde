#include <CLI/App.hpp>

#include "lathe/cli/given_options.h"
#include "lathe/cli/training_text.h"

namespace lathe::cli {
namespace {

using experiment::FineTuneOptions;

void add_data_options(CLI::App& app, FineTuneOptions& options) {
  app.add_option("--model", options.model, "model directory, or a builder such as bert-tiny");
  app.add_option("--data", options.data,
                 "directory with train and test as .tsv, .csv or .jsonl (also .zst), an aclImdb "
                 "tree, MNIST's idx files, folders of .png, or reviews");
  app.add_option("--tokenizer,--vocabulary", options.tokenizer,
                 "directory with the tokenizer for a builder's model");
  app.add_option("--split", options.split, "what to train on, such as train,unsup [train]");
  app.add_option("--limit", options.limit,
                 "train and test on so many examples only, each label in its share");
  app.add_option("--length", options.length, "cut texts to so many tokens [the model's most]");
  app.add_option_function<std::string>(
      "--truncation",
      [&](const std::string& name) { options.truncation = data::parse_truncation(name); },
      "what to keep: head or head+tail [head]");
  app.add_option("--validation", options.validation,
                 "hold out so many examples and keep the weights that do best on them");
  app.add_option("--validate-every", options.trainer.validate_every, "steps [an epoch]");
  app.add_option("--patience", options.trainer.patience,
                 "stop after so many validations that are no better");
}

void add_recipe_options(CLI::App& app, train::TrainerOptions& trainer) {
  const auto positive = CLI::Range(std::int64_t{1}, std::int64_t{1} << 40);
  app.add_option("--epochs", trainer.epochs, "times through the data [2]")->check(positive);
  app.add_option("--steps", trainer.max_steps, "stop after so many steps")->check(positive);
  app.add_option("--batch-size", trainer.batch_examples, "examples in a batch [32]")
      ->check(positive);
  app.add_option("--batch-tokens", trainer.batch_tokens, "tokens in a batch, instead")
      ->check(positive);
  app.add_option("--accumulate", trainer.accumulation, "batches a step [1]")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20));
  app.add_option("--lr", trainer.learning_rate, "learning rate at its highest [2e-4]");
  app.add_option_function<std::string>(
      "--schedule", [&](const std::string& name) { trainer.decay = train::parse_decay(name); },
      "constant, linear or cosine [linear]");
  app.add_option("--warmup", trainer.warmup, "share of a cycle's steps, or steps [0.06]");
  app.add_option("--cycles", trainer.cycles,
                 "times the rate rises and falls in the run [1; 2 where --epochs is left out]")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20));
  app.add_option("--checkpoint-every", trainer.checkpoint_every, "steps [an epoch]");
}

void add_graph_options(CLI::App& app, FineTuneOptions& options) {
  train::TrainingGraphOptions& graph = options.graph;
  app.add_option("--objective", graph.objective,
                 "classify, mlm, causal-lm or regression [classify]");
  app.add_option_function<std::string>(
      "--optimizer",
      [&](const std::string& name) { graph.optimizer = train::parse_optimizer(name); },
      "adamw or sgd [adamw]");
  app.add_option("--weight-decay", graph.weight_decay, "on matrices [0.01]");
  app.add_option("--momentum", graph.momentum, "of sgd [0.9]");
  app.add_option("--clip", graph.max_norm, "largest norm of a gradient; 0: none [1]");
  app.add_option("--mask", options.mask, "share of tokens to guess, for mlm [0.15]");
  app.add_option("--freeze", graph.freeze, "pattern of parameters that stay as they are")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--lora", options.lora,
                 "train paths of low rank beside linears, not the model: "
                 "rank=8,alpha=16,dropout=0,targets=PATTERN");
  app.add_option("--teacher", options.teacher,
                 "classifier to learn from as well, such as the float model of a quantized one");
  app.add_option("--teacher-weight", graph.distillation.weight,
                 "of the teacher's part of the loss [0.5]");
  app.add_option("--temperature", graph.distillation.temperature,
                 "what both models' logits are divided by [2]");
  app.add_flag("--dropout,!--no-dropout", graph.dropout, "train with dropout [yes]");
}

}  // namespace

void add_fine_tune_options(CLI::App& app, FineTuneOptions& options) {
  add_data_options(app, options);
  add_recipe_options(app, options.trainer);
  add_graph_options(app, options);
}

std::set<std::string> given_options(const CLI::App& app) {
  std::set<std::string> names;
  for (const CLI::Option* option : app.get_options())
    if (option->count() > 0) names.insert(option->get_lnames().begin(), option->get_lnames().end());
  return names;
}

}  // namespace lathe::cli
