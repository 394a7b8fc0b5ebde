#include <gtest/gtest.h>

#include <cstring>

#include "lathe/engine/backend.h"
#include "lathe/engine/testing/cuda_gpu.h"

// On a GPU: inputs of many bytes, from ordinary memory and from memory that the GPU reads.
namespace lathe::engine {
namespace {

// One large input between two small ones, and rows for which there is a remainder in every way of
// cutting them.
Graph rows_and_columns() {
  return parse_graph(R"(
    a = input() : f32[B,1]
    m = input() : f32[B,1003]
    z = input() : f32[1003]
    s = add(m, z)
    y = mul(s, a)
    output y <- y)");
}

TEST(CudaCopies, CarryManyBytesInPiecesByAnyNumberOfThreads) {
  LATHE_NEEDS_GPU();
  const Graph graph = rows_and_columns();
  const std::unique_ptr<Executor> reference = make_executor(graph, {}, {.device = "reference"});
  for (const int threads : {0, 1, 3}) {
    std::unique_ptr<ThreadPool> pool;
    if (threads > 0) pool = std::make_unique<ThreadPool>(threads);
    const std::unique_ptr<Executor> gpu =
        make_executor(graph, {}, {.device = "cuda", .pool = pool.get()});
    // Less than a piece, several, the same once more from its capture, and fewer than there is
    // room for.
    for (const std::int64_t rows : {3, 1301, 1301, 1301, 700, 1}) {
      SCOPED_TRACE(fmt::format("{} rows by {} threads", rows, threads));
      const Feed feed = random_feed(graph, {{"B", rows}}, static_cast<std::uint64_t>(rows));
      expect_near(gpu->run(feed), reference->run(feed), 1e-6);
    }
  }
}

TEST(CudaCopies, ReadInputsWhereTheyLie) {
  LATHE_NEEDS_GPU();
  const Graph graph = rows_and_columns();
  const std::unique_ptr<Executor> reference = make_executor(graph, {}, {.device = "reference"});
  const std::unique_ptr<Executor> gpu = make_executor(graph, {}, {.device = "cuda"});
  const std::shared_ptr<std::byte[]> memory =
      make_input_memory(find_backend("cuda"), 1301 * 1003 * 4);
  ASSERT_TRUE(cuda_library().kernels->device.is_pinned(memory.get()));
  for (const std::int64_t rows : {1301, 900, 1301, 1}) {
    SCOPED_TRACE(rows);
    Feed feed = random_feed(graph, {{"B", rows}}, static_cast<std::uint64_t>(rows));
    const Tensor& made = feed["m"];
    std::memcpy(memory.get(), made.bytes(), static_cast<std::size_t>(made.num_bytes()));
    const Feed expected = reference->run(feed);
    feed["m"] = Tensor::view(DType::F32, made.dims(), memory.get(), memory);
    expect_near(gpu->run(feed), expected, 1e-6);
  }
}

// Nobody else needs to keep what a run reads.
TEST(CudaCopies, KeepInputsUntilTheyAreRead) {
  LATHE_NEEDS_GPU();
  const Graph graph = rows_and_columns();
  const std::unique_ptr<Executor> gpu = make_executor(graph, {}, {.device = "cuda"});
  std::shared_ptr<std::byte[]> memory = make_input_memory(find_backend("cuda"), 1301 * 1003 * 4);
  const std::weak_ptr<std::byte[]> seen = memory;
  Feed feed = random_feed(graph, {{"B", 1301}}, 1);
  feed["m"] = Tensor::view(DType::F32, {1301, 1003}, memory.get(), memory);
  memory.reset();
  gpu->start(feed);
  feed.clear();
  EXPECT_FALSE(seen.expired());
  gpu->finish();
  EXPECT_TRUE(seen.expired());
}

}  // namespace
}  // namespace lathe::engine
