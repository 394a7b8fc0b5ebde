#include "lathe/experiment/train_tokenizer.h"

#include <chrono>

#include "lathe/data/dataset.h"
#include "lathe/data/tokenizer.h"
#include "lathe/experiment/read_data.h"
#include "lathe/io/atomic_file.h"
#include "lathe/io/new_directory.h"
#include "lathe/io/output_directory.h"

namespace lathe::experiment {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

TrainedTokenizer train_tokenizer(const TrainTokenizerOptions& options, ThreadPool& pool,
                                 const Callbacks& callbacks) {
  io::check_output_directory(options.out, options.replaces, {options.data});
  TrainedTokenizer result;
  auto start = Clock::now();
  const data::Dataset examples =
      read_texts(options.data, options.split, options.columns, callbacks.should_stop);
  if (examples.store)
    fail("{}: its texts do not fit memory: expected at most {} bytes to learn from", options.data,
         data::DatasetOptions().most_bytes);
  std::vector<std::string_view> texts;
  for (const data::Example& example : examples.examples) {
    texts.push_back(example.text);
    if (examples.has_pairs) texts.push_back(example.second);
    result.bytes += static_cast<std::int64_t>(example.text.size() + example.second.size());
  }
  result.texts = static_cast<std::int64_t>(examples.examples.size());
  result.read_seconds = seconds_since(start);
  start = Clock::now();
  const std::vector<data::TokenizerFile> files =
      data::train_tokenizer(texts, options.training, pool, callbacks.should_stop);
  result.train_seconds = seconds_since(start);
  io::write_output_directory(options.out, options.replaces,
                             [&](const std::filesystem::path& target) {
                               io::NewDirectory directory(target);
                               for (const auto& [name, contents] : files)
                                 io::write_atomically(directory.path() / name, contents);
                               directory.commit();
                             });
  result.tokens = data::load_tokenizer(options.out)->vocabulary_size();
  return result;
}

}  // namespace lathe::experiment
