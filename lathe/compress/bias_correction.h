#pragma once

#include <string>
#include <vector>

#include "lathe/compress/range_rule.h"
#include "lathe/engine/executor.h"
#include "lathe/io/model.h"
#include "lathe/train/example_source.h"

namespace lathe::compress {

/// Adds to each layer's bias what its output lost on average by rounding, so that the means of both
/// models' outputs agree on the data. A bias that is rounded itself is corrected before it is
/// rounded, and its scale chosen anew by `range`.
///
/// Returns a line for each rounded layer that could not be corrected.
std::vector<std::string> correct_biases(const io::Model& original, io::Model& quantized,
                                        train::ExampleSource& examples, std::int64_t num_examples,
                                        const engine::ExecutionOptions& execution,
                                        const RangeRule& range = {});

}  // namespace lathe::compress
