#pragma once

#include <map>
#include <string>
#include <vector>

#include "lathe/data/tokenized_dataset.h"
#include "lathe/engine/executor.h"
#include "lathe/io/model.h"

/// What a model's linears see on data, and two corrections of rounded weights that follow from it.
namespace lathe::compress {

/// The mean of x x^T over the rows x that the linear of that name reads: k x k, row by row.
using InputProducts = std::map<std::string, std::vector<double>>;
InputProducts measure_input_products(const io::Model& model, const data::TokenizedDataset& dataset,
                                     std::int64_t num_examples,
                                     const engine::ExecutionOptions& execution);

/// GPTQ (Frantar et al. 2023): rounds the columns of each linear's weight one after another and
/// moves those that are still to come so that the output changes least. The weights become the
/// rounded ones.
void apply_gptq(io::Model& model, const InputProducts& products);

/// Adds to each linear's bias what its output lost on average by rounding, so that the means of
/// both models' outputs agree on the data. A bias that is rounded itself is left alone.
void correct_biases(const io::Model& original, io::Model& quantized,
                    const data::TokenizedDataset& dataset, std::int64_t num_examples,
                    const engine::ExecutionOptions& execution);

}  // namespace lathe::compress
