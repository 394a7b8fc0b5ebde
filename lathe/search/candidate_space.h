#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lathe/core/attribute.h"
#include "lathe/search/search_space.h"
#include "lathe/study/samplers/sampler.h"

namespace lathe::search {

/// What of a layer's weights goes; an empty text leaves the method's usual.
struct LayerPruning {
  double sparsity = 0;
  std::string method = {}, granularity = {};
  bool operator==(const LayerPruning&) const = default;
};

/// A point of a space: all that a trial's model is made from, besides data and seed.
struct Candidate {
  Attributes architecture = {};  ///< keys of the configuration
  /// By layer; by a pattern of them where all choose alike.
  std::map<std::string, compress::RoleFormats> formats = {};
  std::map<std::string, LayerPruning> pruning = {};  ///< the same
  nlohmann::json recipe = nlohmann::json::object();  ///< options of training
  bool operator==(const Candidate&) const = default;

  bool is_compressed() const { return !formats.empty() || !pruning.empty(); }
};
nlohmann::json to_json(const Candidate& candidate);
/// What it is in a line: sizes, formats of weights with how many layers have them, options.
std::string candidate_text(const Candidate& candidate);

/// A space as samplers see it, and what their points stand for.
class CandidateSpace {
 public:
  /// `layers` are those of the model that choose a format, `pruned` those that choose a sparsity.
  /// Where models have different layers there are none to name, and all choose alike. Fails where
  /// `check_space` does.
  explicit CandidateSpace(SearchSpace space, std::vector<std::string> layers = {},
                          std::vector<std::string> pruned = {});

  const SearchSpace& space() const { return space_; }
  /// The models that the space stands for, of which a point chooses one.
  const std::vector<std::string>& models() const { return models_; }
  const std::vector<std::string>& layers() const { return layers_; }
  const std::vector<std::string>& pruned() const { return pruned_; }
  /// The parameter that chooses the family of a layer's tensors.
  std::string precision_name(const std::string& layer, const TensorChoices& tensors) const;
  /// A parameter for everything that has more than one value.
  const study::Space& parameters() const { return parameters_; }
  /// Whether a point, or what is known of one so far, can be built: heads divide the hidden size,
  /// formats exist.
  bool is_possible(const study::Assignment& point) const;
  /// What a point stands for; nothing where something is not decided yet.
  std::optional<Candidate> find_candidate(const study::Assignment& point) const;
  /// The same for a point that a study gave.
  Candidate candidate(const study::Assignment& point) const;
  /// Points that give all layers the same formats, one for each combination of them; what else
  /// there is to choose is left open.
  std::vector<std::vector<std::pair<std::string, study::Choice>>> uniform_points() const;
  /// The same of the formats that are there to compare with alone, which no point has. Fails where
  /// anything but formats is left to choose.
  std::vector<Candidate> uniform_candidates() const;

 private:
  SearchSpace space_;
  std::vector<std::string> models_, layers_, pruned_;
  study::Space parameters_;
};

}  // namespace lathe::search
