#include "lathe/engine/cpu/attention_shape.h"

#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/engine/cpu/every_isa.h"
#include "lathe/engine/testing/executor_cases.h"

namespace lathe::engine {
namespace {

// Heads of keys that two heads of queries share.
AttentionShape four_heads() {
  const Graph graph = parse_graph(
      "symbols L\nq = input() : f32[1,L,32]\nk = input() : f32[1,L,16]\n"
      "y = attention(q, k, k) {heads=4, kv_heads=2}\noutput y <- y");
  return {graph, graph.at("y"), 0};
}

std::vector<AttentionSequence> of_lengths(const std::vector<std::int64_t>& lengths) {
  std::vector<AttentionSequence> result;
  std::int64_t start = 0;
  for (const std::int64_t length : lengths) {
    result.push_back({start, start, length, length});
    start += length;
  }
  return result;
}

std::int64_t tile_of_ten(std::int64_t, std::int64_t row) {
  return row / 10 * 10;
}

TEST(AttentionTasks, TakeEveryQueryOfEveryHeadOnceInWholeTiles) {
  const AttentionShape shape = four_heads();
  for (const std::vector<std::int64_t>& lengths :
       {std::vector<std::int64_t>{512, 512, 500}, {1}, {0, 77, 3}, {2000}, {}})
    for (const std::int64_t threads : {1, 2, 3, 16, 100}) {
      const std::vector<AttentionSequence> sequences = of_lengths(lengths);
      std::size_t sequence = 0;
      std::int64_t head = 0, next = 0;
      const auto go_on = [&] {
        while (sequence < sequences.size() && next == sequences[sequence].q_length) {
          next = 0;
          if (++head == shape.heads) head = 0, ++sequence;
        }
      };
      go_on();
      for (const AttentionTask& task : attention_tasks(shape, sequences, threads, tile_of_ten)) {
        ASSERT_EQ(task.sequence, sequence);
        ASSERT_EQ(task.head, head);
        ASSERT_EQ(task.q_begin, next);
        ASSERT_LT(task.q_begin, task.q_end);
        EXPECT_EQ(task.q_begin % 10, 0);
        next = task.q_end;
        go_on();
      }
      EXPECT_EQ(sequence, sequences.size());
    }
}

TEST(AttentionTasks, AreSeveralForEachThreadWhereSequencesAreAlike) {
  const auto count = [](const std::vector<std::int64_t>& lengths, std::int64_t threads) {
    return std::ssize(attention_tasks(four_heads(), of_lengths(lengths), threads, tile_of_ten));
  };
  EXPECT_EQ(count({512, 512, 512, 512}, 1), 16);
  EXPECT_EQ(count({512, 512, 512, 512}, 2), 16);
  EXPECT_EQ(count({512, 512, 512, 512}, 16), 8 * 16);
  EXPECT_EQ(count({64}, 16), 8);  // of no fewer queries
}

TEST(PackedPairs, PackThePairsOfSeveralTasksOnce) {
  const AttentionShape shape = four_heads();
  const std::vector<AttentionSequence> sequences = of_lengths({512, 512});
  const std::vector<AttentionTask> tasks = attention_tasks(shape, sequences, 4, tile_of_ten);
  AlignedBuffer memory;
  PackedPairs packed(shape, sequences, tasks, 4, memory);
  int count = 0;
  const auto find = [&](const AttentionTask& task) {
    return *static_cast<const int*>(
        packed.find(task, [&](void* to) { *static_cast<int*>(to) = ++count; }));
  };
  std::vector<int> found;
  for (const std::size_t sequence : {0, 1})
    for (const std::int64_t head : {0, 1, 2, 3}) found.push_back(find({sequence, head, 0, 40}));
  EXPECT_EQ(found, (std::vector<int>{1, 1, 2, 2, 3, 3, 4, 4}));
}

TEST(PackedPairs, LetATaskPackItsOwnWhileAnotherThreadIsAtIt) {
  const AttentionShape shape = four_heads();
  const std::vector<AttentionSequence> sequences = of_lengths({512});
  const std::vector<AttentionTask> tasks = attention_tasks(shape, sequences, 4, tile_of_ten);
  AlignedBuffer memory;
  PackedPairs packed(shape, sequences, tasks, 4, memory);
  const auto nothing = [](void*) {};
  packed.find(tasks[0], [&](void*) { EXPECT_EQ(packed.find(tasks[1], nothing), nullptr); });
  EXPECT_NE(packed.find(tasks[1], nothing), nullptr);
}

TEST(PackedPairs, LeaveKeysOfASingleTaskToIt) {
  const AttentionShape shape = four_heads();
  const std::vector<AttentionSequence> sequences = of_lengths({512});
  const std::vector<AttentionTask> tasks = attention_tasks(shape, sequences, 1, tile_of_ten);
  AlignedBuffer memory;
  PackedPairs packed(shape, sequences, tasks, 4, memory);
  EXPECT_EQ(packed.find(tasks[0], [](void*) { ADD_FAILURE(); }), nullptr);
  EXPECT_EQ(memory.size(), 0);
}

// Executors of several numbers of threads beside one alone, in both precisions.
class AttentionOfThreads : public EveryIsa {
 protected:
  void expect_same_bits(const Graph& graph, const Feed& feed, bool uses_integers = false) const {
    for (const Precision precision : {Precision::Float32, Precision::Bf16}) {
      if (uses_integers && precision == Precision::Bf16) continue;
      const auto run = [&](ThreadPool* pool) {
        return make_executor(graph, {},
                             {.pool = pool,
                              .isa = GetParam(),
                              .precision = precision,
                              .uses_integers = uses_integers})
            ->run(feed);
      };
      const Feed alone = run(nullptr);
      for (const int threads : {2, 3, 16}) {
        SCOPED_TRACE(fmt::format("{} threads", threads));
        ThreadPool pool(threads);
        expect_identical(run(&pool), alone);
      }
    }
  }
};

TEST_P(AttentionOfThreads, HasTheSameBitsWithAMask) {
  const Graph graph = parse_graph(
      "symbols B, L\nq = input() : f32[B,L,32]\nk = input() : f32[B,L,16]\n"
      "v = input() : f32[B,L,16]\nmask = input() : i32[B,L]\n"
      "y = attention(q, k, v, mask) {heads=4, kv_heads=2}\noutput y <- y\n"
      "z = attention(q, k, v) {heads=4, kv_heads=2, causal=true}\noutput z <- z");
  for (const SymbolValues& sizes : {SymbolValues{{"B", 1}, {"L", 200}}, {{"B", 3}, {"L", 77}}}) {
    Feed feed = random_feed(graph, sizes, 3);
    std::int64_t i = 0;
    for (std::int32_t& keeps : feed["mask"].mutable_data<std::int32_t>()) keeps = i++ % 5 < 4;
    expect_same_bits(graph, feed);
  }
}

TEST_P(AttentionOfThreads, HasTheSameBitsOverSequencesOfDifferentLengths) {
  const Graph graph = parse_graph(
      "symbols S, T\nq = input() : f32[T,24]\nk = input() : f32[T,24]\nv = input() : f32[T,24]\n"
      "offsets = input() : i32[S+1]\n"
      "y = attention(q, k, v, none, offsets) {heads=3, causal=true}\noutput y <- y");
  Feed feed = random_feed(graph, {{"S", 4}, {"T", 300}}, 3);
  const std::int32_t ends[] = {0, 190, 190, 200, 300};
  std::copy(std::begin(ends), std::end(ends), feed["offsets"].mutable_data<std::int32_t>().begin());
  expect_same_bits(graph, feed);
}

TEST_P(AttentionOfThreads, HasTheSameBitsOfWholeNumbers) {
  const Graph graph = parse_graph(R"(
    symbols B, L
    q = input() : f32[B,L,16]
    k = input() : f32[B,L,16]
    v = input() : f32[B,L,16]
    a = quantize(q) {format="int:8,dynamic"}
    b = quantize(k) {format="int:8,dynamic"}
    c = quantize(v) {format="int:8,dynamic"}
    y = attention(a, b, c) {heads=2}
    output y <- y)");
  expect_same_bits(graph, random_feed(graph, {{"B", 2}, {"L", 150}}, 3), true);
}

INSTANTIATE_TEST_SUITE_P(, AttentionOfThreads, testing::ValuesIn(supported_isas()), isa_name);

}  // namespace
}  // namespace lathe::engine
