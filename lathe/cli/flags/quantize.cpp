#include "lathe/cli/quantize_flags.h"

namespace lathe::cli {

void add_quantize_options(Flags flags, experiment::QuantizeOptions& options) {
  flags.add_option("--weights", options.weights,
                   "format of linears' weights, such as int:4,channel (see lathe format)");
  flags.add_option("--activations", options.activations, "format of what linears read");
  flags.add_option("--bias", options.bias, "format of linears' biases [float]");
  flags.add_option("--outputs", options.outputs, "format of what linears give [float]");
  flags.add_option("--embeddings", options.embeddings, "format of embedding tables [float]");
  flags.add_option("--attention", options.attention,
                   "format of the queries, keys and values that attention multiplies [float]");
  flags.add_option("--attention-weights", options.attention_weights,
                   "format of the softmax that attention multiplies values with [float]");
  flags.add_option(
      "--profile", options.profile,
      "hardware: quantizers everywhere, so that lathe emit finds no float; --outputs is "
      "the format of residuals then");
  flags.add_option("--skip", options.skip, "layers and tables that stay float, by their names")
      .separated_by(',')
      .repeatable();
  flags.add_option("--rules", options.rules,
                   "TOML file of rules by type, name or pattern; they come before the flags");
  flags.add_option("--calibrate", options.calibrate,
                   "data whose train split shows the range of activations");
  flags
      .add_option("--calibration-examples", options.calibration_examples,
                  "texts to calibrate on [256]")
      .range(1, std::int64_t{1} << 40);
  flags.add_option("--weight-range", options.weight_range,
                   "scales of weights by minmax, percentile=P or mse [mse]");
  flags.add_option("--activation-range", options.activation_range,
                   "scales of activations by minmax, percentile=P or mse [mse]");
  flags.add_flag("--bias-correction", options.bias_correction,
                 "take the mean error of each linear's output out of its bias");
  flags.add_flag("--gptq", options.gptq,
                 "round weights one after another, each making up for those before it");
}

}  // namespace lathe::cli
