#pragma once

#include <optional>
#include <string>

#include "lathe/cli/settings.h"
#include "lathe/compress/quantize_model.h"
#include "lathe/core/thread_pool.h"
#include "lathe/data/tokenized_dataset.h"
#include "lathe/io/model.h"

namespace CLI {
class App;
}

namespace lathe::cli {

/// What `lathe quantize` takes to say how a model is quantized.
struct QuantizeArguments {
  std::string weights, activations, bias, outputs, embeddings, attention, attention_weights;
  std::string rules;
  std::string calibrate;
  std::int64_t calibration_examples = 256;
  std::string weight_range = "mse", activation_range = "mse";
  bool bias_correction = false, gptq = false;
};
void add_quantize_options(CLI::App& app, QuantizeArguments& arguments);

/// The rules that flags and file say: the file's first, then those of the flags for every linear,
/// embedding and attention.
compress::QuantizeOptions to_options(const QuantizeArguments& arguments);

/// The tokens to calibrate on, from the train split; nullopt without --calibrate.
std::optional<data::TokenizedDataset> load_calibration(const QuantizeArguments& arguments,
                                                       const io::Model& model, ThreadPool& pool);

/// Quantizes with a progress bar, and warns of rules that matched nothing.
compress::QuantizeResult quantize(io::Model& model, const QuantizeArguments& arguments,
                                  const std::optional<data::TokenizedDataset>& calibration,
                                  ThreadPool& pool, const Settings& settings);

}  // namespace lathe::cli
