#pragma once

#include <filesystem>
#include <string>

#include "lathe/data/columns.h"
#include "lathe/data/train_tokenizer.h"
#include "lathe/experiment/callbacks.h"

namespace lathe::experiment {

/// A vocabulary to be learned from data.
struct TrainTokenizerOptions {
  std::string data = {};        ///< directory, or `reviews`
  std::string split = "train";  ///< or several: `train,unsup`
  data::ColumnOptions columns = {};
  data::TokenizerTraining training = {};
  std::filesystem::path out = {};
  bool replaces = false;  ///< may replace a tokenizer or model that is in `out`
};

/// What was learned.
struct TrainedTokenizer {
  std::int64_t tokens = 0;
  std::int64_t texts = 0;
  std::int64_t bytes = 0;
  double read_seconds = 0, train_seconds = 0;
};

/// Learns a tokenizer from the texts of data and writes its files into `out`, where models made by
/// name find it.
TrainedTokenizer train_tokenizer(const TrainTokenizerOptions& options, ThreadPool& pool,
                                 const Callbacks& callbacks = {});

}  // namespace lathe::experiment
