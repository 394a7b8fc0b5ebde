#pragma once

#include <string>
#include <vector>

#include "lathe/experiment/callbacks.h"
#include "lathe/experiment/fine_tune_options.h"
#include "lathe/io/model.h"

namespace lathe::experiment {

/// Classifiers that a student learns from.
struct Teachers {
  std::vector<io::Model> models;
  std::vector<std::string> hashes;  ///< train::fingerprint of each
};

/// Loads those that the option `teacher` names; fails on one without a trained classifier, and on
/// one that is not what `options.teacher_hashes` says it was, where they say so.
Teachers load_teachers(const FineTuneOptions& options);

/// Fails unless each teacher can run on the student's own tokens, which following its layers takes:
/// the same vocabulary, and sequences as long.
void check_layers_can_be_followed(const Teachers& teachers, const io::Model& student,
                                  std::int64_t length);

/// What teachers say of examples together: probabilities f32[examples, labels] at the temperature
/// of the options, with a column for each label of the student. Each reads the examples in its own
/// way, and is run only where its answers are not in `cache` yet.
Tensor ask_teachers(const Teachers& teachers, const io::Model& student,
                    const data::Dataset& examples, const FineTuneOptions& options,
                    const std::filesystem::path& cache, const engine::ExecutionOptions& execution,
                    const Callbacks& callbacks = {});

}  // namespace lathe::experiment
