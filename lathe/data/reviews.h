#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/core/interrupt.h"
#include "lathe/data/dataset.h"
#include "lathe/data/tokenizer.h"

namespace lathe::data {

/// How many synthetic reviews there are, and which.
struct ReviewOptions {
  std::int64_t num_train = 24000;
  std::int64_t num_test = 2000;
  std::int64_t num_validation = 1000;
  std::uint64_t seed = 1;
  bool operator==(const ReviewOptions&) const = default;
};

/// Reads `reviews` or `reviews:train=4000,test=1000,validation=500,seed=2`.
ReviewOptions parse_review_options(std::string_view spec);

/// Writes film reviews with label 0 (negative) or 1 (positive), half of each.
///
/// The label is what the reviewer thinks and always follows from the text, but word order decides
/// it: a negated judgement counts as its opposite, of two judgements joined by "but" or "although"
/// the later one counts, and what a friend said, the trailer or another film promised does not
/// count at all. Review i of a split depends on the seed, the split and i alone: a smaller dataset
/// is the beginning of a larger one.
Dataset make_reviews(const ReviewOptions& options, std::string_view split,
                     const ShouldStop& should_stop = {});

/// Every token of the reviews, special tokens first, in the order of their ids.
std::vector<std::string> reviews_vocabulary();

/// A tokenizer with that vocabulary.
std::shared_ptr<const Tokenizer> reviews_tokenizer();

}  // namespace lathe::data
