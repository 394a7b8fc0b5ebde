#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lathe/data/columns.h"
#include "lathe/data/tokenizer.h"
#include "lathe/train/trainer.h"
#include "lathe/train/training_graph.h"

namespace lathe::experiment {

/// A run of training: what, on what, and how. Everything down to `out` decides the weights and is
/// what `run.json` records (run_record.h).
struct FineTuneOptions {
  std::string model = {};       ///< directory, or a builder's name
  std::string data = {};        ///< directory, or `reviews`
  std::string tokenizer = {};   ///< directory with the tokenizer of a builder's model
  std::string split = "train";  ///< or several: `train,unsup`
  std::int64_t limit = 0;       ///< examples, each label in its share; 0: all
  /// Columns of a table: the text's, or two of a pair; the label's, or several of 0 and 1.
  std::vector<std::string> text_column = {}, label_column = {};
  data::Header header = data::Header::Auto;  ///< of a .tsv
  std::string label_separator = ",";         ///< between several labels in one column
  std::int64_t labels = 0;  ///< outputs of a fresh head; 0: as many as the data has labels
  bool new_head = false;    ///< the layer of labels starts fresh, whatever it was trained for
  /// How much an example of each class counts: `balanced`, or `NAME=WEIGHT,...`; empty: all alike.
  std::string class_weights = {};
  std::int64_t length = 0;  ///< most tokens of a text; 0: as the model was trained, or its most
  std::optional<data::Truncation> truncation = {};  ///< nothing: as the model was trained
  /// What is done to images (data::parse_image_reading), where the model's directory says
  /// otherwise.
  std::string images = {};
  std::string augment = {};     ///< images while they are learned (train::parse_augmentation)
  double mask = 0.15;           ///< share of tokens to guess, for `mlm`
  std::int64_t validation = 0;  ///< examples held out, by which the best weights are chosen
  train::TrainerOptions trainer = {};
  train::TrainingGraphOptions graph = {};
  std::string lora = {};   ///< options of LoRA, such as `rank=8`; empty: everything trains
  std::string prune = {};  ///< options of gradual pruning, such as `sparsity=0.9`; empty: none
  /// Classifiers to learn from as well, separated by commas; how is the graph's `distillation`.
  std::string teacher = {};
  /// Directory for the teachers' answers; empty: `teachers` in `out`, or none without `out`.
  std::string teacher_cache = {};
  std::vector<std::string> teacher_hashes = {};  ///< what the teachers were when the run started

  std::filesystem::path out = {};  ///< directory of the run; empty: nothing is written
  bool resumes = false;            ///< goes on with the run in `out`
  bool replaces = false;           ///< may replace a run or model that is in `out`
  int keep_checkpoints = 2;
  bool is_tested = true;  ///< on the split `test`, where there is one
};

}  // namespace lathe::experiment
