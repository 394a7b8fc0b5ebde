#pragma once

#include <memory>
#include <optional>
#include <string>

#include "lathe/core/interrupt.h"
#include "lathe/core/thread_pool.h"
#include "lathe/data/dataset.h"
#include "lathe/data/tokenizer.h"
#include "lathe/io/model.h"
#include "lathe/train/augmentation.h"
#include "lathe/train/example_source.h"

/// From a model and data to what the model's graph is fed with.
namespace lathe::train {

/// How the examples of a dataset are fed to a model.
struct SourceOptions {
  std::string objective = "classify";
  std::int64_t length = 0;                          ///< most tokens of a text; 0: the model's most
  std::optional<data::Truncation> truncation = {};  ///< nothing: as the model was trained
  bool is_padded = false;                           ///< for a graph in padded form
  double mask_share = 0.15;
  std::uint64_t seed = 0;          ///< of what is hidden from a masked language model, or augmented
  Augmentation augmentation = {};  ///< of images, in batches for training
};

/// What a model that was saved for a task is measured by; `classify` for one without a loss.
std::string objective_of(const io::Model& model);

/// The input that says which text of a pair a token belongs to.
inline constexpr const char* kTokenTypes = "token_type_ids";

/// The model with that input, where its family knows it: to be run on pairs.
io::Model with_token_types(io::Model model);

/// What data must hold for a model: what its family reads.
data::Reads reads_of(const models::ModelFamily& family, std::string_view task = "classify");

/// The tokenizer of a model: its own, or its directory's. Fails for a model that reads no text, and
/// when the vocabulary's size is not the configuration's.
std::shared_ptr<const data::Tokenizer> load_tokenizer(const io::Model& model);

/// The longest sequence the model takes; 0 for a model that reads no text.
std::int64_t max_length(const io::Model& model);
/// The length that texts are cut to: `length`, or for 0 what the model was trained with, or its
/// most; 0 for a model that reads no text. Fails on a length that the model does not take.
std::int64_t text_length(const io::Model& model, std::int64_t length);

/// Turns a graph of the model, which is in padded form, into the form that sources feed: sequences
/// of tokens are packed.
void pack_inputs(Graph& graph, const io::Model& model);

/// Examples to measure a model on. Texts are tokenized at once, on all threads of the pool; arrays
/// of numbers are the dataset's own, which must then outlive the source. Threads may ask it for
/// batches side by side, for training too.
std::unique_ptr<ExampleSource> make_evaluation_source(const io::Model& model,
                                                      const data::Dataset& dataset,
                                                      const SourceOptions& options,
                                                      ThreadPool* pool,
                                                      const ShouldStop& should_stop = {});

/// Examples to train a model on, which will be asked for in this order first. Texts are tokenized
/// while training is under way. The dataset must outlive the source.
std::unique_ptr<ExampleSource> make_training_source(const io::Model& model,
                                                    const data::Dataset& dataset,
                                                    const SourceOptions& options,
                                                    std::vector<std::int64_t> order);

}  // namespace lathe::train
