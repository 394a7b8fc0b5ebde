#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "lathe/cli/command.h"
#include "lathe/cli/execution.h"
#include "lathe/cli/print_json.h"
#include "lathe/cli/progress_line.h"
#include "lathe/cli/say.h"
#include "lathe/cli/text_lines.h"
#include "lathe/core/error.h"
#include "lathe/data/text_contents.h"
#include "lathe/experiment/predict_images.h"
#include "lathe/experiment/predict_table.h"
#include "lathe/experiment/predict_words.h"
#include "lathe/experiment/read_data.h"
#include "lathe/io/atomic_file.h"

namespace lathe::cli::predict_command {
namespace {

using experiment::TextFormat;

constexpr std::size_t kGroup = 64;

struct Arguments {
  ModelArguments model;
  std::string file, out;
  std::string format;
  data::ColumnOptions columns;
  experiment::PredictorOptions reading;
  experiment::AnswerOptions answers;
  bool simulates = false;
};

// Where answers go, line by line: standard output, as they come, or a file that appears when all of
// them are there.
class AnswerLines {
 public:
  explicit AnswerLines(const std::string& path) {
    if (!path.empty()) file_.emplace(path);
  }
  void write(const std::string& line) {
    if (!file_) {
      fmt::print("{}\n", line);
      return;
    }
    waiting_ += line;
    waiting_ += '\n';
    if (waiting_.size() > kBlock) flush();
  }
  void flush() {
    if (!file_) {
      flush_output();
      return;
    }
    file_->write(waiting_);
    waiting_.clear();
  }
  void finish() {
    flush();
    if (file_) file_->commit();
  }

