#pragma once

// For the tests of executors: graphs written as text with random states and inputs, and executors
// compared with the reference.

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <string_view>

#include "lathe/core/graph_text.h"
#include "lathe/engine/executor.h"

namespace lathe::engine {

/// Numbers in [-1, 1) for floats, 0 or 1 for integers; the same for the same generator.
inline Tensor random_tensor(DType dtype, std::vector<std::int64_t> dims, std::mt19937& random) {
  Tensor values(DType::F64, std::move(dims));
  for (double& value : values.mutable_data<double>())
    value = is_floating(dtype) ? static_cast<double>(random()) * 0x1p-31 - 1
                               : static_cast<double>(random() % 2);
  return values.converted(dtype);
}

inline State random_state(const Graph& graph, unsigned seed) {
  std::mt19937 random(seed);
  State state;
  for (const NodeId id : graph.nodes_of("state"))
    state[graph.name(id)] =
        random_tensor(graph.types(id)[0].dtype, graph.types(id)[0].dims({}), random);
  return state;
}

inline Feed random_feed(const Graph& graph, const SymbolValues& sizes, unsigned seed) {
  std::mt19937 random(seed);
  Feed feed;
  for (const NodeId id : graph.nodes_of("input"))
    feed[graph.name(id)] =
        random_tensor(graph.types(id)[0].dtype, graph.types(id)[0].dims(sizes), random);
  return feed;
}

/// Outputs of the same names, types and shapes, and every element within `tolerance` times one plus
/// its size.
inline void expect_near(const Feed& actual, const Feed& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [name, tensor] : expected) {
    ASSERT_TRUE(actual.contains(name)) << name;
    const Tensor& other = actual.at(name);
    ASSERT_EQ(other.dtype(), tensor.dtype()) << name;
    ASSERT_EQ(other.dims(), tensor.dims()) << name;
    for (std::int64_t i = 0; i < tensor.num_elements(); ++i) {
      const double a = other.at(i), b = tensor.at(i);
      if (std::isnan(a) && std::isnan(b)) continue;
      ASSERT_NEAR(a, b, tolerance * (1 + std::fabs(b))) << name << ", element " << i;
    }
  }
}

inline void expect_identical(const Feed& actual, const Feed& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [name, tensor] : expected)
    EXPECT_TRUE(identical(actual.at(name), tensor)) << name;
}

}  // namespace lathe::engine
