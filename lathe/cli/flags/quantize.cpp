#include <CLI/App.hpp>

#include "lathe/cli/quantize_arguments.h"

namespace lathe::cli {

void add_quantize_options(CLI::App& app, QuantizeArguments& arguments) {
  app.add_option("--weights", arguments.weights,
                 "format of linears' weights, such as int:4,channel (see lathe format)");
  app.add_option("--activations", arguments.activations, "format of what linears read");
  app.add_option("--bias", arguments.bias, "format of linears' biases [float]");
  app.add_option("--outputs", arguments.outputs, "format of what linears give [float]");
  app.add_option("--embeddings", arguments.embeddings, "format of embedding tables [float]");
  app.add_option("--attention", arguments.attention,
                 "format of the queries, keys and values that attention multiplies [float]");
  app.add_option("--attention-weights", arguments.attention_weights,
                 "format of the softmax that attention multiplies values with [float]");
  app.add_option("--rules", arguments.rules,
                 "TOML file of rules by type, name or pattern; they come before the flags");
  app.add_option("--calibrate", arguments.calibrate,
                 "data whose train split shows the range of activations");
  app.add_option("--calibration-examples", arguments.calibration_examples,
                 "texts to calibrate on [256]")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  app.add_option("--weight-range", arguments.weight_range,
                 "scales of weights by minmax, percentile=P or mse [mse]");
  app.add_option("--activation-range", arguments.activation_range,
                 "scales of activations by minmax, percentile=P or mse [mse]");
  app.add_flag("--bias-correction", arguments.bias_correction,
               "take the mean error of each linear's output out of its bias");
  app.add_flag("--gptq", arguments.gptq,
               "round weights one after another, each making up for those before it");
}

}  // namespace lathe::cli
