#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/data/columns.h"

namespace lathe::data {

/// A sentence as it is written: its words, and where it is labelled as many labels, still as texts.
struct Sentence {
  std::vector<std::string> words;
  std::vector<std::string> labels = {};
  /// Where each word stands, for messages.
  std::vector<std::int64_t> lines = {};
  bool operator==(const Sentence&) const = default;
};

using TakeSentence = std::function<void(Sentence&&)>;

/// A file format of words with labels. Hands over the sentences of `contents` one after the other;
/// a UserError starts with the line number.
struct SentenceReader {
  std::string_view extension;
  void (*read)(std::string_view contents, const ColumnOptions& columns, bool labelled,
               const TakeSentence& take);
};

/// A word a line, in columns between tabs, or between spaces where there are none: the first is the
/// word and the last its label, or those whose numbers are asked for. A blank line ends a sentence,
/// and so does one that begins with -DOCSTART-, which is no word.
void read_conll(std::string_view contents, const ColumnOptions& columns, bool labelled,
                const TakeSentence& take);
/// One JSON object a line: a list of words under `tokens` or `words`, and as long a list of texts
/// or numbers under `labels`, `ner_tags` or `tags`; or the keys that are asked for.
void read_sentences_jsonl(std::string_view contents, const ColumnOptions& columns, bool labelled,
                          const TakeSentence& take);

}  // namespace lathe::data
