#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lathe/models/encoder_layer.h"
#include "lathe/models/family.h"

namespace lathe::models {

/// What both versions of DeBERTa (He et al. 2021) say alike.
struct DebertaConfig {
  std::int64_t vocabulary, hidden, width, layers, positions, types;
  std::int64_t max_relative;  ///< the longest distance that has a row of its own, at most
  double classifier_dropout, pooler_dropout, initializer_range;
  std::string pooler_activation;
  bool has_positions;            ///< whether embeddings tell them, too
  bool by_content, by_position;  ///< how distances would be scored: with queries, with keys
  bool is_relative;              ///< whether they are
  bool is_tied;    ///< whether tokens are predicted by the table that they are looked up in
  bool is_legacy;  ///< how the layers that predict them are called, and whether they narrow first
  EncoderSizes sizes;

  /// Fails on what no model can have, or none that is built here.
  explicit DebertaConfig(const AttributeReader& config);
  /// Of the scores: they are a sum of up to three.
  double scale() const;
};

/// The keys that both read, with defaults of their own for some.
std::vector<AttributeSpec> deberta_config_keys(const Attributes& other_defaults);

/// What an attention reads of distances.
struct RelativePositions {
  Value keys = kNone, queries = kNone;  ///< rows for the distances, [2 * span, hidden]
  std::int64_t buckets = 0, max_distance = 0;
};

/// What a version makes of the tokens that a layer reads: queries, keys and values, and positions
/// where attention is relative.
struct DebertaProjections {
  Value query, key, value;
  RelativePositions positions;
};
using MakeProjections = std::function<DebertaProjections(const std::string& self, Value x)>;

/// Embeddings, layers that attend by these projections, and what the task needs behind them.
void build_deberta(ModuleBuilder& builder, const DebertaConfig& model, const BuildOptions& options,
                   const MakeProjections& project);

/// The tasks of a version, whose classes begin with `name`.
std::vector<TaskRecord> deberta_tasks(const std::string& name);

/// How both versions' files are laid out.
TensorNaming deberta_naming();

}  // namespace lathe::models
