#pragma once

#include <string>

#include "lathe/models/module_builder.h"

namespace lathe::models {

/// What the layers of a transformer encoder have in common.
struct EncoderSizes {
  std::int64_t hidden = 0, heads = 0, intermediate = 0;
  double hidden_dropout = 0, attention_dropout = 0, eps = 0;
  std::string activation = {};
  std::string activation_key = "hidden_act";  ///< what the configuration calls it
  bool has_qkv_bias = true;                   ///< of queries, keys and values
  bool is_causal = false;
  bool is_pre_norm = false;  ///< norms before attention and feed-forward part, not behind them
};

/// By the keys of a configuration that BERT has and others kept.
EncoderSizes read_encoder_sizes(const AttributeReader& config);

/// What the parts of a layer are called. A part without a name is left out: what it would change
/// passes as it is.
struct EncoderNames {
  std::string query, key, value, attention;
  std::string output, output_dropout, output_add, output_norm;  ///< of the attention
  std::string wide, activation, narrow, narrow_dropout, narrow_add, narrow_norm;
};

/// The names that BERT gave to parts, and RoBERTa and ELECTRA kept: `prefix` ends in the layer's
/// number and a dot.
EncoderNames bert_layer_names(const std::string& prefix);

/// Attention and a feed-forward part, each added to what it reads (Vaswani et al. 2017).
Value encoder_layer(ModuleBuilder& builder, const EncoderSizes& sizes, const EncoderNames& names,
                    Value x, Value mask);

/// The feed-forward part of a layer whose norms stand behind what they normalize, added to what it
/// reads.
Value feed_forward_behind(ModuleBuilder& builder, const EncoderSizes& sizes,
                          const EncoderNames& names, Value attended);

/// Embeddings as BERT adds them up, (word + type) + position, normalized.
struct BertEmbeddings {
  std::string prefix;
  std::int64_t vocabulary = 0, positions = 0, types = 0, width = 0;
  double eps = 0, dropout = 0;
  std::int64_t first_position = 0;
};
Value bert_embeddings(ModuleBuilder& builder, const BertEmbeddings& sizes, Value ids);

/// The first token of each row, [B,L,H] to [B,H]: what classifiers of encoders look at.
Value first_token(ModuleBuilder& builder, const std::string& name, Value x);

/// A classifier of two linears on the first token, called `classifier` as in RoBERTa and ELECTRA.
Value first_token_classifier(ModuleBuilder& builder, const std::string& activation, double dropout,
                             std::int64_t hidden, std::int64_t num_labels, Value x);

/// Predicts tokens: a linear, an activation, a norm, and the product with a table that is usually
/// the embedding's.
struct LanguageHead {
  std::int64_t vocabulary = 0, width = 0;  ///< `width` of a row of the table
  double eps = 0;
  std::string activation = {}, activation_key = "hidden_act";
  std::string dense, activation_name, norm, decoder;  ///< names of the parts
  std::string table, bias;                            ///< names of the states
};
Value language_head(ModuleBuilder& builder, const LanguageHead& head, Value x);

}  // namespace lathe::models
