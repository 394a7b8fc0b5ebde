#pragma once

#include <optional>
#include <vector>

#include "lathe/data/dataset.h"
#include "lathe/experiment/evaluate.h"
#include "lathe/experiment/fine_tune_options.h"

/// What a run of training reads: which rows it learns from, chooses by and is tested on.
namespace lathe::experiment {

/// What is learned from and what the best weights are chosen by; nothing where none are.
struct RunExamples {
  data::Dataset train, validation;
};

/// Holds examples out: the same ones whatever the seed, so that runs can be compared; with
/// `labelled`, of those that have a label, whatever others there are.
RunExamples hold_out(data::Dataset all, std::int64_t count, bool labelled);

/// The columns that the options name, and those that the model remembers.
data::ColumnOptions columns_of(const FineTuneOptions& options);

/// Whether the data has a validation split of its own; made-up data has one only for whoever asks.
bool has_validation_file(const FineTuneOptions& options, data::Reads reads);

/// Gives what is decided by held-out rows some, where no number was given.
void decide_validation(FineTuneOptions& options, std::int64_t examples);

/// Fails on examples of one class: what cannot be learned is said before anything is.
void check_classes(const FineTuneOptions& options, const data::Dataset& examples);

/// The weight of each class: of `balanced`, or of a list of names; empty where all count alike.
std::vector<float> class_weights_of(const FineTuneOptions& options, const io::Model& model,
                                    const data::Dataset& examples);

/// How the test split is read and measured on.
EvaluateOptions test_options(const FineTuneOptions& options);

/// The test split as the trained model will see it, where there is one, with its labels: a mistake
/// there is found before hours of training, not after them.
std::optional<data::Dataset> read_test(const FineTuneOptions& options, const io::Model& model,
                                       const Callbacks& callbacks);

}  // namespace lathe::experiment
