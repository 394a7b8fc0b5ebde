#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "lathe/core/differentiate.h"
#include "lathe/core/graph_text.h"
#include "lathe/engine/executor.h"
#include "lathe/train/find_loss.h"

namespace lathe::train {

/// Compares the gradient of a graph's summed loss with central differences, in double, for every
/// `stride`-th element of some states.
///
/// With step h a difference is wrong by h^2 / 6 * |L'''| + 2^-52 * |L| * (operations) / h. The
/// models of these tests have weights within -1 and 1, losses of order 10, third derivatives below
/// 10^5 and some 10^4 operations that add: with h = 2^-17 both parts are below 2e-6.
class GradientCheck {
 public:
  GradientCheck(const Graph& graph, const State& state, const Feed& feed)
      : graph_(parse_graph(in_double(print(graph)))) {
    for (const auto& [name, tensor] : state) state_[name] = in_double(tensor);
    for (const auto& [name, tensor] : feed) feed_[name] = in_double(tensor);
    loss_ = find_loss(graph_).sum;
    for (const auto& [name, value] : std::vector(graph_.outputs())) graph_.remove_output(name);
  }

  double loss() { return loss_with(state_); }

  void expect_gradient(const std::string& name, std::int64_t stride = 1) {
    SCOPED_TRACE(name);
    Graph graph = graph_;
    const std::vector<Value> targets{{graph.at(name), 0}};
    const Value gradient = differentiate(graph, loss_, targets)[0];
    ASSERT_FALSE(gradient.is_none()) << "the loss does not depend on it";
    graph.set_output("gradient", gradient);
    const Tensor got =
        engine::make_executor(graph, state_, {.device = "reference"})->run(feed_).at("gradient");
    constexpr double kStep = 0x1p-17;
    State moved = state_;
    double largest = 0;
    for (std::int64_t i = 0; i < got.num_elements(); i += stride) {
      double& element = moved.at(name).mutable_data<double>()[static_cast<std::size_t>(i)];
      const double x = element;
      element = x + kStep;
      const double above = loss_with(moved);
      element = x - kStep;
      const double below = loss_with(moved);
      element = x;
      EXPECT_NEAR(got.at(i), (above - below) / (2 * kStep), 4e-6) << "element " << i;
      largest = std::max(largest, std::abs(got.at(i)));
    }
    EXPECT_GT(largest, 1e-4) << "nothing to see";
  }

 private:
  static std::string in_double(std::string text) {
    for (std::size_t at = text.find("f32"); at != std::string::npos; at = text.find("f32", at))
      text.replace(at, 3, "f64");
    return text;
  }
  static Tensor in_double(const Tensor& tensor) {
    return tensor.dtype() == DType::F32 ? tensor.converted(DType::F64) : tensor;
  }
  double loss_with(const State& state) {
    Graph graph = graph_;
    graph.set_output("loss_sum", loss_);
    return engine::make_executor(graph, state, {.device = "reference"})
        ->run(feed_)
        .at("loss_sum")
        .at(0);
  }

  Graph graph_;
  State state_;
  Feed feed_;
  Value loss_;
};

}  // namespace lathe::train
