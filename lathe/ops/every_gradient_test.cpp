#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "lathe/ops/example.h"
#include "lathe/ops/run_reference.h"

// Walks the registry: the gradient rule of every differentiable op agrees with central differences
// of its reference kernel, on all of its examples.
namespace lathe::ops {
namespace {

// The loss is L = sum of weights * results, in double. A central difference with step h is wrong by
//   h^2 / 6 * |L'''| + 2^-52 * |L| * (operations) / h.
// Inputs lie in [0.25, 1.25], where third derivatives stay below 10^4 (those of 1/x and log are at
// most 1536 at 0.25; normalisations divide by small deviations), and L sums below 10^3 terms of
// order 1: with h = 2^-17 the two parts are below 10^-7 and 10^-7.
constexpr double kStep = 0x1p-17;
constexpr double kTolerance = 2e-7;

std::string in_double(std::string text) {
  for (std::size_t at = text.find("f32"); at != std::string::npos; at = text.find("f32", at))
    text.replace(at, 3, "f64");
  return text;
}

// What rounds to a number format is a staircase by intent: its gradient is a stand-in, and no
// difference quotient would find it.
bool is_staircase(std::string_view example) {
  return example.starts_with("quantize(") || example.find("weight_format") != example.npos;
}

bool is_smooth(const Example& example) {
  const std::vector<Type>& types = example.graph.types(example.node);
  // What is rounded to fewer bits is a staircase; integers have no gradient.
  return std::all_of(types.begin(), types.end(),
                     [](const Type& type) { return type.dtype == DType::F64; });
}

double loss(const Example& example, const std::vector<Tensor>& inputs,
            const std::vector<Tensor>& weights) {
  const std::vector<Tensor> results = evaluate(example, inputs);
  double sum = 0;
  for (std::size_t r = 0; r < results.size(); ++r)
    for (std::int64_t i = 0; i < results[r].num_elements(); ++i)
      sum += results[r].at(i) * weights[r].at(i);
  return sum;
}

Tensor differences(const Example& example, std::vector<Tensor> inputs, std::size_t input,
                   const std::vector<Tensor>& weights) {
  Tensor result(DType::F64, inputs[input].dims());
  for (std::int64_t i = 0; i < result.num_elements(); ++i) {
    const auto element = static_cast<std::size_t>(i);
    const double x = inputs[input].at(i);
    inputs[input].mutable_data<double>()[element] = x + kStep;
    const double above = loss(example, inputs, weights);
    inputs[input].mutable_data<double>()[element] = x - kStep;
    const double below = loss(example, inputs, weights);
    inputs[input].mutable_data<double>()[element] = x;
    result.mutable_data<double>()[element] = (above - below) / (2 * kStep);
  }
  return result;
}

// The values of all nodes, by reference kernels; those of inputs are given.
std::map<NodeId, std::vector<Tensor>> run(const Graph& graph,
                                          std::map<NodeId, std::vector<Tensor>> values) {
  for (const NodeId id : graph.topological_order()) {
    if (values.contains(id)) continue;
    std::vector<const Tensor*> operands;
    for (const Value& value : graph.inputs(id))
      operands.push_back(value.is_none()
                             ? nullptr
                             : &values.at(value.node)[static_cast<std::size_t>(value.index)]);
    values[id] = run_reference(graph, id, operands, example_symbols());
  }
  return values;
}

bool is_finite(const std::vector<Tensor>& results) {
  for (const Tensor& result : results)
    for (std::int64_t i = 0; i < result.num_elements(); ++i)
      if (!std::isfinite(result.at(i))) return false;
  return true;
}

// Roots, logarithms and powers have no value for negative numbers, batch_norm takes a variance.
bool needs_positive_operands(std::string_view op) {
  static const std::set<std::string_view> ops = {"batch_norm", "log", "pow", "rsqrt", "sqrt"};
  return ops.contains(op);
}

void compare_with_differences(const std::string& text, ValueRange range) {
  Example example = parse_example(text);
  const std::vector<Tensor> inputs = random_inputs(example, 1, range);
  ASSERT_TRUE(is_finite(evaluate(example, inputs)));

  const Example original = example;
  Graph& graph = example.graph;
  std::map<NodeId, std::vector<Tensor>> values;
  for (std::size_t i = 0; i < inputs.size(); ++i) values[example.inputs[i]] = {inputs[i]};
  std::vector<Value> result_gradients;
  std::vector<Tensor> weights;
  for (const Type& type : std::vector<Type>(graph.types(example.node))) {
    const NodeId id = graph.add({.name = "dy", .op = "input", .inputs = {}, .types = {type}});
    Tensor weight(DType::F64, type.dims(example_symbols()));
    for (std::int64_t i = 0; i < weight.num_elements(); ++i)
      weight.mutable_data<double>()[static_cast<std::size_t>(i)] =
          std::cos(1.7 * static_cast<double>(i) + static_cast<double>(weights.size()));
    result_gradients.push_back({id, 0});
    weights.push_back(weight);
    values[id] = {weight};
  }

  const std::vector<Value> gradients =
      graph.op(example.node).gradient(graph, example.node, result_gradients);
  ASSERT_NO_THROW(verify(graph));
  ASSERT_EQ(gradients.size(), graph.inputs(example.node).size());
  values = run(graph, std::move(values));

  std::size_t input = 0;
  for (std::size_t operand = 0; operand < gradients.size(); ++operand) {
    if (graph.input(example.node, operand).is_none()) {
      EXPECT_TRUE(gradients[operand].is_none());
      continue;
    }
    const std::size_t index = input++;
    SCOPED_TRACE(fmt::format("operand {}", operand));
    if (inputs[index].dtype() != DType::F64) {
      EXPECT_TRUE(gradients[operand].is_none());
      continue;
    }
    const Tensor expected = differences(original, inputs, index, weights);
    Tensor actual(DType::F64, expected.dims());  // none: zeros
    if (!gradients[operand].is_none())
      actual =
          values.at(gradients[operand].node).at(static_cast<std::size_t>(gradients[operand].index));
    ASSERT_EQ(actual.dims(), expected.dims());
    ASSERT_EQ(actual.dtype(), DType::F64);
    for (std::int64_t i = 0; i < expected.num_elements(); ++i)
      EXPECT_NEAR(actual.at(i), expected.at(i),
                  kTolerance * std::max(1.0, std::fabs(expected.at(i))))
          << "element " << i;
  }
}

class EveryGradient : public testing::TestWithParam<std::string> {
 protected:
  const Op& op() const { return OpRegistry::instance().at(GetParam(), "op"); }
};

TEST_P(EveryGradient, IsThereIfTheOpIsDifferentiable) {
  EXPECT_EQ(static_cast<bool>(op().gradient), op().is_differentiable);
}

TEST_P(EveryGradient, AgreesWithDifferencesOfTheReferenceKernel) {
  if (!op().gradient) return;
  for (const std::string& example : op().examples) {
    const std::string text = in_double(example);
    SCOPED_TRACE(text);
    if (is_staircase(text) || !is_smooth(parse_example(text))) continue;
    // Both ranges stay away from 0, where relu and its relatives have their kinks.
    compare_with_differences(text, {.low = 0.25, .high = 1.25});
    const ValueRange negative{.low = -1.25, .high = -0.25};
    if (needs_positive_operands(GetParam())) {
      const Example call = parse_example(text);
      EXPECT_FALSE(is_finite(evaluate(call, random_inputs(call, 1, negative))));
    } else {
      compare_with_differences(text, negative);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryGradient, testing::ValuesIn(OpRegistry::instance().names()),
                         [](const auto& op) { return op.param; });

}  // namespace
}  // namespace lathe::ops
