#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "lathe/data/dataset.h"
#include "lathe/io/model.h"
#include "lathe/train/answers.h"
#include "lathe/train/make_source.h"

/// A teacher's answers, kept on disk so that it is asked once, however many students it has.
namespace lathe::train {

/// A SHA-256 of all that a classifier's answers follow from: the graph of its logits, the states
/// and the tokenizer that they are computed with, and what its labels are called.
std::string fingerprint(const io::Model& classifier);

/// How a classifier is asked, and who hears of it.
struct AskOptions {
  std::int64_t length = 0;  ///< most tokens of a text; 0, or more than it takes: its most
  std::optional<data::Truncation> truncation = {};  ///< nothing: as the model was trained
  std::filesystem::path cache = {};                 ///< directory; empty: nothing is kept
  engine::ExecutionOptions execution = {};
  /// Hears of progress, only where the classifier is run; false stops it.
  std::function<bool(std::int64_t examples_done, std::int64_t tokens_done)> progress = {};
  /// Hears of files that could not be used or written, one line each.
  std::function<void(const std::string&)> notice = {};
  ShouldStop should_stop = {};
};

/// What a classifier answers to examples: logits f32[examples, labels].
///
/// A file of the cache is named after a hash of the classifier, the texts or numbers of the
/// examples in their order, the length and the truncation, and it holds that hash and one of its
/// own contents. One that is damaged or answers something else is never used: the classifier is
/// run, and the file replaced. Files appear whole or not at all, so any number of processes may
/// share a directory.
Tensor ask(const io::Model& classifier, const data::Dataset& examples, const AskOptions& options);

}  // namespace lathe::train
