#include <CLI/App.hpp>

#include "lathe/cli/command.h"
#include "lathe/cli/text_lines.h"
#include "lathe/data/wordpiece_tokenizer.h"

namespace lathe::cli {
namespace {

struct Arguments {
  std::string model;
  std::string file;
};

std::function<int(const Settings&)> setup(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  app.add_option("--model", arguments->model, "directory with vocab.txt or tokenizer.json")
      ->required();
  app.add_option("file", arguments->file, "texts, one a line [standard input]");
  return [arguments](const Settings& settings) {
    const auto tokenizer = data::WordpieceTokenizer::load(arguments->model);
    read_lines(arguments->file, 1024, [&](const std::vector<std::string>& lines) {
      for (const std::string& line : lines) {
        const std::vector<std::int32_t> ids = tokenizer.encode(line);
        if (settings.json) {
          fmt::print("[{}]\n", fmt::join(ids, ", "));
          continue;
        }
        std::vector<std::string> tokens;
        for (const std::int32_t id : ids) tokens.push_back(tokenizer.token(id));
        fmt::print("{}\n", fmt::join(tokens, " "));
      }
      std::fflush(stdout);
    });
    return 0;
  };
}

const Register registration{Command{
    .name = "tokenize",
    .summary = "cut texts into tokens, one text a line",
    .examples = "  echo 'a fine film' | lathe tokenize --model DIR\n"
                "  lathe tokenize --model DIR reviews.txt --json   # ids with [CLS] and [SEP]",
    .setup = setup,
}};

}  // namespace
}  // namespace lathe::cli
