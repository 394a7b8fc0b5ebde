#include "lathe/cli/command.h"

namespace lathe::cli {

void add_model_option(Flags flags, ModelArguments& arguments) {
  flags
      .add_option(
          "--model", arguments.model,
          "model directory (Hugging Face or Lathe), ONNX file, or a builder such as bert-tiny")
      .required();
}

void add_task_options(Flags flags, ModelArguments& arguments) {
  flags.add_option("--task", arguments.task,
                   "what the graph is for: classify, tokens, mlm, causal-lm, encode");
  flags.add_option("--inputs", arguments.inputs, "the graph's inputs, separated by commas")
      .separated_by(',')
      .repeatable();
  flags.add_option("--labels", arguments.num_labels, "number of labels of a classifier")
      .at_least(0);
}

void add_storage_option(Flags flags, io::Storage& storage) {
  flags.add_option(
      "--storage", [&storage](const std::string& text) { storage = io::parse_storage(text); },
      fmt::format("plain, sparse (masks as bits, nothing of what they hide) or compact (also coded "
                  "and compressed) [{}]",
                  io::name(storage)));
}

void add_image_option(Flags flags, std::string& images) {
  flags.add_option(
      "--images", images,
      "what is done to images: resize=224 (or ROWSxCOLUMNS), shortest=256, "
      "resample=bicubic, crop=224, colour, white=255, mean=R/G/B, deviation=R/G/B, with "
      "commas between [as the model's preprocessor_config.json says]");
}

void add_column_options(Flags flags, data::ColumnOptions& columns) {
  flags
      .add_option("--text-column", columns.text,
                  "the texts' column of a table by name, or two for pairs: a,b [as trained]")
      .one_word()
      .separated_by(',');
  flags
      .add_option("--label-column", columns.label,
                  "the labels' column, or several of 0 and 1: a,b,c [as trained]")
      .one_word()
      .separated_by(',');
  flags.add_option(
      "--header", [&](const std::string& name) { columns.header = data::parse_header(name); },
      "whether a .tsv has one: auto, yes or no; without, columns have numbers [auto]");
  flags.add_option("--label-separator", columns.separator,
                   "what stands between several labels in one column [as trained]");
}

}  // namespace lathe::cli
