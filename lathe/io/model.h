#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lathe/core/graph.h"
#include "lathe/core/label_kind.h"
#include "lathe/data/image_reading.h"
#include "lathe/data/tokenizer.h"
#include "lathe/io/storage/stored_weights.h"
#include "lathe/models/family.h"

namespace lathe::io {

/// How examples were read when a model was trained, so that it can be run on others alike. It
/// stands in config.json under the key `lathe`, where other programs pass over it.
struct Reading {
  std::int64_t length = 0;  ///< most tokens of a text; 0: as many as the model takes
  data::Truncation truncation = data::Truncation::Head;
  std::vector<std::string> text_columns = {}, label_columns = {};  ///< by name; empty: not told
  std::string label_separator = ",";  ///< between the labels of a set in one column
  bool operator==(const Reading&) const = default;
};

/// A model ready to be run, transformed or written: what it is, its graph and its states' values.
struct Model {
  const models::ModelFamily* family = nullptr;
  Attributes config = {};        ///< the keys the family reads
  std::string config_text = {};  ///< config.json as it was found, so that unknown keys survive
  std::string task = {};
  std::vector<std::string> label_names = {};
  LabelKind labels = LabelKind::Class;  ///< of a classifier: `problem_type`
  Reading reading = {};
  data::ImageReading images = {};  ///< what is done to images before the model sees them
  /// The tokenizer where it is not the directory's: of a builder's model, of one whose vocabulary
  /// was made smaller; null otherwise.
  std::shared_ptr<const data::Tokenizer> tokenizer = {};
  Graph graph = {};
  State state = {};
  /// The floats that packed parameters were rounded from, for training to go on with; kept beside
  /// the model and read only when asked for.
  State masters = {};
  std::filesystem::path directory = {};      ///< where it was read; empty for a builder's model
  std::vector<std::string> fresh = {};       ///< states no file had a value for, untrained since
  std::vector<std::string> left_out = {};    ///< tensors of the file that the graph has no use for
  std::vector<std::string> non_finite = {};  ///< states that hold NaN or infinity, where allowed
};

/// What to make of a model directory or a builder's name.
struct LoadOptions {
  std::string task = {};                 ///< empty: what the model was saved for
  std::vector<std::string> inputs = {};  ///< empty: as stored, or the task's usual ones
  std::int64_t num_labels = 0;           ///< 0: what the configuration says
  std::optional<LabelKind> labels = {};  ///< what a loss is for; nothing: what it was trained for
  bool new_head = false;                 ///< the layer of labels starts fresh
  Attributes config = {};                ///< changes to a builder's configuration
  std::uint64_t seed = 0;                ///< of states that start fresh
  bool with_masters = false;             ///< also read the floats of packed parameters
  bool allow_non_finite = false;         ///< list states with NaN or infinity instead of failing
};

/// Loads a Hugging Face or Lathe directory, or builds by name (`mlp:4,8`).
///
/// Heads that the directory's files lack start fresh and are listed in `fresh`; any other missing
/// or misshapen tensor is an error. The graph of a checkpoint is the truth: other inputs and labels
/// change it and keep what passes put there, or fail.
Model load_model(const std::string& directory_or_name, const LoadOptions& options = {});

/// Writes a Hugging Face directory (config.json, safetensors, the files of the tokenizer or of what
/// is done to images): opens anywhere. `target` must not exist; it appears whole or not at all.
/// Fails where the graph has what the family's does not (`portable_weights`).
void write_huggingface(const std::filesystem::path& target, const Model& model,
                       std::int64_t max_shard_bytes = 50'000'000'000);

/// Writes a Lathe checkpoint: the same files, the graph's text, and a manifest with hashes. The
/// file of the masters may be deleted.
void write_checkpoint(const std::filesystem::path& target, const Model& model,
                      Storage storage = Storage::Sparse);
/// Writes a checkpoint's files into an empty directory that exists.
void fill_checkpoint(const std::filesystem::path& directory, const Model& model,
                     Storage storage = Storage::Sparse);

/// Whether the directory holds a Lathe checkpoint.
bool is_checkpoint(const std::filesystem::path& directory);

}  // namespace lathe::io