 private:
  static constexpr std::size_t kBlock = 1 << 16;
  std::optional<io::AtomicFile> file_;
  std::string waiting_;
};

void answer_lines(experiment::Predictor& predictor, const Arguments& arguments,
                  AnswerLines& answers) {
  bool is_first = true;
  read_lines(arguments.file, kGroup, [&](const std::vector<std::string>& lines) {
    std::vector<std::string> texts = lines;
    if (is_first) texts[0] = data::without_byte_order_mark(lines[0]);
    is_first = false;
    const std::vector<experiment::Prediction> predictions =
        predictor.predict(experiment::line_examples(texts, predictor));
    for (std::size_t i = 0; i < texts.size(); ++i) {
      if (!arguments.answers.is_json) {
        answers.write(experiment::to_line(predictions[i], predictor.answers(), arguments.answers));
        continue;
      }
      nlohmann::ordered_json line =
          experiment::to_json(predictions[i], predictor.answers(), arguments.answers);
      if (arguments.answers.with_text) line["text"] = texts[i];
      answers.write(json_line(std::move(line)));
    }
    if (arguments.out.empty()) answers.flush();
  });
}

// Hands the whole input over, with the file in front of what is wrong with a line of it.
template <typename Answer>
void answer_contents(const std::string& file, const Answer& answer) {
  if (file.empty() || file == "-") {
    const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
    answer(text);
    return;
  }
  const data::TextContents contents(file);
  try {
    answer(contents.view());
  } catch (const UserError& wrong) {
    throw UserError(fmt::format("{}:{}", file, wrong.message()), wrong.hint());
  }
}

int run_words(const io::Model& model, const Arguments& arguments, const Settings& settings) {
  if (arguments.answers.top > 1)
    fail("top {}: a model for tokens gives one label a word", arguments.answers.top);
  if (arguments.answers.with_text) fail("with-text: a model for tokens repeats the words anyway");
  if (arguments.reading.truncation == data::Truncation::HeadTail)
    fail("truncation head+tail: a model for tokens reads sentences from the head");
  const experiment::SentenceFormat format =
      arguments.format.empty() ? experiment::sentence_format_of(arguments.file)
                               : experiment::parse_sentence_format(arguments.format);
  Execution execution(settings);
  experiment::WordPredictor predictor(model, execution.answering(arguments.simulates),
                                      arguments.reading);
  AnswerLines answers(arguments.out);
  answer_contents(arguments.file, [&](std::string_view contents) {
    experiment::predict_sentences(predictor, contents, format, arguments.columns, settings.json,
                                  [&](const std::string& text) { answers.write(text); });
  });
  answers.finish();
  return 0;
}

int run_images(const io::Model& model, const Arguments& arguments, const Settings& settings) {
  if (arguments.file.empty() || arguments.file == "-")
    fail("a {} model does not read text: expected an image, or a folder of them",
         model.family->name);
  experiment::refuse_options_of_texts(*model.family,
                                      {{"format", !arguments.format.empty()},
                                       {"text-column", !arguments.columns.text.empty()},
                                       {"with-text", arguments.answers.with_text},
                                       {"length", arguments.reading.length > 0},
                                       {"truncation", arguments.reading.truncation.has_value()}});
  const std::vector<std::filesystem::path> files = experiment::image_files(arguments.file);
  Execution execution(settings);
  experiment::ImagePredictor predictor(model, execution.answering(arguments.simulates));
  AnswerLines answers(arguments.out);
  ProgressLine line(settings);
  experiment::predict_images(
      predictor, files, arguments.answers, [&](const std::string& text) { answers.write(text); },
      line.callbacks().should_stop);
  answers.finish();
  return 0;
}

int run(Arguments arguments, const Settings& settings) {
  io::Model model = experiment::load_for_prediction(arguments.model.model);
  experiment::set_images(model, arguments.model.images);
  if (model.task == "tokens") return run_words(model, arguments, settings);
  arguments.answers.is_json = settings.json;
  if (arguments.answers.top > 1 && model.labels != LabelKind::Class)
    fail("top {}: the model tells no classes apart", arguments.answers.top);
  if (model.family->reads != models::Reads::Tokens) return run_images(model, arguments, settings);
  const TextFormat format = arguments.format.empty()
                                ? experiment::text_format_of(arguments.file)
                                : experiment::parse_text_format(arguments.format);
  if (arguments.answers.with_text && !settings.json)
    fail("with-text: is for json; tables keep their texts");
  Execution execution(settings);
  experiment::Predictor predictor(model, execution.answering(arguments.simulates),
                                  arguments.reading);
  AnswerLines answers(arguments.out);
  if (format == TextFormat::Lines) {
    answer_lines(predictor, arguments, answers);
    answers.finish();
    return 0;
  }
  answer_contents(arguments.file, [&](std::string_view contents) {
    ProgressLine line(settings);
    experiment::predict_table(
        predictor, contents, format, arguments.columns, arguments.answers,
        [&](const std::string& text) { answers.write(text); }, line.callbacks().should_stop);
    answers.finish();
  });
  return 0;
}

std::function<int(const Settings&)> setup(Flags flags) {
  auto arguments = std::make_shared<Arguments>();
  add_model_option(flags, arguments->model);
  flags.add_option("--format", arguments->format,
                   "of the input: lines, csv, tsv, jsonl or conll [by the file's name]");
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
  flags.add_option("--out", arguments->out,
                   "file to write, which appears when it is whole [standard output]");
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
  add_image_option(flags, arguments->model.images);
  flags.add_option("file", arguments->file,
                   "texts, one a line, or a .csv, .tsv, .jsonl or .conll [standard input]; a .png, "
                   ".jpg or folder of them");
  return [arguments](const Settings& settings) { return run(*arguments, settings); };
}

const Register registration{Command{
    .name = "predict",
    .summary = "labels and probabilities of texts, one a line or in a table, of words or of images",
    .examples =
        "  echo 'a fine film' | lathe predict --model DIR\n"
        "  lathe predict --model DIR reviews.txt --json --with-text\n"
        "  lathe predict --model DIR reviews.csv --out answers.csv   # with two more columns\n"
        "  lathe predict --model DIR --top 3 reviews.jsonl\n"
        "  lathe predict --model DIR photo.jpg\n"
        "  lathe predict --model DIR folder --out answers.tsv        # every image in it",
    .setup = setup,
}};

}  // namespace
}  // namespace lathe::cli::predict_command
