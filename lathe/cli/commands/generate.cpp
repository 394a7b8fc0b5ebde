#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "lathe/cli/command.h"
#include "lathe/cli/execution.h"
#include "lathe/cli/print_json.h"
#include "lathe/cli/progress_line.h"
#include "lathe/cli/say.h"
#include "lathe/generate/encode_prompt.h"
#include "lathe/generate/generator.h"
#include "lathe/generate/text_stream.h"
#include "lathe/train/make_source.h"

namespace lathe::cli::generate_command {
namespace {

using generate::Tokens;

struct Arguments {
  std::string model;
  std::vector<std::string> prompts, prompt_ids;
  generate::GenerateOptions options;
  std::string cache = "float32";
  bool ignores_end = false, simulates = false;
};

Tokens parse_ids(const std::string& text) {
  Tokens ids;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    std::int32_t id = 0;
    const auto [stop, error] = std::from_chars(text.data() + begin, text.data() + end, id);
    if (error != std::errc{} || stop != text.data() + end)
      fail("prompt-ids {}: expected numbers with commas between them", text);
    ids.push_back(id);
    begin = end + 1;
  }
  return ids;
}

// Tokens as they come: those of one prompt are printed at once, those of several line by line when
// a continuation is whole.
class Printer {
 public:
  Printer(const std::shared_ptr<const data::Tokenizer>& tokenizer,
          const std::vector<Tokens>& prompts, bool is_json)
      : is_streaming_(prompts.size() == 1 && !is_json), texts_(prompts.size()) {
    if (tokenizer != nullptr)
      for (const Tokens& prompt : prompts) streams_.emplace_back(tokenizer, prompt);
  }
  void add(std::size_t prompt, std::int32_t id) {
    std::string piece = streams_.empty()
                            ? fmt::format("{}{}", texts_[prompt].empty() ? "" : " ", id)
                            : streams_[prompt].add(id);
    texts_[prompt] += piece;
    if (!is_streaming_) return;
    fmt::print("{}", piece);
    flush_output();
  }
  void print_all(const std::vector<generate::Continuation>& results) {
    if (is_streaming_) {
      fmt::print("{}\n", streams_.empty() ? std::string() : streams_[0].finish());
      return;
    }
    for (std::size_t i = 0; i < streams_.size(); ++i) texts_[i] += streams_[i].finish();
    for (std::size_t i = 0; i < results.size(); ++i) fmt::print("{}: {}\n", i, texts_[i]);
  }
  void print_json_lines(const std::vector<generate::Continuation>& results,
                        const std::string& cache) {
    for (std::size_t i = 0; i < results.size(); ++i) {
      nlohmann::ordered_json line;
      line["prompt"] = i;
      line["tokens"] = results[i].tokens;
      if (!streams_.empty()) line["text"] = texts_[i] + streams_[i].finish();
      line["end"] = name(results[i].end);
      line["cache"] = cache;
      line["cache_bytes"] = results[i].cache_bytes;
      print_json(std::move(line));
    }
  }

 private:
  bool is_streaming_;
  std::vector<std::string> texts_;
  std::vector<generate::TextStream> streams_;
};

int run(Arguments arguments, const Settings& settings) {
  if (arguments.prompts.empty() == arguments.prompt_ids.empty())
    fail("expected either --prompt or --prompt-ids");
  const io::Model model = io::load_model(arguments.model);
  std::shared_ptr<const data::Tokenizer> tokenizer;
  std::vector<Tokens> prompts;
  if (!arguments.prompts.empty()) tokenizer = train::load_tokenizer(model);
  for (const std::string& text : arguments.prompts)
    prompts.push_back(generate::encode_prompt(*tokenizer, text));
  for (const std::string& text : arguments.prompt_ids) prompts.push_back(parse_ids(text));
  arguments.options.sampling.seed = settings.seed;
  if (!arguments.ignores_end) arguments.options.end_ids = generate::end_ids_of(model);

  Printer printer(tokenizer, prompts, settings.json);
  Execution execution(settings);
  generate::Generator generator(model, execution.answering(arguments.simulates),
                                generate::parse_cache_format(arguments.cache));
  ProgressLine line(settings);
  const ShouldStop should_stop = line.callbacks().should_stop;
  const std::vector<generate::Continuation> results = generator.run(
      prompts, arguments.options,
      [&](std::size_t prompt, std::int32_t id) { printer.add(prompt, id); }, should_stop);
  if (settings.json)
    printer.print_json_lines(results, arguments.cache);
  else
    printer.print_all(results);
  flush_output();
  if (should_stop && should_stop()) throw Interrupted();
  return 0;
}

std::function<int(const Settings&)> setup(Flags flags) {
  auto arguments = std::make_shared<Arguments>();
  generate::GenerateOptions& options = arguments->options;
  flags.add_option("--model", arguments->model, "directory of a causal language model").required();
  flags
      .add_option("--prompt", arguments->prompts,
                  "text to continue, as often as wanted; several are continued side by side")
      .one_word()
      .repeatable();
  flags
      .add_option("--prompt-ids", arguments->prompt_ids,
                  "the same as ids of tokens, such as 1,15,8; tokens are printed as ids then")
      .one_word()
      .repeatable();
  flags.add_option("--max-new-tokens", options.max_new_tokens, "most tokens to add [64]")
      .range(1, 1 << 24);
  flags.add_option("--temperature", options.sampling.temperature,
                   "what logits are divided by before one is drawn; 0: always the likeliest [0]");
  flags.add_option("--top-k", options.sampling.top_k,
                   "draw among so many of the likeliest; 0: among all [0]");
  flags.add_option("--top-p", options.sampling.top_p,
                   "draw among the fewest that are together so likely [1]");
  flags.add_option("--cache", arguments->cache,
                   "how keys and values of earlier tokens are kept: float32, bf16 or int:8, which "
                   "take a half and about a quarter of the memory [float32]");
  flags.add_flag("--ignore-end", arguments->ignores_end,
                 "go on behind the token that the model ends texts with");
  flags.add_flag("--simulate", arguments->simulates, kSimulateHelp);
  return [arguments](const Settings& settings) { return run(*arguments, settings); };
}

const Register registration{Command{
    .name = "generate",
    .summary = "continue prompts with a causal language model, token by token",
    .examples =
        "  lathe generate --model DIR --prompt 'Once upon a time'\n"
        "  lathe generate --model DIR --prompt-ids 1,461,401 --max-new-tokens 16 --json\n"
        "  lathe generate --model DIR --prompt 'To be' --temperature 0.8 --top-k 40 --seed 1\n"
        "  lathe generate --model DIR --prompt 'To be' --cache int:8",
    .setup = setup,
}};

}  // namespace
}  // namespace lathe::cli::generate_command
