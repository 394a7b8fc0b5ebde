#pragma once

#include <string>
#include <vector>

#include "lathe/models/encoder_layer.h"
#include "lathe/models/family.h"

namespace lathe::models {

/// What the configurations of BERT, RoBERTa and ELECTRA say alike.
struct BertConfig {
  std::int64_t vocabulary, hidden, layers, heads, intermediate, positions, types, padding;
  double hidden_dropout, attention_dropout, classifier_dropout, eps, initializer_range;
  std::string activation;
  bool is_decoder, is_tied;

  /// Fails on what no model can have, or none that is built here.
  explicit BertConfig(const AttributeReader& config);

  EncoderSizes layer_sizes() const;
  /// The embeddings under `prefix`, which ends in a dot.
  BertEmbeddings embeddings(const std::string& prefix) const;
};

/// What `ModelFamily::read_sizes` finds in a graph whose parts have BERT's names behind `prefix`.
Attributes bert_sizes_of(const Graph& graph, const std::string& prefix);

/// The keys of such a configuration, with BERT's defaults or those given instead.
std::vector<AttributeSpec> bert_config_keys(const Attributes& other_defaults = {});

}  // namespace lathe::models
