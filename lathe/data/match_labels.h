#pragma once

#include <string>
#include <vector>

#include "lathe/data/dataset.h"

namespace lathe::data {

/// The dataset with the labels of a model: each example's label is the position of its name among
/// `model_label_names`, which become the names of the dataset.
///
/// Names must be equal. A model's LABEL_0, LABEL_1 stand for the numbers 0 and 1. Labels that are
/// numbers in the data, which then has no names, mean the model's positions, as Hugging Face has
/// it, unless the model's own names are numbers too. Anything else is an error that lists both.
/// Names that no example has need not match. Of sets of labels those of the data must all be the
/// model's. Numbers have no names.
Dataset match_labels(Dataset dataset, const std::vector<std::string>& model_label_names);

}  // namespace lathe::data
