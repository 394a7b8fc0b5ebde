#include "lathe/core/copy_nodes.h"

#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/core/scalar_constant.h"

namespace lathe {
namespace {

TEST(NodeCopier, KeepsOperandsAttributesAndTypes) {
  const Graph from = parse_graph(R"(
    x = input() : f32[B,4]
    y = scale(x) {by=2.0}
    z = add(y, x)
  )");
  Graph to = parse_graph("input_ids = input() : f32[B,4]\ny = relu(input_ids)");
  NodeCopier copier(from, to);
  copier.map({from.at("x"), 0}, {to.at("input_ids"), 0});
  copier.copy(from.at("y"), "y");
  const NodeId z = copier.copy(from.at("z"), "sum");

  EXPECT_EQ(print(to, z), "sum = add(y_2, input_ids) : f32[B,4]");
  EXPECT_EQ(print(to, "y_2"), "y_2 = scale(input_ids) {by=2.0} : f32[B,4]");
}

}  // namespace
}  // namespace lathe
