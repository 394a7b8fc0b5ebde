#include "lathe/search/smallest_candidate.h"

#include <algorithm>

#include "lathe/core/number_format.h"
#include "lathe/search/builder_sizes.h"
#include "lathe/search/model_choices.h"

namespace lathe::search {
namespace {

// Of a weight of usual size, scales included.
double bits_of(const std::string& format) {
  constexpr std::int64_t kRows = 128, kColumns = 128;
  const auto parsed = format == "float" ? nullptr : parse_format(format);
  return parsed == nullptr ? 32 : parsed->bits_per_element(kRows, kColumns);
}

std::string smallest_format(const TensorChoices& tensors) {
  std::string smallest;
  for (const FormatChoices& family : tensors.families)
    for (const std::string& format : family.formats)
      if (smallest.empty() || bits_of(format) < bits_of(smallest)) smallest = format;
  return smallest;
}

Attributes smallest_encoder(const ArchitectureSpace& space) {
  Attributes result;
  if (!space.layers.empty()) result["num_hidden_layers"] = std::ranges::min(space.layers);
  if (!space.intermediate.empty())
    result["intermediate_size"] = std::ranges::min(space.intermediate);
  std::vector<std::int64_t> hidden = values_or_default(space, space.hidden, "hidden_size");
  std::ranges::sort(hidden);
  const std::vector<std::int64_t> heads =
      values_or_default(space, space.heads, "num_attention_heads");
  for (const std::int64_t size : hidden) {
    const auto fits = std::ranges::find_if(heads, [&](auto count) { return size % count == 0; });
    if (fits == heads.end()) continue;
    result["hidden_size"] = size;
    result["num_attention_heads"] = *fits;
    break;
  }
  if (std::ranges::find(space.projections, "identity") == space.projections.end()) return result;
  std::string identities = "pooler";
  const std::int64_t layers =
      std::ranges::min(values_or_default(space, space.layers, "num_hidden_layers"));
  for (std::int64_t layer = 0; layer < layers; ++layer)
    for (const char* const projection : {"query", "key", "value", "output"})
      identities += fmt::format(",{}.{}", layer, projection);
  result["lathe_identity_projections"] = identities;
  return result;
}

// Of encoders the one that has the least of everything; of models that are named all, since what
// their sizes do is theirs to know.
std::vector<Attributes> smallest_architectures(const CandidateSpace& candidates) {
  const ArchitectureSpace& space = candidates.space().architecture;
  if (has_encoder_sizes(space)) return {smallest_encoder(space)};
  if (!has_variables(space)) return {Attributes{}};
  std::vector<Attributes> result;
  for (const std::string& model : candidates.models())
    result.push_back(named_builder(model).config);
  return result;
}

}  // namespace

std::vector<Candidate> smallest_candidates(const CandidateSpace& space) {
  const SearchSpace& choices = space.space();
  Candidate candidate;
  if (choices.precision)
    for (const std::string& layer : space.layers())
      for (const TensorChoices& tensors : choices.precision->tensors)
        for (const compress::TensorRole role : tensors.roles)
          candidate.formats[layer][role] = smallest_format(tensors);
  if (choices.pruning)
    for (const std::string& layer : space.pruned())
      candidate.pruning[layer].sparsity = std::ranges::max(choices.pruning->sparsity);
  std::vector<Candidate> result;
  for (Attributes& architecture : smallest_architectures(space)) {
    candidate.architecture = std::move(architecture);
    result.push_back(candidate);
  }
  return result;
}

}  // namespace lathe::search
