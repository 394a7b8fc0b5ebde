#include "lathe/cli/command.h"
#include "lathe/cli/say.h"
#include "lathe/cli/text_lines.h"
#include "lathe/core/error.h"
#include "lathe/data/tokenizer.h"

namespace lathe::cli::tokenize_command {
namespace {

struct Arguments {
  std::string model, tokenizer;
  std::string file;
};

std::function<int(const Settings&)> setup(Flags flags) {
  auto arguments = std::make_shared<Arguments>();
  const Flag model =
      flags.add_option("--model", arguments->model, "directory of a model with its tokenizer");
  flags.add_option("--tokenizer", arguments->tokenizer, "tokenizer.json, or a directory with one")
      .excludes(model);
  flags.add_option("file", arguments->file, "texts, one a line [standard input]");
  return [arguments](const Settings& settings) {
    const std::string& place =
        arguments->tokenizer.empty() ? arguments->model : arguments->tokenizer;
    if (place.empty()) fail("expected --tokenizer or --model");
    const auto tokenizer = data::load_tokenizer(place);
    read_lines(arguments->file, 1024, [&](const std::vector<std::string>& lines) {
      for (const std::string& line : lines) {
        const std::vector<std::int32_t> ids = tokenizer->encode(line);
        if (settings.json) {
          fmt::print("[{}]\n", fmt::join(ids, ", "));
          continue;
        }
        std::vector<std::string> tokens;
        for (const std::int32_t id : ids) tokens.push_back(tokenizer->token(id));
        fmt::print("{}\n", fmt::join(tokens, " "));
      }
      flush_output();
    });
    return 0;
  };
}

const Register registration{Command{
    .name = "tokenize",
    .summary = "cut texts into tokens, one text a line",
    .examples = "  echo 'a fine film' | lathe tokenize --model DIR\n"
                "  lathe tokenize --tokenizer tokenizer.json reviews.txt\n"
                "  lathe tokenize --model DIR reviews.txt --json   # ids, special tokens included",
    .setup = setup,
}};

}  // namespace
}  // namespace lathe::cli::tokenize_command
