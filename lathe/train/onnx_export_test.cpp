// Models that are written as ONNX and read again: the numbers stay, and ONNX's own checker, where
// it is installed, finds nothing wrong.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lathe/core/child_process.h"
#include "lathe/core/graph_text.h"
#include "lathe/core/pass.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/io/onnx/export_onnx.h"
#include "lathe/io/testing/refusal.h"
#include "lathe/io/testing/scratch_directory.h"
#include "lathe/models/initialize.h"
#include "lathe/train/run_model.h"

namespace lathe::train {
namespace {

io::Model small_model(const std::string& name, const std::string& task, Attributes config) {
  return io::load_model(name, {.task = task, .config = std::move(config), .seed = 3});
}

Attributes small_bert() {
  return {{"vocab_size", std::int64_t{20}},
          {"hidden_size", std::int64_t{8}},
          {"num_hidden_layers", std::int64_t{2}},
          {"num_attention_heads", std::int64_t{2}},
          {"intermediate_size", std::int64_t{12}},
          {"max_position_embeddings", std::int64_t{9}},
          {"initializer_range", 0.3}};
}

Feed two_texts() {
  return {{"input_ids", Tensor::from<std::int32_t>({2, 5}, {2, 7, 4, 9, 3, 2, 5, 3, 0, 0})},
          {"attention_mask", Tensor::from<std::int32_t>({2, 5}, {1, 1, 1, 1, 1, 1, 1, 1, 0, 0})}};
}

class OnnxExport : public testing::Test {
 protected:
  // The model again, by way of a file.
  io::Model written_and_read(const io::Model& model) {
    const auto path = scratch_ / "m.onnx";
    exported_ = io::onnx::export_onnx(model);
    io::onnx::write_onnx(path, exported_.model);
    expect_checked(path);
    return io::load_model(path.string());
  }

  // Passes where python3-onnx is not installed.
  static void expect_checked(const std::filesystem::path& path) {
    const std::string program =
        "import sys\n"
        "try:\n  from onnx import checker\n"
        "except ImportError: sys.exit(0)\n"
        "checker.check_model(sys.argv[1], full_check=True)\n";
    const auto child = ChildProcess::start({"/usr/bin/python3", "-c", program, path.string()});
    if (child == nullptr) return;
    std::string errors;
    while (!child->is_finished()) errors += child->read(std::chrono::milliseconds(100)).errors;
    EXPECT_EQ(child->exit_status(), 0) << errors;
  }

  void expect_same(const io::Model& model, const Feed& feed, double tolerance) {
    const io::Model again = written_and_read(model);
    const Tensor before = run_model(model, feed, {}).at("logits");
    const Tensor after = run_model(again, feed, {}).at("logits");
    ASSERT_EQ(before.dims(), after.dims());
    for (std::int64_t i = 0; i < before.num_elements(); ++i)
      EXPECT_NEAR(before.at(i), after.at(i), tolerance) << i;
  }

