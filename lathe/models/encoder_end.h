#pragma once

#include <functional>

#include "lathe/models/encoder_layer.h"
#include "lathe/models/family.h"

namespace lathe::models {

/// What a family puts behind its encoder, task by task.
struct EncoderEnd {
  /// Logits of a text, of what the last layer gives for its tokens.
  std::function<Value(Value)> classify;
  double token_dropout = 0;  ///< before the labels of tokens
  /// Predicts tokens, for `mlm` and `causal-lm`.
  LanguageHead language;
};

/// Adds what the task needs behind the encoder's last layer and names the graph's output: `logits`,
/// or `last_hidden_state` for `encode`.
void end_encoder(ModuleBuilder& builder, const EncoderEnd& end, const BuildOptions& options,
                 Value x);

}  // namespace lathe::models
