#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/core/graph.h"

namespace lathe::models {

/// Adds the layers that transformer families share, named after their module path:
/// `linear("encoder.0.query", ...)` makes that node and its states `.weight` and `.bias`.
class ModuleBuilder {
 public:
  /// Fresh weights are normal with this standard deviation. Without one, weights and biases of
  /// linears are uniform up to 1 / sqrt(inputs), as PyTorch's are: small layers then do something.
  ModuleBuilder(Graph& graph, std::optional<double> initializer_range)
      : graph_(graph), initializer_range_(initializer_range) {}

  Value input(const std::string& name, Type type);
  /// A state, or the one of that name that is there already (tied weights are one slot). `scale` is
  /// the bound of "uniform"; "normal" has the builder's.
  Value state(const std::string& name, Shape shape, std::string init, double scale = 0);
  Value add(std::string name, std::string op, std::vector<Value> inputs,
            Attributes attributes = {});
  Value linear(const std::string& name, Value x, std::int64_t outputs, bool has_bias = true);
  Value embedding(const std::string& name, Value ids, std::int64_t rows, std::int64_t width);
  Value layer_norm(const std::string& name, Value x, double eps);
  Value rms_norm(const std::string& name, Value x, double eps);
  /// Scales and shifts channels, with the statistics that training measures as buffers
  /// `.running_mean` and `.running_var`.
  Value batch_norm(const std::string& name, Value x, double eps);
  /// The activation that a configuration calls `function` under `key`, in Hugging Face's words.
  Value activation(const std::string& name, std::string_view key, const std::string& function,
                   Value x);
  /// A dropout node with a site of its own, even at rate 0: the node is part of the architecture.
  Value dropout(const std::string& name, Value x, double rate);
  /// The next number for a place that drops elements.
  std::int64_t next_site() { return next_site_++; }
  Graph& graph() { return graph_; }

 private:
  Graph& graph_;
  std::optional<double> initializer_range_;
  std::int64_t next_site_ = 0;
};

}  // namespace lathe::models
