// Number formats on a GPU, bit for bit as they are defined: every example of every family that has
// a kernel there, forward and, where scales are given, backward.

#include <gtest/gtest.h>

#include <cmath>

#include "lathe/core/number_format.h"
#include "lathe/engine/backend.h"
#include "lathe/engine/testing/cuda_gpu.h"
#include "lathe/numerics/scaled_format.h"
#include "lathe/ops/quantized_operands.h"

namespace lathe::engine {
namespace {

constexpr std::int64_t kRows = 9, kColumns = 83;  // a short last block, whatever its size

std::vector<std::string> all_formats() {
  std::vector<std::string> result;
  for (const auto& [name, family] : FormatRegistry::instance().all())
    for (const std::string& example : family.examples) result.push_back(example);
  return result;
}

// quantize(x, scale, zero) of a format; without a scale where it has none.
Graph graph_of(const NumberFormat& format) {
  const FormatFacts& facts = format.facts();
  std::string text = fmt::format("x = input() : f32[{},{}]\n", kRows, kColumns);
  std::string operands = "x";
  if (facts.scale_source == ScaleSource::Given) {
    const std::string shape =
        to_text(ops::given_scale_shape(format, {DType::F32, {kRows, kColumns}}));
    text += fmt::format("scale = input() : f32{}\n", shape);
    operands += ", scale";
    if (facts.has_zero_point) {
      text += fmt::format("zero = input() : f32{}\n", shape);
      operands += ", zero";
    }
  }
  text += fmt::format("y = quantize({}) {{format=\"{}\"}}\noutput y <- y", operands, facts.text);
  return parse_graph(text);
}

// Numbers of all sizes, and many of the formats' own: ties, ends and what lies beyond them.
Feed feed_of(const Graph& graph) {
  Feed feed = random_feed(graph, {}, 7);
  const std::span<float> x = feed["x"].mutable_data<float>();
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (i % 3 == 1) x[i] = std::ldexp(x[i], static_cast<int>(i % 61) - 30);
    if (i % 3 == 2) x[i] = static_cast<float>(static_cast<int>(i % 41) - 20) / 16;
    if (i % 17 == 0) x[i] = 0;
  }
  if (feed.contains("scale"))
    for (float& scale : feed["scale"].mutable_data<float>()) scale = std::fabs(scale) / 8 + 0.01f;
  if (feed.contains("zero"))
    for (float& zero : feed["zero"].mutable_data<float>()) zero = std::floor(std::fabs(zero) * 7);
  return feed;
}

bool has_kernel(const Graph& graph) {
  return count_fallbacks(graph, find_backend("cuda")).empty();
}

TEST(CudaFormats, RoundToTheBitsOfTheirDefinition) {
  LATHE_NEEDS_GPU();
  for (const std::string& text : all_formats()) {
    const std::shared_ptr<const NumberFormat> format = parse_format(text);
    if (format == nullptr || !has_kernel(graph_of(*format))) continue;
    SCOPED_TRACE(text);
    const Graph graph = graph_of(*format);
    const Feed feed = feed_of(graph);
    const Tensor expected = make_executor(graph, {}, {.device = "reference"})->run(feed).at("y");
    const Tensor actual = make_executor(graph, {}, {.device = "cuda"})->run(feed).at("y");
    int shown = 0;
    for (std::int64_t i = 0; i < expected.num_elements() && shown < 3; ++i) {
      if (expected.at(i) == actual.at(i) ||
          (std::isnan(expected.at(i)) && std::isnan(actual.at(i))))
        continue;
      ++shown;
      ADD_FAILURE() << "element " << i << ": " << feed.at("x").at(i) << " became " << actual.at(i)
                    << " instead of " << expected.at(i);
    }
  }
}

// What has a kernel is known without a GPU.
TEST(CudaFormats, HaveAKernelWhereEachRowStandsForItself) {
  int num_found = 0;
  for (const std::string& text : all_formats()) {
    const std::shared_ptr<const NumberFormat> format = parse_format(text);
    if (format == nullptr) continue;
    const bool is_expected =
        numerics::find_scaled_spec(*format) != nullptr && format->facts().is_row_local;
    EXPECT_EQ(has_kernel(graph_of(*format)), is_expected) << text;
    num_found += is_expected ? 1 : 0;
  }
  EXPECT_GT(num_found, 20);
}

}  // namespace
}  // namespace lathe::engine
