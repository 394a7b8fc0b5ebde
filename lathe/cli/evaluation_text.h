#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lathe/cli/settings.h"
#include "lathe/train/evaluation.h"
#include "lathe/train/label_set_score.h"
#include "lathe/train/loss_evaluation.h"
#include "lathe/train/number_score.h"
#include "lathe/train/word_score.h"

/// How well a model did, as commands print it.
namespace lathe::cli {

/// Adds accuracy, its interval, F1, labels and confusion to a JSON object.
void add_classes(nlohmann::ordered_json& line, const train::Evaluation& result,
                 const std::vector<std::string>& labels);

/// Prints squared error and correlations of a model of numbers; `where` follows in brackets.
void print_numbers(const train::NumberScore& result, const std::string& where);

/// Prints F1 of a model of sets of labels; a table of the labels follows by `print_labels`.
void print_sets(const train::LabelSetScore& result, const std::string& where);
void print_labels(const train::LabelSetScore& result, const std::vector<std::string>& labels);

/// Prints accuracy of words and F1 of entities; a table of their types follows by `print_types`.
void print_words(const train::WordScore& result, const std::string& where);
void print_types(const train::WordScore& result);

/// Prints a table of the classes, and which were taken for which.
void print_classes(const train::Evaluation& result, const std::vector<std::string>& labels);

}  // namespace lathe::cli
