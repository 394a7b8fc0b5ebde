#pragma once

#include <map>
#include <string>
#include <vector>

#include "lathe/engine/executor.h"
#include "lathe/io/model.h"
#include "lathe/train/example_source.h"

namespace lathe::compress {

/// The mean of x x^T over the rows x that the layer of that name reads: k x k, row by row.
using InputProducts = std::map<std::string, std::vector<double>>;

/// Runs the model on data, without rounding anything, and measures what its layers read. Layers
/// whose results are not rows of their inputs times the weight (convolutions) are left out.
InputProducts measure_input_products(const io::Model& model, train::ExampleSource& examples,
                                     std::int64_t num_examples,
                                     const engine::ExecutionOptions& execution);

}  // namespace lathe::compress
