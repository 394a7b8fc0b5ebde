// Which rows of packed attention belong together.

#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/engine/cpu/every_isa.h"
#include "lathe/engine/testing/executor_cases.h"

namespace lathe::engine {
namespace {

Tensor offsets(const std::vector<std::int32_t>& values) {
  Tensor result(DType::I32, {static_cast<std::int64_t>(values.size())});
  std::copy(values.begin(), values.end(), result.mutable_data<std::int32_t>().begin());
  return result;
}

Tensor rows(const Tensor& matrix, std::int64_t begin, std::int64_t end) {
  const std::int64_t width = matrix.dim(1);
  Tensor result(matrix.dtype(), {end - begin, width});
  const auto source = matrix.data<float>().subspan(static_cast<std::size_t>(begin * width),
                                                   static_cast<std::size_t>((end - begin) * width));
  std::copy(source.begin(), source.end(), result.mutable_data<float>().begin());
  return result;
}

class AttentionSequences : public EveryIsa {
 protected:
  Feed run(const Graph& graph, const Feed& feed) const {
    return make_executor(graph, {}, {.isa = GetParam()})->run(feed);
  }
};

// As many tokens as sequences, by accident, because one sequence is empty: the extents of queries
// and keys agree, and still every sequence has one query.
TEST_P(AttentionSequences, AreTakenFromTypesWhereExtentsAgreeByAccident) {
  const Graph first = parse_graph(
      "symbols S, T\nq = input() : f32[S,8]\nk = input() : f32[T,8]\nv = input() : f32[T,8]\n"
      "offsets = input() : i32[S+1]\n"
      "y = attention(q, k, v, none, offsets) {heads=2}\noutput y <- y\n"
      "dq = attention_gradient(q, q, k, v, none, offsets) {heads=2}\noutput dq <- dq\n");
  Feed feed = random_feed(first, {{"S", 3}, {"T", 3}}, 5);
  feed["offsets"] = offsets({0, 0, 2, 3});
  const Feed with_empty = run(first, feed);

  Feed without = feed;
  without["q"] = rows(feed["q"], 1, 3);
  without["offsets"] = offsets({0, 2, 3});
  const Feed expected = run(first, without);
  for (const std::string name : {"y", "dq"}) {
    EXPECT_THAT(rows(with_empty.at(name), 1, 3).data<float>(),
                testing::ElementsAreArray(expected.at(name).data<float>()));
    EXPECT_THAT(rows(with_empty.at(name), 0, 1).data<float>(), testing::Each(0.0f));
  }
}

TEST_P(AttentionSequences, MayBeEmptyWhereEveryTokenAsks) {
  const Graph all = parse_graph(
      "symbols S, T\nq = input() : f32[T,8]\nk = input() : f32[T,8]\nv = input() : f32[T,8]\n"
      "offsets = input() : i32[S+1]\n"
      "y = attention(q, k, v, none, offsets) {heads=2}\noutput y <- y\n");
  Feed feed = random_feed(all, {{"S", 3}, {"T", 3}}, 5);
  feed["offsets"] = offsets({0, 0, 2, 3});
  Feed without = feed;
  without["offsets"] = offsets({0, 2, 3});
  EXPECT_THAT(run(all, feed).at("y").data<float>(),
              testing::ElementsAreArray(run(all, without).at("y").data<float>()));
}

// The reference sees tensors alone.
TEST(AttentionSequencesOfTheReference, AreRefusedWhereTheyCanBeReadTwoWays) {
  const Graph first = parse_graph(
      "symbols S, T\nq = input() : f32[S,8]\nk = input() : f32[T,8]\nv = input() : f32[T,8]\n"
      "offsets = input() : i32[S+1]\n"
      "y = attention(q, k, v, none, offsets) {heads=2}\noutput y <- y\n");
  Feed feed = random_feed(first, {{"S", 3}, {"T", 3}}, 5);
  feed["offsets"] = offsets({0, 0, 2, 3});
  EXPECT_THAT(error_text([&] { make_executor(first, {}, {.device = "reference"})->run(feed); }),
              testing::HasSubstr("sequence 0 is empty"));
}

INSTANTIATE_TEST_SUITE_P(Cpu, AttentionSequences, testing::ValuesIn(supported_isas()), isa_name);

}  // namespace
}  // namespace lathe::engine
