#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lathe/ops/example.h"

// Walks the registry, so that an op is covered from the day its file is added.
namespace lathe::ops {
namespace {

class EveryOp : public testing::TestWithParam<std::string> {
 protected:
  const Op& op() const { return OpRegistry::instance().at(GetParam(), "op"); }
};

TEST_P(EveryOp, SaysWhatItIs) {
  EXPECT_FALSE(op().summary.empty());
  EXPECT_GE(op().examples.size(), 1u);
  EXPECT_TRUE(op().infer);
  EXPECT_TRUE(op().flops);
  EXPECT_EQ(static_cast<bool>(op().reference), !op().is_source);
  for (const AttributeSpec& attribute : op().attributes)
    EXPECT_FALSE(attribute.summary.empty()) << attribute.name;
}

TEST_P(EveryOp, InfersTheTypesOfItsExamples) {
  for (const std::string& text : op().examples) {
    SCOPED_TRACE(text);
    const Example example = parse_example(text);
    EXPECT_EQ(example.graph.op(example.node).name, GetParam());
    EXPECT_NO_THROW(verify(example.graph));
    EXPECT_GE(op().flops(example.graph.call(example.node)).evaluate(example_symbols()), 0);
  }
}

TEST_P(EveryOp, ProducesTheShapesItInfers) {
  if (op().is_source) return;
  for (const std::string& text : op().examples) {
    SCOPED_TRACE(text);
    const Example example = parse_example(text);
    // Positive numbers are in the domain of every op, so that all results are finite.
    const std::vector<Tensor> results =
        evaluate(example, random_inputs(example, 1, {.low = 0.25, .high = 1.25}));
    const std::vector<Type>& types = example.graph.types(example.node);
    ASSERT_EQ(results.size(), types.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      EXPECT_EQ(results[i].dims(), types[i].dims(example_symbols()));
      EXPECT_EQ(results[i].dtype(), types[i].dtype);
      for (std::int64_t n = 0; n < results[i].num_elements(); ++n)
        EXPECT_TRUE(std::isfinite(results[i].at(n))) << "result " << i << ", element " << n;
    }
  }
}

TEST_P(EveryOp, GivesTheSameResultWithSwappedOperandsIfCommutative) {
  if (!op().is_commutative) return;
  const Example example = parse_example(op().examples[0]);
  const std::vector<Tensor> inputs = random_inputs(example, 2);
  ASSERT_EQ(inputs.size(), 2u);
  EXPECT_TRUE(
      identical(evaluate(example, inputs)[0], evaluate(example, {inputs[1], inputs[0]})[0]));
}

TEST_P(EveryOp, ReturnsItsOperandIfIdentityInInference) {
  if (!op().is_identity_in_inference) return;
  const Example example = parse_example(op().examples[0]);
  const std::vector<Tensor> inputs = random_inputs(example, 3);
  EXPECT_TRUE(identical(evaluate(example, inputs)[0], inputs[0]));
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryOp, testing::ValuesIn(OpRegistry::instance().names()),
                         [](const auto& op) { return op.param; });

}  // namespace
}  // namespace lathe::ops
