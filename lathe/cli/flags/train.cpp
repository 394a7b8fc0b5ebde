#include "lathe/cli/command.h"
#include "lathe/cli/training_text.h"

namespace lathe::cli {
namespace {

using experiment::FineTuneOptions;

void add_data_options(Flags flags, FineTuneOptions& options) {
  flags.add_option("--model", options.model, "model directory, or a builder such as bert-tiny");
  flags.add_option(
      "--data", options.data,
      "directory with train and test as .tsv, .csv or .jsonl (also .zst), one such table "
      "(no test then), an aclImdb tree, MNIST's idx files, folders of .png, or reviews");
  flags.add_option("--tokenizer,--vocabulary", options.tokenizer,
                   "directory with the tokenizer for a builder's model");
  flags.add_option("--split", options.split, "what to train on, such as train,unsup [train]");
  flags
      .add_option("--limit", options.limit,
                  "train and test on so many examples only, each label in its share")
      .at_least(0);
  flags
      .add_option("--text-column", options.text_column,
                  "the texts' column of a table by name, or two for pairs: a,b [text, review, ...]")
      .one_word()
      .separated_by(',');
  flags
      .add_option("--label-column", options.label_column,
                  "the labels' column, or several of 0 and 1: a,b,c [label, sentiment, ...]")
      .one_word()
      .separated_by(',');
  flags.add_option(
      "--header", [&](const std::string& name) { options.header = data::parse_header(name); },
      "whether a .tsv has one: auto, yes or no; without, columns have numbers [auto]");
  flags.add_option("--label-separator", options.label_separator,
                   "what stands between several labels in one column [,]");
  flags.add_option("--labels", options.labels, "outputs of a fresh head [the data's labels]")
      .range(1, 10'000);
  flags.add_flag("--new-head", options.new_head, "start the layer of labels afresh");
  flags.add_option("--class-weights", options.class_weights,
                   "how much an example of a class counts: balanced, or NAME=WEIGHT,...");
  flags.add_flag("--balanced", options.trainer.is_balanced, "draw as many examples of each class");
  flags
      .add_option("--length", options.length,
                  "cut texts to so many tokens [as the model was trained, or its most]")
      .at_least(0);
  flags.add_option(
      "--truncation",
      [&](const std::string& name) { options.truncation = data::parse_truncation(name); },
      "what to keep: head or head+tail [head]");
  add_image_option(flags, options.images);
  flags.add_option("--augment", options.augment,
                   "what training does to images: flip (left and right change places, half the "
                   "time), shift=4 (up to so many pixels each way), or both: flip,shift=4");
  flags
      .add_option("--validation", options.validation,
                  "hold out so many examples and keep the weights that do best on them")
      .at_least(0);
  flags.add_option("--validate-every", options.trainer.validate_every, "steps [an epoch]")
      .at_least(0);
  flags
      .add_option("--patience", options.trainer.patience,
                  "stop after so many validations that are no better")
      .at_least(0);
}

void add_recipe_options(Flags flags, train::TrainerOptions& trainer) {
  const std::int64_t most = std::int64_t{1} << 40;
  flags.add_option("--epochs", trainer.epochs, "times through the data [2]").range(1, most);
  flags.add_option("--steps", trainer.max_steps, "stop after so many steps").range(1, most);
  flags.add_option("--batch-size", trainer.batch_examples, "examples in a batch [32]")
      .range(1, most);
  flags.add_option("--batch-tokens", trainer.batch_tokens, "tokens in a batch, instead")
      .range(1, most);
  flags.add_option("--accumulate", trainer.accumulation, "batches a step [1]")
      .range(1, std::int64_t{1} << 20);
  flags.add_option("--lr", trainer.learning_rate,
                   "learning rate at its highest [2e-4; 1e-3 with --lora]");
  flags.add_option(
      "--schedule", [&](const std::string& name) { trainer.decay = train::parse_decay(name); },
      "constant, linear or cosine [linear]");
  flags.add_option("--warmup", trainer.warmup, "share of a cycle's steps, or steps [0.06]");
  flags
      .add_option("--cycles", trainer.cycles,
                  "times the rate rises and falls in the run [1; 2 where --epochs is left out]")
      .range(1, std::int64_t{1} << 20);
  flags.add_option("--checkpoint-every", trainer.checkpoint_every, "steps [an epoch]").at_least(0);
}

void add_graph_options(Flags flags, FineTuneOptions& options) {
  train::TrainingGraphOptions& graph = options.graph;
  flags.add_option("--objective", graph.objective,
                   "classify, regression, multi-label, tokens, mlm or causal-lm [what the labels "
                   "are]");
  flags.add_option(
      "--optimizer",
      [&](const std::string& name) { graph.optimizer = train::parse_optimizer(name); },
      "adamw or sgd [adamw]");
  flags.add_option("--weight-decay", graph.weight_decay, "on matrices [0.01]");
  flags.add_option("--momentum", graph.momentum, "of sgd [0.9]");
  flags.add_option("--clip", graph.max_norm, "largest norm of a gradient; 0: none [1]");
  flags.add_option("--mask", options.mask, "share of tokens to guess, for mlm [0.15]");
  flags.add_option("--freeze", graph.freeze, "pattern of parameters that stay as they are")
      .repeatable();
  flags.add_option("--lora", options.lora,
                   "train paths of low rank beside linears, not the model: "
                   "rank=8,alpha=16,dropout=0,targets=PATTERN");
  flags.add_option("--prune", options.prune,
                   "prune more and more on the way: sparsity=0.9,method=l1,scope=global,"
                   "granularity=element,begin=0,end=0.6,every=STEPS,embeddings");
  flags.add_flag("--dropout,!--no-dropout", graph.dropout, "train with dropout [yes]");
}

void add_teacher_options(Flags flags, FineTuneOptions& options) {
  train::DistillationOptions& how = options.graph.distillation;
  flags.add_option("--teacher", options.teacher,
                   "classifier to learn from as well, or several separated by commas, such as the "
                   "float model of a quantized one");
  flags.add_option("--teacher-weight", how.weight,
                   "of the teachers' answers in the loss; the labels have the rest [0.5]");
  flags.add_option("--temperature", how.temperature, "what all logits are divided by [2]");
  flags.add_option("--teacher-hidden", how.hidden,
                   "weight of the distance to the teachers' hidden states, besides [0]");
  flags.add_option("--teacher-attention", how.attention,
                   "weight of the distance to the teachers' attention maps, besides [0]");
  flags.add_option("--teacher-cache", options.teacher_cache,
                   "directory where teachers' answers are kept, for other runs too [OUT/teachers]");
}

}  // namespace

void add_fine_tune_options(Flags flags, FineTuneOptions& options) {
  add_data_options(flags, options);
  add_recipe_options(flags, options.trainer);
  add_graph_options(flags, options);
  add_teacher_options(flags, options);
}

}  // namespace lathe::cli
