// Number formats on a GPU, bit for bit as they are defined: every example of every family, with
// channels on another axis, with masks, and backward.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lathe/core/number_format.h"
#include "lathe/engine/backend.h"
#include "lathe/engine/testing/cuda_gpu.h"
#include "lathe/ops/quantized_operands.h"

namespace lathe::engine {
namespace {

std::vector<std::string> all_formats() {
  std::vector<std::string> result;
  for (const auto& [name, family] : FormatRegistry::instance().all())
    for (const std::string& example : family.examples) result.push_back(example);
  return result;
}

struct Case {
  std::int64_t rows = 9, columns = 83;  // a short last block, whatever its size
  bool is_transposed = false;           // channels are the columns
  bool has_mask = false;
};

// quantize(x, scale, zero, mask) and, where there is anything to it, its gradient.
Graph graph_of(const NumberFormat& format, const Case& one) {
  const FormatFacts& facts = format.facts();
  const auto [rows, columns] =
      one.is_transposed ? std::pair(one.columns, one.rows) : std::pair(one.rows, one.columns);
  std::string text =
      fmt::format("x = input() : f32[{0},{1}]\ndy = input() : f32[{0},{1}]\n", rows, columns);
  std::string scales = "none, none";
  const bool is_given = facts.scale_source == ScaleSource::Given;
  if (is_given) {
    const std::string shape =
        to_text(ops::given_scale_shape(format, {DType::F32, {one.rows, one.columns}}));
    text += fmt::format("scale = input() : f32{}\n", shape);
    scales = "scale, none";
    if (facts.has_zero_point) {
      text += fmt::format("zero = input() : f32{}\n", shape);
      scales = "scale, zero";
    }
  }
  if (one.has_mask) text += fmt::format("mask = input() : f32[{},{}]\n", rows, columns);
  const std::string attributes =
      fmt::format("{{{}format=\"{}\"}}", one.is_transposed ? "axis=1, " : "", facts.text);
  text += fmt::format("y = quantize(x, {}, {}) {}\noutput y <- y\n", scales,
                      one.has_mask ? "mask" : "none", attributes);
  if (is_given)
    text += fmt::format(
        "g = learned_step_gradient(dy, x, y, {}) {}\noutput dx <- g\noutput dscale <- g#1\n",
        scales, attributes);
  else
    text += "unused = relu(dy)\noutput unused <- unused\n";
  return parse_graph(text);
}

// Numbers of all sizes, and many of the formats' own: ties, ends and what lies beyond them; and a
// block without any.
Feed feed_of(const Graph& graph) {
  Feed feed = random_feed(graph, {}, 7);
  const std::span<float> x = feed["x"].mutable_data<float>();
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (i % 3 == 1) x[i] = std::ldexp(x[i], static_cast<int>(i % 61) - 30);
    if (i % 3 == 2) x[i] = static_cast<float>(static_cast<int>(i % 41) - 20) / 16;
    if (i % 17 == 0 || i % 83 < 32) x[i] = i / 83 % 4 == 1 ? 0 : x[i];
  }
  if (feed.contains("scale"))
    for (float& scale : feed["scale"].mutable_data<float>()) scale = std::fabs(scale) / 8 + 0.01f;
  if (feed.contains("zero"))
    for (float& zero : feed["zero"].mutable_data<float>()) zero = std::floor(std::fabs(zero) * 7);
  if (feed.contains("mask"))
    for (float& kept : feed["mask"].mutable_data<float>()) kept = kept > -0.2f ? 1.0f : 0.0f;
  return feed;
}

void expect_same_bits(const Feed& actual, const Feed& expected, const Feed& feed) {
  for (const char* const name : {"y", "dx"}) {
    if (!expected.contains(name)) continue;
    const Tensor &should = expected.at(name), &is = actual.at(name);
    int shown = 0;
    for (std::int64_t i = 0; i < should.num_elements() && shown < 3; ++i) {
      if (should.at(i) == is.at(i) || (std::isnan(should.at(i)) && std::isnan(is.at(i)))) continue;
      ++shown;
      ADD_FAILURE() << name << " " << i << ": " << feed.at("x").at(i) << " became " << is.at(i)
                    << " instead of " << should.at(i);
    }
  }
  // Sums in double, of another order than the reference's: float keeps all but its last bit.
  if (expected.contains("dscale"))
    expect_near({{"dscale", actual.at("dscale")}}, {{"dscale", expected.at("dscale")}}, 1e-6);
}

void expect_formats_agree(const Case& one) {
  for (const std::string& text : all_formats()) {
    const std::shared_ptr<const NumberFormat> format = parse_format(text);
    if (format == nullptr || (one.has_mask && !format->facts().takes_mask)) continue;
    SCOPED_TRACE(text);
    const Graph graph = graph_of(*format, one);
    const Feed feed = feed_of(graph);
    expect_same_bits(make_executor(graph, {}, {.device = "cuda"})->run(feed),
                     make_executor(graph, {}, {.device = "reference"})->run(feed), feed);
  }
}

TEST(CudaFormats, RoundToTheBitsOfTheirDefinition) {
  LATHE_NEEDS_GPU();
  expect_formats_agree({});
}

TEST(CudaFormats, RoundChannelsOfAnotherAxis) {
  LATHE_NEEDS_GPU();
  expect_formats_agree({.is_transposed = true});
}

TEST(CudaFormats, LeaveWhatAMaskTakesOutOfTheirScales) {
  LATHE_NEEDS_GPU();
  expect_formats_agree({.has_mask = true});
  expect_formats_agree({.is_transposed = true, .has_mask = true});
}

// Means of several chunks, and more chunks than sums.
TEST(CudaFormats, AddUpLongMeansInTheSameOrder) {
  LATHE_NEEDS_GPU();
  expect_formats_agree({.rows = 2, .columns = 9001});
  expect_formats_agree({.rows = 2, .columns = 9001, .has_mask = true});
  expect_formats_agree({.rows = 701, .columns = 128});
}

// Magnitudes whose sums are beyond float, and what is no number.
TEST(CudaFormats, RoundTheLargestNumbers) {
  LATHE_NEEDS_GPU();
  for (const std::string& text : all_formats()) {
    const std::shared_ptr<const NumberFormat> format = parse_format(text);
    if (format == nullptr) continue;
    SCOPED_TRACE(text);
    const Graph graph = graph_of(*format, {});
    Feed feed = feed_of(graph);
    const std::span<float> x = feed["x"].mutable_data<float>();
    for (std::size_t i = 0; i < x.size(); ++i)
      if (i % 2 == 0) x[i] = i % 4 == 0 ? 3e38f : -3.2e38f;
    for (const std::size_t i : {5u, 40u, 300u}) x[i] = std::numeric_limits<float>::infinity();
    expect_same_bits(make_executor(graph, {}, {.device = "cuda"})->run(feed),
                     make_executor(graph, {}, {.device = "reference"})->run(feed), feed);
  }
}

// What has a kernel is known without a GPU.
TEST(CudaFormats, AllHaveAKernel) {
  for (const std::string& text : all_formats()) {
    const std::shared_ptr<const NumberFormat> format = parse_format(text);
    if (format == nullptr) continue;
    for (const bool is_transposed : {false, true}) {
      const Graph graph = graph_of(*format, {.is_transposed = is_transposed});
      for (const auto& [op, count] : count_fallbacks(graph, find_backend("cuda")))
        ADD_FAILURE() << text << " has no kernel for " << op;
    }
  }
}

}  // namespace
}  // namespace lathe::engine
