#include "lathe/experiment/read_data.h"

#include <algorithm>

#include "lathe/data/match_labels.h"
#include "lathe/data/reviews.h"
#include "lathe/data/tokenizer.h"
#include "lathe/data/validation_split.h"
#include "lathe/io/model_family.h"
#include "lathe/train/make_source.h"

namespace lathe::experiment {
namespace {

void append(data::Dataset& all, data::Dataset part) {
  if (part.label_names.size() > all.label_names.size()) all.label_names = part.label_names;
  std::move(part.examples.begin(), part.examples.end(), std::back_inserter(all.examples));
  if (!part.arrays || !all.arrays) return;
  if (part.arrays->shape != all.arrays->shape)
    fail("examples of two splits have shapes {} and {}: expected one shape",
         to_text(std::span<const std::int64_t>(all.arrays->shape)),
         to_text(std::span<const std::int64_t>(part.arrays->shape)));
  all.arrays->values.insert(all.arrays->values.end(), part.arrays->values.begin(),
                            part.arrays->values.end());
}

data::Dataset read(data::Reads reads, const std::string& data, const std::string& splits,
                   std::int64_t limit, const ShouldStop& should_stop) {
  data::Dataset all;
  for (std::size_t begin = 0; begin <= splits.size();) {
    const std::size_t end = std::min(splits.find(',', begin), splits.size());
    data::Dataset part =
        data::load_dataset(data, splits.substr(begin, end - begin), {.reads = reads}, should_stop);
    if (begin == 0)
      all = std::move(part);
    else
      append(all, std::move(part));
    begin = end + 1;
  }
  return data::take_some(std::move(all), limit);
}

bool is_reviews(const std::string& data) {
  return data == "reviews" || data.starts_with("reviews:");
}

bool is_unnamed(const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] != fmt::format("LABEL_{}", i)) return false;
  return true;
}

}  // namespace

data::Dataset read_examples(const std::string& model, const std::string& data,
                            const std::string& splits, std::int64_t limit,
                            const ShouldStop& should_stop) {
  return read(train::reads_of(io::model_family(model)), data, splits, limit, should_stop);
}

data::Dataset read_examples(const io::Model& model, const std::string& data,
                            const std::string& splits, std::int64_t limit,
                            const ShouldStop& should_stop) {
  return read(train::reads_of(*model.family), data, splits, limit, should_stop);
}

data::Dataset read_texts(const std::string& data, const std::string& splits,
                         const ShouldStop& should_stop) {
  return read(data::Reads::Text, data, splits, 0, should_stop);
}

io::Model load_with_tokenizer(const std::string& model, const std::string& tokenizer,
                              const std::string& data, io::LoadOptions options) {
  const auto named = models::find_named_model(model);
  if (!named) {
    if (!tokenizer.empty()) fail("tokenizer: is for models made by name: {} has its own", model);
    return io::load_model(model, options);
  }
  if (named->family->reads != models::Reads::Tokens) return io::load_model(model, options);
  std::shared_ptr<const data::Tokenizer> found;
  if (!tokenizer.empty())
    found = data::load_tokenizer(tokenizer);
  else if (is_reviews(data))
    found = data::reviews_tokenizer();
  else
    throw UserError(fmt::format("{}: a model made by name has no vocabulary", model),
                    "give a tokenizer: a directory with a vocab.txt or tokenizer.json");
  options.config[named->family->token_keys.vocabulary] =
      static_cast<std::int64_t>(found->vocabulary_size());
  io::Model loaded = io::load_model(model, options);
  loaded.tokenizer = std::move(found);
  return loaded;
}

void adopt_labels(io::Model& model, data::Dataset& examples) {
  const std::size_t count = model.label_names.size();
  const bool is_fresh = !model.fresh.empty();
  if (examples.label_names.size() == count && (is_fresh || is_unnamed(model.label_names)) &&
      examples.label_names.front() != "0") {
    model.label_names = examples.label_names;
    return;
  }
  examples = data::match_labels(std::move(examples), model.label_names);
}

}  // namespace lathe::experiment
