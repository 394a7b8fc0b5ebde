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
  if (!part.targets.empty() || !all.targets.empty()) {
    // An unlabelled split has none: what is not known is never read, since it has no label.
    part.targets.resize(part.examples.size() * static_cast<std::size_t>(all.num_targets()));
    all.targets.insert(all.targets.end(), part.targets.begin(), part.targets.end());
  }
  if (part.store && all.store) {
    data::TextStore::Texts texts;
    for (data::Example& example : part.examples) {
      if (example.stored < 0) continue;
      texts = part.store->read(example.stored);
      example.stored = all.store->add(texts.text, texts.second);
    }
  } else if (part.store) {
    all.store = part.store;
  }
  std::move(part.examples.begin(), part.examples.end(), std::back_inserter(all.examples));
  if (!part.arrays || !all.arrays) return;
  if (part.arrays->shape != all.arrays->shape)
    fail("examples of two splits have shapes {} and {}: expected one shape",
         to_text(std::span<const std::int64_t>(all.arrays->shape)),
         to_text(std::span<const std::int64_t>(part.arrays->shape)));
  all.arrays->values.insert(all.arrays->values.end(), part.arrays->values.begin(),
                            part.arrays->values.end());
}

data::Dataset read(const data::DatasetOptions& options, const std::string& data,
                   const std::string& splits, std::int64_t limit, const ShouldStop& should_stop) {
  data::Dataset all;
  for (std::size_t begin = 0; begin <= splits.size();) {
    const std::size_t end = std::min(splits.find(',', begin), splits.size());
    data::Dataset part =
        data::load_dataset(data, splits.substr(begin, end - begin), options, should_stop);
    if (begin == 0)
      all = std::move(part);
    else
      append(all, std::move(part));
    begin = end + 1;
  }
  return data::take_some(std::move(all), limit);
}

data::ImageReading changed_reading(const data::ImageReading& base, const std::string& images,
                                   const models::ModelFamily& family) {
  if (!images.empty() && family.reads == models::Reads::Tokens)
    fail("images: a {} model reads texts", family.name);
  return with_place("images", [&] { return data::parse_image_reading(images, base); });
}

bool is_reviews(const std::string& data) {
  return data == "reviews" || data.starts_with("reviews:");
}

// 0, 1, 2, ...: labels that name nothing but the model's positions.
bool are_positions(const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] != std::to_string(i)) return false;
  return true;
}

bool is_unnamed(const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] != fmt::format("LABEL_{}", i)) return false;
  return true;
}

}  // namespace

void refuse_options_of_texts(const models::ModelFamily& family,
                             std::initializer_list<std::pair<std::string_view, bool>> given) {
  if (family.reads == models::Reads::Tokens) return;
  for (const auto& [name, is_given] : given)
    if (is_given) fail("{}: is for texts, which a {} model does not read", name, family.name);
}

data::ImageReading image_reading(const std::string& model, const std::string& images) {
  return changed_reading(io::model_images(model), images, io::model_family(model));
}

void set_images(io::Model& model, const std::string& images) {
  model.images = changed_reading(model.images, images, *model.family);
}

void check_same_images(const io::Model& model, const io::Model& first) {
  if (model.images != first.images)
    fail("reads images by \"{}\", expected \"{}\" as {}", to_text(model.images),
         to_text(first.images),
         first.directory.empty() ? first.family->name : first.directory.string());
}

data::Dataset read_examples(const std::string& model, const std::string& data,
                            const std::string& splits, std::int64_t limit,
                            const ShouldStop& should_stop, const data::ColumnOptions& columns,
                            std::optional<LabelKind> labels, std::string_view task,
                            const std::string& images) {
  return read({.reads = train::reads_of(io::model_family(model), task),
               .columns = columns,
               .labels = labels,
               .images = image_reading(model, images)},
              data, splits, limit, should_stop);
}

data::Dataset read_examples(const io::Model& model, const std::string& data,
                            const std::string& splits, std::int64_t limit,
                            const ShouldStop& should_stop, const data::ColumnOptions& columns) {
  data::DatasetOptions options{.reads = train::reads_of(*model.family, model.task),
                               .columns = columns,
                               .images = model.images};
  options.columns.known_text = model.reading.text_columns;
  options.columns.known_label = model.reading.label_columns;
  if (columns.separator == data::ColumnOptions().separator)
    options.columns.separator = model.reading.label_separator;
  if (model.task == "classify" && model.labels != LabelKind::Class) options.labels = model.labels;
  return read(options, data, splits, limit, should_stop);
}

data::Dataset read_texts(const std::string& data, const std::string& splits,
                         const data::ColumnOptions& columns, const ShouldStop& should_stop) {
  return read({.reads = data::Reads::Text, .columns = columns}, data, splits, 0, should_stop);
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
    throw UserError(
        fmt::format("{}: a model made by name has no vocabulary", model),
        fmt::format("tokenizer DIR names one; lathe tokenizer train --data {} --out DIR "
                    "makes one of your texts",
                    data));
  options.config[named->family->token_keys.vocabulary] =
      static_cast<std::int64_t>(found->vocabulary_size());
  io::Model loaded = io::load_model(model, options);
  loaded.tokenizer = std::move(found);
  return loaded;
}

void adopt_labels(io::Model& model, data::Dataset& examples) {
  if (examples.label_kind == LabelKind::Number) return;
  const std::size_t count = model.label_names.size(), known = examples.label_names.size();
  const bool is_fresh = !model.fresh.empty();
  if (known > 0 && known <= count && (is_fresh || is_unnamed(model.label_names)) &&
      (known == count || is_fresh) && !are_positions(examples.label_names)) {
    // A head with more labels than the data has keeps names of its own for the others.
    std::copy(examples.label_names.begin(), examples.label_names.end(), model.label_names.begin());
    if (known == count) return;
  }
  examples = data::match_labels(std::move(examples), model.label_names);
}

}  // namespace lathe::experiment
