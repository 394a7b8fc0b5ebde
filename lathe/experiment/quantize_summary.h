#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lathe/experiment/evaluate.h"
#include "lathe/experiment/quantize.h"

namespace lathe::experiment {

/// Parameters of one kind that no quantizer rounds.
struct FloatPart {
  std::string what;  ///< "embeddings", "weights", "biases", "other parameters"
  std::int64_t parameters = 0;
  double share = 0;    ///< of the bytes of all parameters as they are stored now
  std::string remedy;  ///< the option that would round them: "embeddings int:8"; empty: none does
};

/// What quantizing did to a model: its size, what it left alone, and how well it does.
struct QuantizeSummary {
  std::int64_t bytes_before = 0, bytes_after = 0;          ///< of all files that the model needs
  std::vector<FloatPart> floats = {};                      ///< the largest first
  std::optional<ModelEvaluation> before = {}, after = {};  ///< where data was given
};

/// The parameters that stay float, by kind.
std::vector<FloatPart> float_parts(const Quantized& quantized);

/// Measures both models: `written` is what will be written, and `evaluation` names data to measure
/// on, or none.
QuantizeSummary summarize(const io::Model& original, const Quantized& quantized,
                          const io::Model& written, io::Storage storage,
                          const EvaluateOptions& evaluation,
                          const engine::ExecutionOptions& execution,
                          const Callbacks& callbacks = {});

/// The facts for people, each with its name: "size", "float" (what stays float and why),
/// "accuracy".
std::vector<std::pair<std::string, std::string>> summary_facts(const QuantizeSummary& summary);

}  // namespace lathe::experiment
