#pragma once

#include <vector>

#include "lathe/compress/quantization_report.h"
#include "lathe/engine/executor.h"
#include "lathe/experiment/callbacks.h"
#include "lathe/experiment/quantize.h"
#include "lathe/io/model.h"
#include "lathe/train/example_source.h"

namespace lathe::experiment {

/// How a classifier does with one layer rounded at a time, the most sensitive first.
struct Sensitivity {
  double loss = 0, accuracy = 0;  ///< of the float model
  std::vector<compress::LayerSensitivity> layers;
};

/// Measures a quantized classifier layer by layer: all others compute as in the float model
/// `original`.
Sensitivity measure_sensitivity(const io::Model& original, const io::Model& quantized,
                                train::ExampleSource& examples,
                                const engine::ExecutionOptions& execution,
                                const Callbacks& callbacks = {});
/// The same on so many examples of the data that the model was calibrated on.
Sensitivity measure_sensitivity(const io::Model& original, const io::Model& quantized,
                                const QuantizeOptions& options, std::int64_t examples,
                                const engine::ExecutionOptions& execution,
                                const Callbacks& callbacks = {});

}  // namespace lathe::experiment
