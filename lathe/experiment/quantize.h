#pragma once

#include <map>
#include <string>
#include <vector>

#include "lathe/compress/quantization_report.h"
#include "lathe/compress/quantize_model.h"
#include "lathe/data/dataset.h"
#include "lathe/experiment/callbacks.h"
#include "lathe/train/example_source.h"

namespace lathe::experiment {

/// Which formats a model's numbers get, and where their scales come from. A format that is empty
/// leaves its tensors as they are.
struct QuantizeOptions {
  std::string weights = {}, activations = {}, bias = {}, outputs = {}, embeddings = {},
              attention = {}, attention_weights = {};
  /// Where quantizers stand: "" at layers, or "hardware" everywhere, so that nothing stays float.
  /// The formats then are those of docs/integer.md unless given: `outputs` is that of residuals.
  std::string profile = {};
  /// Formats of single layers and tables by their names; they come before everything else.
  std::map<std::string, std::string> by_name = {};
  /// Layers and tables that stay as they are, by their names; nothing else counts for them.
  std::vector<std::string> skip = {};
  std::string rules = {};      ///< TOML file of rules by layer, which come before the formats
  std::string calibrate = {};  ///< data whose train split shows the range of activations
  std::int64_t calibration_examples = 256;
  std::string weight_range = "mse", activation_range = "mse";
  bool bias_correction = false, gptq = false;
  bool operator==(const QuantizeOptions&) const = default;
};

/// The rules and ranges that the options say for a graph; without one, those that need none. Fails
/// on a wrong format before any long work.
compress::QuantizeOptions to_rules(const QuantizeOptions& options, const Graph* graph = nullptr);

/// Examples of the split `train` of the data that the options name, to calibrate or measure on.
data::Dataset calibration_examples(const io::Model& model, const QuantizeOptions& options,
                                   std::int64_t count, const Callbacks& callbacks = {});

/// A quantized model and what rounding did to it.
struct Quantized {
  io::Model model;  ///< rounds floats in every run; `compress::pack_model` makes codes of them
  compress::QuantizeResult result;
  std::vector<compress::TensorReport> tensors;
  compress::ModelBits bits;
};

/// Puts quantizers into a model and chooses their scales. `calibration` may be null where no scale
/// has to be measured.
Quantized quantize(const io::Model& original, const QuantizeOptions& options,
                   train::ExampleSource* calibration, const engine::ExecutionOptions& execution,
                   const Callbacks& callbacks = {});
/// The same on the data that the options name.
Quantized quantize(const io::Model& original, const QuantizeOptions& options,
                   const engine::ExecutionOptions& execution, const Callbacks& callbacks = {});

}  // namespace lathe::experiment