  io::ScratchDirectory scratch_;
  io::onnx::ExportedModel exported_;
};

// What is recognised again has the same nodes, and then the same bits.
TEST_F(OnnxExport, KeepsBert) {
  expect_same(small_model("bert-tiny", "classify", small_bert()), two_texts(), 0);
  expect_same(small_model("bert-tiny", "mlm", small_bert()), two_texts(), 0);
  expect_same(small_model("bert-tiny", "causal-lm", small_bert()), two_texts(), 0);
}

// Positions are written out as a range for every row, and names as metadata.
TEST_F(OnnxExport, KeepsWhatBatchesOfTextsNeed) {
  io::Model model = small_model("bert-tiny", "classify", small_bert());
  model.label_names = {"bad", "good \"quoted\""};
  io::Model again = written_and_read(model);
  EXPECT_EQ(again.label_names, model.label_names);
  EXPECT_NO_THROW(run_pass("pack-sequences", again.graph));
  EXPECT_EQ(again.graph.nodes_of("packed_positions").size(), 1U);
  exported_.model.metadata[io::onnx::kLabelsKey] = R"(["one"])";
  io::onnx::write_onnx(scratch_ / "m.onnx", exported_.model);
  const std::string path = (scratch_ / "m.onnx").string();
  EXPECT_EQ(error_text([&] { (void)io::load_model(path); }),
            path + ": lathe.labels: expected the names of 2 labels");
}

// Angles are made in float32 there: up to four turns of a radian, each within 2^-23 of its size, on
// features that the two layers leave below 4.
TEST_F(OnnxExport, KeepsRotaryPositions) {
  expect_same(small_model("llama-tiny", "causal-lm",
                          {{"vocab_size", std::int64_t{20}},
                           {"hidden_size", std::int64_t{16}},
                           {"intermediate_size", std::int64_t{12}},
                           {"num_hidden_layers", std::int64_t{2}},
                           {"num_attention_heads", std::int64_t{4}},
                           {"num_key_value_heads", std::int64_t{2}},
                           {"max_position_embeddings", std::int64_t{9}}}),
              two_texts(), 1e-5);
}

TEST_F(OnnxExport, KeepsImages) {
  const io::Model model = io::load_model("cnn:1x6x6,c4k3,m2,3", {.seed = 2});
  Tensor image(DType::F32, {2, 1, 6, 6});
  for (std::int64_t i = 0; i < image.num_elements(); ++i)
    image.mutable_data<float>()[static_cast<std::size_t>(i)] = std::sin(static_cast<float>(i));
  expect_same(model, {{"x", image}}, 0);
}

io::Model rounded_mlp(const std::string& weights, const std::string& inputs) {
  io::Model model = io::load_model("mlp:4,3", {.seed = 5});
  model.graph = parse_graph(fmt::format(R"(
    x = input() : f32[B,4]
    w = state() : f32[3,4]
    b = state() : f32[3]
    ws = state() {{role="scale"}} : f32[3]
    xs = state() {{role="scale"}} : f32[]
    mask = state() {{role="mask"}} : f32[3,4]
    pruned = mul(w, mask) : f32[3,4]
    wq = quantize(pruned, ws) {{format="{}"}} : f32[3,4]
    xq = quantize(x{}) {{format="{}"}} : f32[B,4]
    y = linear(xq, wq, b) : f32[B,3]
    output logits <- y
  )",
                                        weights, inputs.starts_with("int") ? ", xs" : "", inputs));
  model.state = {
      {"w", Tensor::from<float>({3, 4}, {1, -2, 3, -4, 0.5F, 0.25F, -1, 9, 2, 2, -2, 1})},
      {"b", Tensor::from<float>({3}, {0.5F, 0, -1})},
      {"ws", Tensor::from<float>({3}, {0.03125F, 0.0625F, 0.5F})},
      {"xs", Tensor::from<float>({}, {0.125F})},
      {"mask", Tensor::from<float>({3, 4}, {1, 1, 0, 1, 1, 1, 1, 1, 0, 1, 1, 1})}};
  run_pass("remove-dead-nodes", model.graph);
  std::erase_if(model.state, [&](const auto& entry) { return !model.graph.find(entry.first); });
  return model;
}

const Feed kRow{{"x", Tensor::from<float>({2, 4}, {0.3F, -90, 4, 0.06F, 1, 2, 3, 100})}};

// Scales that are powers of two leave nothing to round differently.
TEST_F(OnnxExport, WritesScaledIntegersAsQuantizeLinear) {
  for (const char* const inputs : {"int:8", "fixed:8,3", "int:5"}) {
    SCOPED_TRACE(inputs);
    expect_same(rounded_mlp("int:8,channel", inputs), kRow, 0);
    EXPECT_EQ(exported_.num_rounded, 2);
    EXPECT_TRUE(exported_.custom.empty());
  }
  // Weights are whole numbers in the file, without what the mask hides.
  bool has_codes = false;
  for (const auto& [name, tensor] : exported_.model.graph.initializers)
    has_codes = has_codes || (tensor.dtype() == DType::I8 && tensor.rank() == 2);
  EXPECT_TRUE(has_codes);
}

// A packed weight is read before its mask.
TEST_F(OnnxExport, WritesWeightsThatAreMaskedBehindTheirRoundingAsWholeNumbers) {
  io::Model model = rounded_mlp("int:8,channel", "int:8");
  const NodeId rounded = *model.graph.find("wq"), pruned = *model.graph.find("pruned");
  const NodeId product = *model.graph.find("y");
  model.graph.set_input(rounded, 0, model.graph.input(pruned, 0));
  model.graph.set_input(pruned, 0, {rounded, 0});
  model.graph.set_input(product, 1, {pruned, 0});
  expect_same(model, kRow, 0);
  EXPECT_EQ(exported_.num_rounded, 2);
}

TEST_F(OnnxExport, NamesFormatsThatOnnxHasNot) {
  const io::Model model = rounded_mlp("int:8,channel", "mxint:8");
  const io::onnx::ExportedModel exported = io::onnx::export_onnx(model);
  EXPECT_THAT(exported.custom, testing::ElementsAre("xq (mxint:8)"));
  EXPECT_EQ(exported.model.opsets.at(io::onnx::kCustomDomain), 1);
  const auto path = scratch_ / "c.onnx";
  io::onnx::write_onnx(path, exported.model);
  EXPECT_EQ(io::refusal(path.string(), [&] { io::load_model(path.string()); }),
            "an op is not supported: \"lathe::Quantize\" (node \"xq\", opset 1)");
}

TEST_F(OnnxExport, NamesOpsThatItCannotWrite) {
  io::Model model = io::load_model("mlp:4,3", {.seed = 5});
  model.graph = parse_graph(R"(
    x = input() : f32[B,4]
    offsets = input() : i32[S+1]
    y = select_in_sequence(x, offsets) {index=0}
    output logits <- y
  )");
  EXPECT_EQ(io::refusal("", [&] { io::onnx::export_onnx(model); }),
            "cannot be written as ONNX: select_in_sequence (node \"y\")");
}

}  // namespace
}  // namespace lathe::train
