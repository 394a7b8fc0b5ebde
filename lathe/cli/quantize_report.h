#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lathe/compress/quantization_report.h"
#include "lathe/compress/quantize_model.h"
#include "lathe/report/table.h"

namespace lathe::cli {

/// How a model does with one layer rounded at a time, the most sensitive first.
struct Sensitivity {
  double loss = 0;  ///< of the float model
  std::vector<compress::LayerSensitivity> layers;
};

/// The rounded tensors, and the layers by what rounding them alone costs, as tables.
report::Table tensor_table(const std::vector<compress::TensorReport>& tensors);
report::Table sensitivity_table(const Sensitivity& sensitivity);

/// Both as an HTML page, with a histogram of the values that each quantizer rounds.
std::string quantize_page(const std::string& title, const Graph& graph, const State& state,
                          const compress::QuantizeResult& result,
                          const std::vector<compress::TensorReport>& tensors,
                          const std::optional<Sensitivity>& sensitivity);

}  // namespace lathe::cli
