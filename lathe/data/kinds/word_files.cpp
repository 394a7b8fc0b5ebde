// SPLIT.conll, SPLIT.txt and SPLIT.jsonl: sentences whose words have a label each.
#include <optional>

#include "lathe/core/error.h"
#include "lathe/data/data_kind.h"
#include "lathe/data/find_reader.h"
#include "lathe/data/sentence_reader.h"
#include "lathe/data/text_contents.h"
#include "lathe/data/written_labels.h"

namespace lathe::data::word_files {
namespace {

// Adding a format is adding its file and a line here. The first that is there counts.
constexpr SentenceReader kReaders[] = {
    {".conll", read_conll},
    {".txt", read_conll},
    {".jsonl", read_sentences_jsonl},
};

using Found = FoundReader<SentenceReader>;

std::optional<Found> find(const std::string& directory, const std::string& split) {
  return find_reader(kReaders, directory, split);
}

// Reads a file's labels, word after word, and its sentences where there is a dataset to take them.
WrittenLabels read(const Found& found, const ColumnOptions& columns, bool labelled,
                   Dataset* dataset) {
  WrittenLabels written{.place = found.file.string()};
  const TextContents contents(found.file);
  try {
    found.reader->read(contents.view(), columns, labelled, [&](Sentence&& sentence) {
      written.labels.insert(written.labels.end(), sentence.labels.begin(), sentence.labels.end());
      written.lines.insert(written.lines.end(), sentence.lines.begin(), sentence.lines.end());
      if (dataset == nullptr) return;
      Example example;
      example.words = std::move(sentence.words);
      dataset->examples.push_back(std::move(example));
    });
  } catch (const UserError& wrong) {
    // The message begins with the line number.
    throw UserError(fmt::format("{}:{}", written.place, wrong.message()), wrong.hint());
  }
  return written;
}

// Numbers the labels of all words as those of that many examples, and hands them out.
void set_word_labels(Dataset& dataset, const WrittenLabels& written,
                     const WrittenLabels* training) {
  Dataset words;
  words.examples.resize(written.labels.size());
  set_labels(words, written, training, LabelKind::Class);
  dataset.label_names = words.label_names;
  std::size_t next = 0;
  for (Example& example : dataset.examples)
    for (std::size_t i = 0; i < example.words.size(); ++i)
      example.word_labels.push_back(words.examples[next++].label);
}

bool has_split(const std::string& directory, const std::string& split) {
  return find(directory, split).has_value();
}

Dataset load(const std::string& directory, const std::string& split, const DatasetOptions& options,
             const ShouldStop&) {
  const bool labelled = is_labelled(split);
  Dataset dataset;
  dataset.has_words = true;
  const WrittenLabels written = read(*find(directory, split), options.columns, labelled, &dataset);
  if (dataset.examples.empty()) fail("{}: is empty, expected at least one sentence", written.place);
  if (!labelled) return dataset;
  std::optional<WrittenLabels> training;
  if (split != "train")
    if (const auto found = find(directory, "train"))
      training = read(*found, options.columns, true, nullptr);
  set_word_labels(dataset, written, training ? &*training : nullptr);
  return dataset;
}

const Register registration{DataKind{
    .name = "word-files",
    .summary = "sentences whose words have a label each, in the files of CoNLL or a .jsonl",
    .reads = Reads::Words,
    .looks_for = "SPLIT.conll, SPLIT.txt, SPLIT.jsonl, each also with .zst or .gz",
    .has_split = has_split,
    .load = load,
    .has_columns = true,
}};

}  // namespace
}  // namespace lathe::data::word_files
