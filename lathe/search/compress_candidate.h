#pragma once

#include "lathe/engine/executor.h"
#include "lathe/io/model.h"
#include "lathe/search/candidate_space.h"
#include "lathe/train/example_source.h"

namespace lathe::search {

/// Prunes a trained model and gives its layers formats as the candidate says; ranges are those of
/// the least squared error. Sparsity that a method chooses by data, and formats whose ranges data
/// show, need `calibration`.
void compress_candidate(io::Model& model, const Candidate& candidate,
                        train::ExampleSource* calibration, std::uint64_t seed,
                        const engine::ExecutionOptions& execution);

/// Whether what a candidate says of `name` is meant for a layer: its name, or a pattern where the
/// graph has no node of that name.
bool is_meant(const std::string& name, const Graph& graph, std::string_view layer);

}  // namespace lathe::search
