#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "lathe/cli/command.h"
#include "lathe/cli/execution.h"
#include "lathe/cli/print_json.h"
#include "lathe/cli/progress_line.h"
#include "lathe/cli/text_lines.h"
#include "lathe/core/error.h"
#include "lathe/data/text_contents.h"
#include "lathe/experiment/predict_table.h"

namespace lathe::cli::predict_command {
namespace {

using experiment::TextFormat;

constexpr std::size_t kGroup = 64;

struct Arguments {
  ModelArguments model;
  std::string file;
  std::string format;
  data::ColumnOptions columns;
  experiment::PredictorOptions reading;
  experiment::AnswerOptions answers;
  bool simulates = false;
};

void answer_lines(experiment::Predictor& predictor, const Arguments& arguments) {
  bool is_first = true;
  read_lines(arguments.file, kGroup, [&](const std::vector<std::string>& lines) {
    std::vector<std::string> texts = lines;
    if (is_first) texts[0] = data::without_byte_order_mark(lines[0]);
    is_first = false;
    const std::vector<experiment::Prediction> predictions =
        predictor.predict(experiment::line_examples(texts, predictor));
    for (std::size_t i = 0; i < texts.size(); ++i) {
      if (!arguments.answers.is_json) {
        fmt::print("{}\n", experiment::to_line(predictions[i], predictor, arguments.answers));
        continue;
      }
      nlohmann::ordered_json line =
          experiment::to_json(predictions[i], predictor, arguments.answers);
      if (arguments.answers.with_text) line["text"] = texts[i];
      print_json(line);
    }
    std::fflush(stdout);
  });
}

int run(Arguments arguments, const Settings& settings) {
  const bool is_standard = arguments.file.empty() || arguments.file == "-";
  const TextFormat format = arguments.format.empty()
                                ? experiment::text_format_of(arguments.file)
                                : experiment::parse_text_format(arguments.format);
  arguments.answers.is_json = settings.json;
  if (arguments.answers.with_text && !settings.json)
    fail("with-text: is for json; tables keep their texts");
  const io::Model model = io::load_model(arguments.model.model, {.task = "classify"});
  if (arguments.answers.top > 1 && model.labels != LabelKind::Class)
    fail("top {}: the model tells no classes apart", arguments.answers.top);
  Execution execution(settings);
  experiment::Predictor predictor(model, execution.answering(arguments.simulates),
                                  arguments.reading);
  if (format == TextFormat::Lines) {
    answer_lines(predictor, arguments);
    return 0;
  }
  const auto answer = [&](std::string_view contents) {
    ProgressLine line(settings);
    experiment::predict_table(
        predictor, contents, format, arguments.columns, arguments.answers,
        [](const std::string& text) { fmt::print("{}\n", text); }, line.callbacks().should_stop);
  };
  if (is_standard) {
    const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
    answer(text);
    return 0;
  }
  const data::TextContents contents(arguments.file);
  try {
    answer(contents.view());
  } catch (const UserError& wrong) {
    throw UserError(fmt::format("{}:{}", arguments.file, wrong.message()), wrong.hint());
  }
  return 0;
}

std::function<int(const Settings&)> setup(Flags flags) {
  auto arguments = std::make_shared<Arguments>();
  add_model_option(flags, arguments->model);
  flags.add_option("--format", arguments->format,
                   "of the input: lines, csv, tsv or jsonl [by the file's name]");
  flags
      .add_option("--text-column", arguments->columns.text,
                  "the texts' column of a table by name, or two for pairs: a,b [as trained]")
      .one_word()
      .separated_by(',');
  flags.add_option(
      "--header",
      [arguments](const std::string& name) {
        arguments->columns.header = data::parse_header(name);
      },
      "whether a table has one: auto, yes or no; without, columns have numbers [auto]");
  flags.add_option("--top", arguments->answers.top, "give so many of the likeliest labels [1]")
      .range(1, 10'000);
  flags.add_flag("--with-text", arguments->answers.with_text, "repeat the text in --json");
  flags.add_flag("--simulate", arguments->simulates, kSimulateHelp);
  flags.add_option("--length", arguments->reading.length,
                   "cut texts to so many tokens [as the model was trained]");
  flags.add_option(
      "--truncation",
      [arguments](const std::string& name) {
        arguments->reading.truncation = data::parse_truncation(name);
      },
      "what to keep: head or head+tail [as the model was trained]");
  flags.add_option("file", arguments->file,
                   "texts, one a line, or a .csv, .tsv or .jsonl [standard input]");
  return [arguments](const Settings& settings) { return run(*arguments, settings); };
}

const Register registration{Command{
    .name = "predict",
    .summary = "labels and probabilities of texts, one a line or in a table",
    .examples = "  echo 'a fine film' | lathe predict --model DIR\n"
                "  lathe predict --model DIR reviews.txt --json --with-text\n"
                "  lathe predict --model DIR reviews.csv > answers.csv   # with two more columns\n"
                "  lathe predict --model DIR --top 3 reviews.jsonl",
    .setup = setup,
}};

}  // namespace
}  // namespace lathe::cli::predict_command
