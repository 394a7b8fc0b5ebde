#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lathe/core/testing/error_text.h"
#include "lathe/engine/backend.h"
#include "lathe/experiment/bench/attention.h"
#include "lathe/experiment/bench/memory.h"
#include "lathe/experiment/bench/mxint8.h"
#include "lathe/experiment/bench/op_call.h"
#include "lathe/experiment/bench/products.h"
#include "lathe/experiment/bench/training_step.h"

namespace lathe::experiment::bench {
namespace {

constexpr Repeats kFew{.warm_up = 0, .samples = 3};

TEST(Timing, IsTheMedianWithItsSpread) {
  const Timing timing = timing_of({0.5, 0.1, 0.2});
  EXPECT_EQ(timing.median, 0.2);
  EXPECT_EQ(timing.low, 0.1);
  EXPECT_EQ(timing.high, 0.5);
  EXPECT_EQ(timing.samples, 3);
}

TEST(BenchTable, ShowsSharesOfWhatTheDeviceCanDo) {
  const Result result{
      .bench = "gemm",
      .title = "products",
      .device = "cpu",
      .limits = {4e9, 8e9},
      .rows = {{.name = "a", .time = {1e-3, 1e-3, 2e-3, 3}, .bytes = 1e6, .flops = 6e6}}};
  EXPECT_EQ(to_table(result).to_text(),
            "what    median     least      most     moved  of bandwidth     computed  of peak\n"
            "----  --------  --------  --------  --------  ------------  -----------  -------\n"
            "a     1.000 ms  1.000 ms  2.000 ms  1.0 GB/s        25.0 %  6.0 GFLOP/s   75.0 %\n");
  EXPECT_EQ(to_json(result)["rows"][0]["median_seconds"], 1e-3);
  EXPECT_NE(to_svg(result).find("<svg"), std::string::npos);
}

// 32 threads, 8 codes a copy: a row of 64 codes is 8 runs, so four rows are a turn.
TEST(TileFigure, SaysWhichThreadCopiesWhat) {
  EXPECT_EQ(tile_text({.rows = 5, .columns = 32, .threads = 8}, 8),
            "a tile of 5x32 codes, 8 threads, 8 codes a copy, 3 turns\n"
            "column     0     8    16    24\n"
            "row  0    t0    t1    t2    t3\n"
            "row  1    t4    t5    t6    t7\n"
            "row  2    t0    t1    t2    t3\n"
            "row  3    t4    t5    t6    t7\n"
            "row  4    t0    t1    t2    t3\n");
  EXPECT_NE(tile_svg({.rows = 5, .columns = 32, .threads = 8}, 8)
                .find("thread 7 copies codes 24 to 31 of row 3 in turn 1"),
            std::string::npos);
}

TEST(BenchAttention, TimesBothFormsOnTheCpu) {
  const Result result = time_attention(
      {.batch = 2, .heads = 2, .length = 8, .head_size = 4, .repeats = kFew}, {.device = "cpu"});
  ASSERT_EQ(result.rows.size(), 2u);
  EXPECT_EQ(result.rows[0].name, "fused");
  EXPECT_EQ(result.rows[0].flops, 4.0 * 2 * 2 * 8 * 8 * 4);
  EXPECT_GT(result.rows[1].time.median, 0);
}

TEST(BenchAttention, TimesAKernelInEveryPrecisionOfTheCpu) {
  const engine::Backend& cpu = engine::find_backend("cpu");
  for (const engine::Precision precision : cpu.precisions) {
    const Graph graph = fused_attention({.batch = 2, .heads = 2, .length = 8, .head_size = 4},
                                        {.device = "cpu", .precision = precision});
    EXPECT_TRUE(count_fallbacks(graph, cpu).empty()) << name(precision);
  }
}

TEST(BenchStep, SaysWhatNeedsAGpu) {
  const Result result = time_step({.rows = 2, .length = 8, .repeats = kFew}, {.device = "cpu"});
  ASSERT_EQ(result.rows.size(), 1u);
  EXPECT_EQ(result.notes.back(), "captured graphs against none: needs --device cuda and a GPU");
}

TEST(BenchOp, ComparesWithTheDefinition) {
  const Result result =
      time_op_call({.call = "relu(f32[4,4])", .repeats = kFew}, {.device = "cpu"});
  EXPECT_EQ(result.notes.back(), "largest difference from the op's definition: 0");
  EXPECT_EQ(result.rows[0].bytes, 128);
}

// Asked before each of the copies and runs that it times, not only between the parts of a bench.
TEST(BenchOp, StopsBetweenTheCopiesThatItTimes) {
  int asked = 0;
  const Callbacks callbacks{.should_stop = [&] { return ++asked > 5; }};
  EXPECT_THROW(
      time_op_call({.call = "relu(f32[4,4])", .repeats = kFew}, {.device = "cpu"}, callbacks),
      Interrupted);
  EXPECT_EQ(asked, 6);
}

TEST(BenchProducts, RefuseSizesThatAreNone) {
  EXPECT_EQ(parse_product_size("2x3x4").k, 4);
  EXPECT_EQ(error_text([] { parse_product_size("2x3"); }),
            "size \"2x3\": expected ROWSxNxK, such as 128x1024x1024");
}

// 24 layers of the labs' encoder would do; bytes follow from the shapes alone.
TEST(BenchMemory, CountsWhatPackedWeightsTake) {
  const MemoryResult result = measure_memory(
      {.layers = 2, .hidden = 64, .intermediate = 256, .heads = 2, .vocabulary = 100},
      {.device = "cpu"});
  ASSERT_EQ(result.rows.size(), 3u);
  EXPECT_EQ(result.rows[0].state_bytes, result.parameters * 4);
  // A packed number takes 8.25 bits of 32: each linear's weights shrink to 0.2578125.
  const std::int64_t linears = 2 * (4 * 64 * 64 + 2 * 64 * 256) + 64 * 64 + 2 * 64;
  EXPECT_EQ(result.rows[0].state_bytes - result.rows[1].state_bytes,
            linears * 4 - linears * 33 / 32);
}

TEST(BenchMxint8, RefusesGroupsThatNoKernelHas) {
  EXPECT_EQ(error_text([] { time_mxint8({.group = 24}, {.device = "cpu"}); }),
            "group 24: expected 16, 32, 64 or 128");
}

TEST(BenchMxint8, MultipliesFloatsBesidePackedWeightsOnACpu) {
  const Result result = time_mxint8({.rows = 8,
                                     .columns = 64,
                                     .sizes = {64},
                                     .batches = {2},
                                     .repeats = {.warm_up = 0, .samples = 1}},
                                    {.device = "cpu"});
  std::vector<std::string> names;
  for (const Measured& row : result.rows) names.push_back(row.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"copy", "decode", "linear float 2x64x64",
                                      "linear mxint:8 2x64x64", "mxint:8 by mxint:8 2x64x64"}));
  EXPECT_EQ(result.rows[2].bytes, 64 * 64 * 4);
  EXPECT_EQ(result.rows[3].bytes, 64 * 64 * 8.25 / 8);
  ASSERT_EQ(result.notes.size(), 2u);
  EXPECT_TRUE(result.notes[0].starts_with("2 rows of 64: mxint:8 is ")) << result.notes[0];
}

}  // namespace
}  // namespace lathe::experiment::bench
