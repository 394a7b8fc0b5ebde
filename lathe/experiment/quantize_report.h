#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lathe/experiment/quantize_summary.h"
#include "lathe/experiment/sensitivity.h"
#include "lathe/report/table.h"

namespace lathe::experiment {

/// The rounded tensors, and the layers by what rounding them alone costs, as tables.
report::Table tensor_table(const std::vector<compress::TensorReport>& tensors);
report::Table sensitivity_table(const Sensitivity& sensitivity);

/// Both as an HTML page, with the sizes and a histogram of the values that each quantizer rounds:
/// the levels they are rounded to, and how many of them are clipped.
std::string quantize_page(const std::string& title, const Quantized& quantized,
                          const std::optional<Sensitivity>& sensitivity,
                          const QuantizeSummary& summary);

}  // namespace lathe::experiment
