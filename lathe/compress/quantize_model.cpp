#include "lathe/compress/quantize_model.h"

#include <cmath>

#include "lathe/compress/bias_correction.h"
#include "lathe/compress/gptq.h"
#include "lathe/compress/insert_quantizers.h"
#include "lathe/compress/without_batch_norms.h"
#include "lathe/core/role.h"

namespace lathe::compress {
namespace {

// One NaN would become the scale of all that share it, and codes have no place for it.
void check_finite(const Graph& graph, const State& state) {
  for (const NodeId id : states_of(graph, StateRole::Parameter)) {
    const auto found = state.find(graph.name(id));
    if (found == state.end() || found->second.dtype() != DType::F32) continue;
    const std::span<const float> values = found->second.data<float>();
    for (std::size_t i = 0; i < values.size(); ++i)
      if (!std::isfinite(values[i]))
        fail("state \"{}\": element {} is {}, which no number format can hold", graph.name(id), i,
             values[i]);
  }
}

}  // namespace

QuantizeResult quantize_model(io::Model& model, const QuantizeOptions& options,
                              train::ExampleSource* calibration,
                              const engine::ExecutionOptions& execution,
                              const std::function<bool(std::int64_t)>& progress) {
  check_finite(model.graph, model.state);
  fold_batch_norms(model.graph, model.state);
  const io::Model original = model;
  const Insertion insertion = insert_quantizers(model.graph, model.state, options.rules);
  QuantizeResult result{.quantizers = insertion.quantizers,
                        .unused_rules = insertion.unused,
                        .notes = {},
                        .observations = {}};
  if (insertion.quantizers == 0) fail("the rules give no tensor of the model a format");
  if (calibration == nullptr && (options.corrects_bias || options.uses_gptq))
    fail("{} needs data to calibrate on, and there is none",
         options.uses_gptq ? "GPTQ" : "bias correction");
  if (calibration == nullptr && needs_calibration(model.graph))
    throw UserError(
        "scales of activations are measured on data, and there is none",
        "calibrate D gives some; formats that make their own scales, such as mxint:8 or "
        "int:8,dynamic, need none");
  set_parameter_scales(model.graph, model.state, options.parameter_range);
  if (calibration == nullptr) return result;

  result.observations =
      observe_activations(model, *calibration, options.calibration_examples, execution, progress);
  set_activation_scales(model.graph, model.state, result.observations, options.activation_range);
  const auto take_notes = [&](std::vector<std::string> notes) {
    result.notes.insert(result.notes.end(), notes.begin(), notes.end());
  };
  if (options.uses_gptq)
    take_notes(apply_gptq(model, measure_input_products(original, *calibration,
                                                        options.calibration_examples, execution)));
  if (options.corrects_bias)
    take_notes(correct_biases(original, model, *calibration, options.calibration_examples,
                              execution, options.parameter_range));
  return result;
}

}  // namespace lathe::compress
