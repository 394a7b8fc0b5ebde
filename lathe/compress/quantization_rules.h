#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/compress/layer_match.h"

/// Which numbers a model is to be made of: rules that name layers and give a format to each kind of
/// tensor. The first rule that matches a layer is the one that counts.
namespace lathe::compress {

/// The tensors of a layer that can have a format of their own.
enum class TensorRole {
  Weights,
  Bias,
  Inputs,
  Outputs,
  Embeddings,
  Attention,         ///< queries, keys and values
  AttentionWeights,  ///< the softmax of the scores, which multiplies the values
};
inline constexpr std::array kTensorRoles{
    TensorRole::Weights,    TensorRole::Bias,      TensorRole::Inputs,          TensorRole::Outputs,
    TensorRole::Embeddings, TensorRole::Attention, TensorRole::AttentionWeights};
/// "weights", "bias", "inputs", "outputs", "embeddings", "attention", "attention_weights".
std::string_view name(TensorRole role);

/// Fails unless the text is a format, and one that tensors of the role can have as far as that can
/// be known without a model.
void check_format(TensorRole role, std::string_view format);

/// Formats by role; what is absent stays as it is.
using RoleFormats = std::map<TensorRole, std::string>;

struct QuantizationRule {
  using By = MatchBy;
  By by = By::Any;
  std::string match = {};  ///< an op, a node's name, or a pattern
  RoleFormats formats = {};
  std::string place = {};  ///< where it was written, for messages

  bool matches(std::string_view op, std::string_view layer) const;
};

/// Reads rules from TOML:
///
///     [[rule]]
///     by = "regex"                # type, name or regex
///     match = "layer\\.0\\."
///     weights = "int:8,channel"
///     inputs = "float"
///     [default]
///     weights = "int:4,channel"
///
/// The keys of MASE are understood as well: `by` at the top, then a table for each type, name or
/// pattern with `name = "integer"`, `data_in_width`, `weight_frac_width` and so on, bare or inside
/// `config`. Every format is checked. `source` names the file in messages.
std::vector<QuantizationRule> parse_quantization_rules(std::string_view text,
                                                       const std::string& source);

}  // namespace lathe::compress
