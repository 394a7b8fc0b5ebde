#include <nlohmann/json.hpp>

#include "lathe/cli/command.h"
#include "lathe/cli/print_json.h"
#include "lathe/cli/progress_line.h"
#include "lathe/experiment/train_tokenizer.h"

namespace lathe::cli::tokenizer_train_command {
namespace {

using experiment::TrainTokenizerOptions;

int run(const TrainTokenizerOptions& options, const Settings& settings) {
  ThreadPool pool(settings.threads);
  ProgressLine line(settings);
  const experiment::TrainedTokenizer result =
      experiment::train_tokenizer(options, pool, line.callbacks());
  line.finish();
  if (settings.json) {
    print_json({{"tokens", result.tokens},
                {"texts", result.texts},
                {"bytes", result.bytes},
                {"read_seconds", result.read_seconds},
                {"train_seconds", result.train_seconds},
                {"out", options.out.string()}});
    return 0;
  }
  fmt::print("tokens     {} ({})\n", result.tokens, options.training.kind);
  fmt::print("texts      {}, {:.1f} MB\n", result.texts, static_cast<double>(result.bytes) / 1e6);
  fmt::print("training   {:.2f} s\n", result.train_seconds);
  fmt::print("written to {}\n", options.out.string());
  return 0;
}

std::function<int(const Settings&)> setup(Flags flags) {
  auto options = std::make_shared<TrainTokenizerOptions>();
  flags
      .add_option("--data", options->data,
                  "the texts: a directory or a table as for train, or reviews")
      .required();
  flags.add_option("--split", options->split, "which texts, such as train,unsup [train]");
  add_column_options(flags, options->columns);
  flags.add_option("--kind", options->training.kind,
                   "wordpiece, byte-level-bpe, bpe or unigram [wordpiece]");
  flags.add_option("--size", options->training.size, "tokens of the vocabulary [8000]")
      .range(1, std::int64_t{1} << 24);
  flags
      .add_option("--least-count", options->training.least_count,
                  "how often two pieces must meet to become one [2]")
      .range(1, std::int64_t{1} << 32);
  flags.add_flag("--cased{false}", options->training.lowercase,
                 "keep upper case and accents (wordpiece)");
  flags.add_option("--out", options->out, "directory for the tokenizer").required();
  flags.add_flag("--force", options->replaces, "replace what is in --out");
  return [options](const Settings& settings) { return run(*options, settings); };
}

const Register registration{Command{
    .name = "tokenizer train",
    .summary = "learn a vocabulary from texts",
    .examples = "  lathe tokenizer train --data D --size 8000 --out tokens\n"
                "  lathe tokenizer train --data D --kind byte-level-bpe --out tokens\n"
                "  lathe train --model bert-tiny --tokenizer tokens --data D --out run",
    .setup = setup,
}};

}  // namespace
}  // namespace lathe::cli::tokenizer_train_command
