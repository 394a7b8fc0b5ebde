#include "lathe/models/encoder_end.h"

namespace lathe::models {

void end_encoder(ModuleBuilder& builder, const EncoderEnd& end, const BuildOptions& options,
                 Value x) {
  Graph& graph = builder.graph();
  if (options.task == "classify")
    graph.set_output("logits", end.classify(x));
  else if (options.task == "tokens")
    graph.set_output("logits",
                     builder.linear("classifier", builder.dropout("dropout", x, end.token_dropout),
                                    options.num_labels));
  else if (options.task == "mlm" || options.task == "causal-lm")
    graph.set_output("logits", language_head(builder, end.language, x));
  else
    graph.set_output("last_hidden_state", x);
}

}  // namespace lathe::models
