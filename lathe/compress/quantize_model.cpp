#include "lathe/compress/quantize_model.h"

#include "lathe/compress/linear_inputs.h"

namespace lathe::compress {

QuantizeResult quantize_model(io::Model& model, const QuantizeOptions& options,
                              const data::TokenizedDataset* calibration,
                              const engine::ExecutionOptions& execution,
                              const std::function<bool(std::int64_t)>& progress) {
  const io::Model original = model;
  const Insertion insertion = insert_quantizers(model.graph, model.state, options.rules);
  QuantizeResult result{insertion.quantizers, insertion.unused, {}};
  if (insertion.quantizers == 0)
    fail("no tensor of the model is given a format: see --weights, --activations and --rules");
  if (calibration == nullptr && (options.corrects_bias || options.uses_gptq))
    fail("--gptq and --bias-correction look at data, and there is none: give --calibrate DATA");
  if (calibration == nullptr && needs_calibration(model.graph))
    fail(
        "scales of activations are measured on data, and there is none: give --calibrate DATA, or "
        "formats that make their own scales, such as mxint:8 or int:8,dynamic");
  set_parameter_scales(model.graph, model.state, options.parameter_range);
  if (calibration == nullptr) return result;

  result.observations =
      observe_activations(model, *calibration, options.calibration_examples, execution, progress);
  set_activation_scales(model.graph, model.state, result.observations, options.activation_range);
  if (options.uses_gptq)
    apply_gptq(model, measure_input_products(original, *calibration, options.calibration_examples,
                                             execution));
  if (options.corrects_bias)
    correct_biases(original, model, *calibration, options.calibration_examples, execution);
  return result;
}

}  // namespace lathe::compress
