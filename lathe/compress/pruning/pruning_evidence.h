#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lathe/compress/pruning/pruning_plan.h"
#include "lathe/engine/executor.h"
#include "lathe/io/model.h"
#include "lathe/train/example_source.h"

namespace lathe::compress {

/// What data says about weights, by state (see ScoringInput).
using WeightProducts = std::map<std::string, std::vector<double>>;
using TableLookups = std::map<std::string, std::vector<std::int64_t>>;

/// The products of what the layers of every weight of a group read, summed over the layers that
/// share it. Fails naming a layer that does not multiply rows with its weight, and a weight that is
/// a table.
WeightProducts measure_weight_products(const io::Model& model, const PruningGroup& group,
                                       train::ExampleSource& examples, std::int64_t num_examples,
                                       const engine::ExecutionOptions& execution);

/// How often each row of a group's tables is looked up in all the examples. What the tokenizer
/// itself writes (the start of a text, an unknown word) counts as looked up. `progress` hears of
/// the examples done and may stop the work by returning false, which throws Interrupted.
TableLookups count_lookups(const io::Model& model, const PruningGroup& group,
                           train::ExampleSource& examples,
                           const std::function<bool(std::int64_t)>& progress = {});

}  // namespace lathe::compress
