#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lathe/core/label_kind.h"
#include "lathe/core/pass.h"
#include "lathe/data/batching.h"
#include "lathe/data/tokenizer.h"
#include "lathe/train/masked_tokens.h"

namespace lathe::train {

using data::kIgnoredLabel;

/// What a model learns from a batch of texts.
struct Objective {
  std::string name = "classify";  ///< one of `objective_names`
  MaskingOptions masking;         ///< for `mlm`
  bool has_token_types = false;   ///< the graph reads which text of a pair a token belongs to
};

/// causal-lm, classify, mlm, multi-label, regression, tokens.
const std::vector<std::string>& objective_names();

/// What kind of labels an objective needs: of `classify` classes, and where the labels are others,
/// the objective that is meant.
std::string objective_for(const std::string& objective, LabelKind labels);
/// The labels that an objective asks for; nothing where it takes them as they are, or has none.
std::optional<LabelKind> labels_of(const std::string& objective);

/// The task that a model is loaded for to be trained for an objective.
std::string task_of(const std::string& objective);

/// The objective of that name with the tokenizer's special tokens; fails when there is no [MASK] to
/// mask with.
Objective make_objective(const std::string& name, const data::Tokenizer& tokenizer,
                         double mask_share, std::uint64_t seed);

/// The inputs of a training graph that come from the data: tokens, offsets, labels, and the dataset
/// index of each sequence.
///
/// Labels are the class of each sequence, the next token or -100 at the end of a sequence
/// (`causal-lm`), the label of the word that a token begins or -100 (`tokens`), or the hidden
/// tokens at the places in `masked` (`mlm`). Numbers and sets of labels are put in their place by
/// `WithTargets`.
Feed make_training_feed(const data::Batch& batch, const Objective& objective, std::int64_t epoch);

/// The same for a graph that scores every position: the labels of `mlm` are -100 where nothing is
/// hidden.
Feed make_validation_feed(const data::Batch& batch, const Objective& objective);

/// The inputs that are not data: the rate, and what random numbers are made of. Steps count from 1;
/// for parameters that a model has since a change, from there.
void set_step_inputs(Feed& feed, double learning_rate, std::uint64_t seed, std::int64_t step,
                     bool is_applied, std::int64_t changed_at = 0);

}  // namespace lathe::train
