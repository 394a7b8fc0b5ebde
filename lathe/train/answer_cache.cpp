#include "lathe/train/answer_cache.h"

#include <algorithm>

#include "lathe/core/error.h"
#include "lathe/core/graph_text.h"
#include "lathe/core/select_outputs.h"
#include "lathe/io/safetensors.h"
#include "lathe/io/sha256.h"

namespace lathe::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFormat = "lathe-answers-1";
constexpr const char* kTensor = "logits";

// A hash of several things, each with its length before it: no two lists of things run together.
class Fingerprint {
 public:
  void add(std::span<const std::byte> bytes) {
    const std::uint64_t size = bytes.size();
    digest_.update(std::as_bytes(std::span(&size, 1)));
    digest_.update(bytes);
  }
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
  void add(const Tensor& tensor) {
    add(name(tensor.dtype()));
    add(to_text(tensor.dims()));
    add(std::span(tensor.bytes(), static_cast<std::size_t>(tensor.num_bytes())));
  }
  std::string hex() { return digest_.hex(); }

 private:
  io::Sha256 digest_;
};

std::string fingerprint_of(const data::Dataset& examples) {
  Fingerprint result;
  data::TextStore::Texts buffer;
  for (std::size_t i = 0; i < examples.examples.size(); ++i) {
    const data::Dataset::Texts texts = examples.texts(i, buffer);
    result.add(std::string(texts.text));
    if (examples.has_pairs) result.add(std::string(texts.second));
  }
  if (examples.arrays) {
    result.add(to_text(examples.arrays->shape));
    result.add(std::as_bytes(std::span(examples.arrays->values)));
  }
  return result.hex();
}

std::int64_t length_for(const io::Model& classifier, std::int64_t asked) {
  const std::int64_t most = max_length(classifier);
  return asked == 0 ? most : std::min(asked, most);
}

std::string key_of(const io::Model& classifier, const data::Dataset& examples,
                   const AskOptions& options) {
  Fingerprint key;
  key.add(std::string_view(kFormat));
  key.add(fingerprint(classifier));
  key.add(fingerprint_of(examples));
  key.add(fmt::format("{}", length_for(classifier, options.length)));
  key.add(data::name(options.truncation.value_or(data::Truncation::Head)));
  return key.hex();
}

std::string hash_of(const Tensor& tensor) {
  Fingerprint result;
  result.add(tensor);
  return result.hex();
}

// Fails, saying why, unless the file is whole and holds the answers of that key.
Tensor read_answers(const fs::path& path, const std::string& key, std::int64_t examples,
                    std::size_t labels) {
  const io::SafetensorsFile file = io::SafetensorsFile::open(path);
  const auto said = [&](const char* name) {
    const auto found = file.metadata().find(name);
    return found == file.metadata().end() ? std::string() : found->second;
  };
  if (said("answers") != kFormat || !file.has(kTensor)) fail("{}: holds no answers", path.string());
  if (said("key") != key) fail("{}: holds answers to something else", path.string());
  Tensor logits = file.tensor(kTensor);
  const std::vector<std::int64_t> expected{examples, static_cast<std::int64_t>(labels)};
  if (logits.dtype() != DType::F32 || logits.dims() != expected ||
      said("sha256") != hash_of(logits))
    fail("{}: is damaged", path.string());
  return logits;
}

void write_answers(const fs::path& path, const std::string& key, const Tensor& logits) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) fail("{}: cannot be created: {}", path.parent_path().string(), error.message());
  io::write_safetensors(path, State{{kTensor, logits}},
                        {{"answers", kFormat}, {"key", key}, {"sha256", hash_of(logits)}});
}

Tensor run(const io::Model& classifier, const data::Dataset& examples, const AskOptions& options) {
  Classifier running(classifier, {.execution = options.execution});
  const auto source = make_evaluation_source(
      classifier, examples,
      {.length = length_for(classifier, options.length), .truncation = options.truncation},
      options.execution.pool, options.should_stop);
  return answer_all(running, *source, {.progress = options.progress}).logits;
}

}  // namespace

std::string fingerprint(const io::Model& classifier) {
  const Graph graph = select_outputs(classifier.graph, {"logits"});
  Fingerprint result;
  result.add(print(graph));
  for (const NodeId id : graph.nodes_of("state")) {
    result.add(graph.name(id));
    result.add(classifier.state.at(graph.name(id)));
  }
  for (const std::string& label : classifier.label_names) result.add(label);
  if (classifier.family->reads == models::Reads::Tokens) {
    const std::shared_ptr<const data::Tokenizer> tokenizer = load_tokenizer(classifier);
    for (const data::TokenizerFile& file : tokenizer->files()) {
      result.add(file.name);
      result.add(file.contents);
    }
  }
  return result.hex();
}

Tensor ask(const io::Model& classifier, const data::Dataset& examples, const AskOptions& options) {
  if (options.cache.empty()) return run(classifier, examples, options);
  const std::string key = key_of(classifier, examples, options);
  const fs::path path = options.cache / (key + ".safetensors");
  std::error_code error;
  const auto notice = [&](const UserError& reason, const char* consequence) {
    if (options.notice) options.notice(fmt::format("{}; {}", reason.message(), consequence));
  };
  if (fs::exists(fs::symlink_status(path, error))) {
    try {
      return read_answers(path, key, static_cast<std::int64_t>(examples.examples.size()),
                          classifier.label_names.size());
    } catch (const UserError& damage) {
      notice(damage, "the teacher is asked again");
    }
  }
  Tensor logits = run(classifier, examples, options);
  try {
    write_answers(path, key, logits);
  } catch (const UserError& refusal) {
    notice(refusal, "the teacher's answers are not kept");
  }
  return logits;
}

}  // namespace lathe::train
