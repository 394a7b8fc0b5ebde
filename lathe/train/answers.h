#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lathe/data/batching.h"
#include "lathe/train/classifier.h"
#include "lathe/train/evaluation_options.h"
#include "lathe/train/example_source.h"

/// What classifiers answer to examples, and what several of them answer together.
namespace lathe::train {

/// A classifier's answers to all examples of a source.
struct Answers {
  Tensor logits;  ///< f32[examples, labels], in the order of the source
  std::int64_t tokens = 0;
  double forward_seconds = 0;  ///< the model alone
};

/// The batches in which all examples of a source are answered.
data::BatchPlan plan_answers(const Classifier& classifier, ExampleSource& source,
                             const EvaluationOptions& options);

/// Runs a classifier on every example once. Answers do not depend on the batches.
Answers answer_all(Classifier& classifier, ExampleSource& source,
                   const EvaluationOptions& options = {});

/// Probabilities of one row of logits.
std::vector<double> softmax(std::span<const float> logits, double temperature = 1);

/// For each of the labels `names`, which column of logits it has where columns are called `own`.
/// Names are matched as a dataset's labels with a model's are (data::match_labels); fails unless
/// both are the same labels in some order.
std::vector<std::size_t> match_columns(const std::vector<std::string>& own,
                                       const std::vector<std::string>& names);

/// The logits with their columns in another order.
Tensor pick_columns(const Tensor& logits, std::span<const std::size_t> columns);

/// What several classifiers say together: the mean of their probabilities, each a softmax of its
/// logits divided by the temperature. Columns mean the same in all.
///
/// Means of probabilities, not of logits: a member that is sure of itself by a larger scale of its
/// logits counts no more than another.
Tensor mean_probabilities(std::span<const Tensor> logits, double temperature = 1);

/// How far other answers are from these, row by row in the mean: the Kullback-Leibler divergence of
/// their probabilities in nats. 0 only where all rows are the same.
double mean_divergence(const Tensor& logits, const Tensor& other);

/// The mean probabilities at temperature 1 as logits: the logarithms of those means, also where
/// they are too small for a float.
Tensor ensemble_logits(std::span<const Tensor> logits);

}  // namespace lathe::train
