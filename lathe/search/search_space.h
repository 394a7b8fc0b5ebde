#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lathe/compress/quantization_rules.h"
#include "lathe/study/distribution.h"

/// Searches over what a network is and what its numbers are: spaces in a user's words, the trials
/// that build and train a point, and what comes of them.
namespace lathe::search {

/// Encoders that differ from a builder's in sizes and kinds, where an empty list leaves what the
/// builder has; or models of any family that are written with their sizes.
struct ArchitectureSpace {
  /// A builder. With variables in braces it stands for as many: cnn:1x28x28,c{filters}k5,m2,10.
  std::string model = "bert-tiny";
  std::map<std::string, std::vector<study::Choice>> variables = {};  ///< their values
  // Of a builder of the family bert alone.
  std::vector<std::int64_t> layers = {}, heads = {}, hidden = {}, intermediate = {};
  std::vector<std::string> activation = {};  ///< gelu, relu, ...
  std::vector<std::string> norm = {};        ///< post, pre
  /// Each square projection chooses: linear, identity.
  std::vector<std::string> projections = {};
};

/// Formats of one kind, such as all fixed-point numbers of some widths.
struct FormatChoices {
  std::string name = {};    ///< what the space calls them: integer
  std::string format = {};  ///< with variables in braces: fixed:{width},{fraction}
  std::map<std::string, std::vector<study::Choice>> variables = {};  ///< their values
  std::vector<std::string> formats = {};  ///< those that exist, of all combinations
};

/// Tensors of a layer that share a format, and the formats they choose from.
struct TensorChoices {
  std::string name = {};  ///< weights, data; empty where a layer's tensors all share one
  std::vector<compress::TensorRole> roles = {};
  std::vector<FormatChoices> families = {};
};

/// A format for each layer of a model.
struct PrecisionSpace {
  std::string layers = ".*";  ///< pattern of the layers that choose; others stay float
  std::vector<TensorChoices> tensors = {};
  /// Formats to compare with alone: all layers have one or none. They are of weights where data
  /// have formats of their own.
  std::vector<FormatChoices> uniform = {};
};

/// How much of each layer's weights goes, and by what. An empty list leaves the method's usual.
struct PruningSpace {
  std::string layers = ".*";          ///< pattern of the layers that choose; others stay whole
  std::vector<double> sparsity = {};  ///< 0: the layer stays whole
  std::vector<std::string> method = {}, granularity = {};
};

/// Everything that a trial may choose. Parts that are absent stay as they are.
struct SearchSpace {
  ArchitectureSpace architecture = {};
  std::optional<PrecisionSpace> precision = {};
  std::optional<PruningSpace> pruning = {};
  /// Options of training by their names (run_record.h): lr, epochs, batch-size. `epochs-after` are
  /// those behind the compression of a model that is trained before it; `own-weight` is that of
  /// its own answers before it, as of a teacher's.
  std::map<std::string, study::Distribution> recipe = {};
};

/// Fails, naming the part, unless the space has points and all names in it exist.
void check_space(const SearchSpace& space);

/// Options of training that a space may choose.
const std::vector<std::string>& recipe_options();
inline constexpr const char* kEpochsAfter = "epochs-after";
inline constexpr const char* kOwnWeight = "own-weight";

}  // namespace lathe::search
