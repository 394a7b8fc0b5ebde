// A small BERT from floats to what Verilator computes.
#include <gtest/gtest.h>

#include <cstdlib>

#include "lathe/experiment/hardware/emit.h"
#include "lathe/experiment/hardware/simulate.h"
#include "lathe/experiment/quantize.h"
#include "lathe/hardware/testing/needs_tool.h"
#include "lathe/io/testing/scratch_directory.h"

namespace lathe::experiment {
namespace {

constexpr std::int64_t kPositions = 12;
const Attributes kSmall = {{"vocab_size", std::int64_t{30}},
                           {"hidden_size", std::int64_t{12}},
                           {"num_hidden_layers", std::int64_t{2}},
                           {"num_attention_heads", std::int64_t{2}},
                           {"intermediate_size", std::int64_t{20}},
                           {"max_position_embeddings", kPositions},
                           {"initializer_range", 0.3}};

void write_bert(const std::filesystem::path& path, const Attributes& config) {
  const io::Model model =
      io::load_model("bert-tiny", {.task = "classify", .config = config, .seed = 3});
  const Quantized quantized = quantize(model,
                                       {.weights = "fixed:8,6",
                                        .activations = "fixed:8,5",
                                        .outputs = "fixed:16,10",
                                        .profile = "hardware"},
                                       {}, {});
  io::write_checkpoint(path, quantized.model);
}

TEST(TransformerHardware, ComputesEveryLogitOfTheIntegerModel) {
  LATHE_NEEDS(verilator);
  const io::ScratchDirectory folder;
  write_bert(folder / "q", kSmall);
  const EmitResult emitted =
      emit({.model = (folder / "q").string(), .out = folder / "d", .cycles = 2000});
  EXPECT_EQ(emitted.design.symbols.at("L"), kPositions);
  EXPECT_LE(emitted.design.frame_interval, 2000);
  for (const double stalls : {0.0, 0.3}) {
    const SimulateResult result =
        simulate({.design = folder / "d", .examples = 4, .stalls = stalls, .seed = 5}, {});
    EXPECT_TRUE(result.is_exact()) << result.problems;
    EXPECT_EQ(result.outputs.at(0).got.size(), 4U * 2);
    if (stalls == 0) {
      EXPECT_EQ(result.simulation.cycles, result.predicted_cycles);
    }
  }
}

TEST(TransformerHardware, HasALengthThatTheModelHasPositionsFor) {
  const io::ScratchDirectory folder;
  write_bert(folder / "q", kSmall);
  EmitOptions options{.model = (folder / "q").string(), .out = folder / "d", .length = 5};
  EXPECT_EQ(emit(options).design.symbols.at("L"), 5);
  options = {.model = (folder / "q").string(), .out = folder / "e", .length = kPositions + 1};
  EXPECT_THROW(emit(options), UserError);
  EXPECT_FALSE(std::filesystem::exists(folder / "e"));
}

// All of BERT-tiny, on texts of up to 32 tokens: for `make test-hardware`, in three foldings.
TEST(TransformerHardware, OfBertTinyIsExactInEveryFolding) {
  LATHE_NEEDS(verilator);
  if (std::getenv("LATHE_RANDOM_DESIGNS") == nullptr)
    GTEST_SKIP() << "it is long: make test-hardware runs it";
  const io::ScratchDirectory folder;
  write_bert(folder / "q", {{"initializer_range", 0.1}});
  for (const std::int64_t cycles : {4096, 20000, 100000}) {
    SCOPED_TRACE(cycles);
    EmitOptions options{.model = (folder / "q").string(), .out = folder / "d", .cycles = cycles};
    options.length = 32;
    options.replaces = true;
    EXPECT_LE(emit(options).design.frame_interval, cycles);
    const SimulateResult result = simulate({.design = folder / "d", .examples = 6}, {});
    EXPECT_TRUE(result.is_exact()) << result.problems;
    EXPECT_EQ(result.simulation.cycles, result.predicted_cycles);
    const SimulateResult stalled =
        simulate({.design = folder / "d", .examples = 2, .stalls = 0.25}, {});
    EXPECT_TRUE(stalled.is_exact()) << stalled.problems;
  }
}

}  // namespace
}  // namespace lathe::experiment
