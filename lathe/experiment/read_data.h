#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "lathe/data/dataset.h"
#include "lathe/io/model.h"

/// How models and data find each other.
namespace lathe::experiment {

/// What is done to the images of a model of that name: what its directory says, and what a text
/// (`data::parse_image_reading`) changes in it.
data::ImageReading image_reading(const std::string& model, const std::string& images);
/// Changes what is done to a model's images by such a text.
void set_images(io::Model& model, const std::string& images);
/// Fails on a model that would see other images than the first, from the same file.
void check_same_images(const io::Model& model, const io::Model& first);

/// Fails on an option that says how texts are read, where it is given and a model of the family
/// reads none.
void refuse_options_of_texts(const models::ModelFamily& family,
                             std::initializer_list<std::pair<std::string_view, bool>> given);

/// Reads one split, or several joined by commas, of what a model of that name reads for a task.
data::Dataset read_examples(const std::string& model, const std::string& data,
                            const std::string& splits, std::int64_t limit,
                            const ShouldStop& should_stop = {},
                            const data::ColumnOptions& columns = {},
                            std::optional<LabelKind> labels = {},
                            std::string_view task = "classify", const std::string& images = {});

/// The same for a model that is there: columns and labels are those it was trained with, unless
/// others are asked for.
data::Dataset read_examples(const io::Model& model, const std::string& data,
                            const std::string& splits, std::int64_t limit,
                            const ShouldStop& should_stop = {},
                            const data::ColumnOptions& columns = {});

/// Reads the texts of one split, or of several joined by commas, for no model in particular.
data::Dataset read_texts(const std::string& data, const std::string& splits,
                         const data::ColumnOptions& columns, const ShouldStop& should_stop = {});

/// Loads a model; one that is made by name takes its tokenizer from the directory `tokenizer`, or
/// from the built-in reviews when they are the data.
io::Model load_with_tokenizer(const std::string& model, const std::string& tokenizer,
                              const std::string& data, io::LoadOptions options);

/// Makes the examples' labels those of the model, by name. A model without names for its labels, or
/// with a fresh classifier, takes the data's.
void adopt_labels(io::Model& model, data::Dataset& examples);

}  // namespace lathe::experiment
