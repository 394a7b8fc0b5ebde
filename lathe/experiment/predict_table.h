#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "lathe/core/interrupt.h"
#include "lathe/data/columns.h"
#include "lathe/experiment/predict.h"

namespace lathe::experiment {

/// How texts to be answered are written.
enum class TextFormat { Lines, Csv, Tsv, Jsonl };
/// The format called `lines`, `csv`, `tsv` or `jsonl`.
TextFormat parse_text_format(std::string_view name);
/// The format of a file by the end of its name, also compressed; lines where it tells none.
TextFormat text_format_of(const std::string& path);

/// What is written of every answer.
struct AnswerOptions {
  std::int64_t top = 1;    ///< so many of the likeliest classes
  bool is_json = false;    ///< an object a line, with all probabilities and logits
  bool with_text = false;  ///< in that object
};

/// An answer as a JSON object.
nlohmann::ordered_json to_json(const Prediction& prediction, const AnswerKind& kind,
                               const AnswerOptions& options);

/// An answer to one line of text or to an image: label and probability between tabs, as many as are
/// asked for.
std::string to_line(const Prediction& prediction, const AnswerKind& kind,
                    const AnswerOptions& options);

/// Answers the rows of a table and hands each over as a line of the same format: the row with the
/// columns `predicted` and `probability` added (`predicted_1`, ... of several), which it must not
/// have. As JSON there are the objects of `to_json` alone.
void predict_table(Predictor& predictor, std::string_view contents, TextFormat format,
                   const data::ColumnOptions& columns, const AnswerOptions& options,
                   const std::function<void(const std::string&)>& write,
                   const ShouldStop& should_stop = {});

/// Lines of text as examples; those of a model of pairs hold two texts between a tab.
data::Dataset line_examples(std::span<const std::string> lines, const Predictor& predictor);

}  // namespace lathe::experiment
