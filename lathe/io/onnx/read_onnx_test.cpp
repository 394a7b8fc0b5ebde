#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lathe/io/onnx/import_onnx.h"
#include "lathe/io/onnx/wire.pb.h"
#include "lathe/io/testing/refusal.h"
#include "lathe/io/testing/scratch_directory.h"

namespace lathe::io::onnx {
namespace {

using testing::ElementsAre;

// y = x * w + b over rows of three, with a shape computed from x on the way.
OnnxModel small_model() {
  OnnxModel model{.opsets = {{"", 17}}};
  model.graph.initializers = {
      {"w", Tensor::from<float>({3, 2}, {1, 2, 3, 4, 5, 6})},
      {"b", Tensor::from<float>({2}, {0.5F, -0.5F})},
      {"open", Tensor::from<std::int64_t>({1}, {-1})},
      {"first", Tensor::from<std::int64_t>({1}, {0})},
  };
  model.graph.inputs = {{.name = "x", .shape = {{.name = "rows"}, {.number = 3}}}};
  model.graph.outputs = {{.name = "y", .shape = {{.name = "rows"}, {.number = 2}}}};
  model.graph.nodes = {
      {.op = "MatMul", .name = "product", .inputs = {"x", "w"}, .outputs = {"p"}},
      {.op = "Add", .name = "sum", .inputs = {"p", "b"}, .outputs = {"s"}},
      {.op = "Shape", .name = "shape", .inputs = {"s"}, .outputs = {"sizes"}},
      {.op = "Gather", .name = "rows", .inputs = {"sizes", "first"}, .outputs = {"n"}},
      {.op = "Concat",
       .name = "target",
       .inputs = {"n", "open"},
       .outputs = {"to"},
       .attributes = {{"axis", std::int64_t{0}}}},
      {.op = "Reshape", .name = "same", .inputs = {"s", "to"}, .outputs = {"r"}},
      {.op = "Softmax",
       .name = "soft",
       .inputs = {"r"},
       .outputs = {"y"},
       .attributes = {{"axis", std::int64_t{-1}}}},
  };
  return model;
}

std::string refusal_of(const OnnxModel& model) {
  return refusal("", [&] { import_onnx(parse_onnx(serialize_onnx(model), {})); });
}

TEST(ReadOnnx, GivesBackWhatWasWritten) {
  const OnnxModel model = parse_onnx(serialize_onnx(small_model()), {});
  EXPECT_EQ(model.opsets.at(""), 17);
  EXPECT_EQ(model.graph.nodes.size(), 7u);
  EXPECT_EQ(model.graph.nodes[4].name, "target");
  EXPECT_EQ(std::get<std::int64_t>(model.graph.nodes[4].attributes.at("axis")), 0);
  EXPECT_EQ(model.graph.inputs[0].shape[0].name, "rows");
  EXPECT_TRUE(identical(model.graph.initializers[0].second,
                        Tensor::from<float>({3, 2}, {1, 2, 3, 4, 5, 6})));
}

// Elements may stand in fields of their types instead of raw bytes.
TEST(ReadOnnx, ReadsTypedElements) {
  wire::Model message;
  wire::Graph& graph = *message.mutable_graph();
  const auto add = [&](const char* name, int type, std::int64_t size) -> wire::Tensor& {
    wire::Tensor& tensor = *graph.add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(type);
    tensor.add_dims(size);
    return tensor;
  };
  wire::Tensor& reals = add("reals", 1, 2);
  reals.add_float_data(1.5F);
  reals.add_float_data(-2);
  wire::Tensor& truths = add("truths", 9, 2);
  truths.add_int32_data(1);
  truths.add_int32_data(0);
  wire::Tensor& halves = add("halves", 10, 1);
  halves.add_int32_data(0x3c00);  // 1 in half precision
  add("large", 7, 1).add_int64_data(std::int64_t{1} << 40);
  add("small", 3, 1).add_int32_data(-7);
  add("double", 11, 1).add_double_data(0.1);
  const OnnxModel model = parse_onnx(message.SerializeAsString(), {});
  const auto at = [&](std::size_t i) { return model.graph.initializers[i].second; };
  EXPECT_TRUE(identical(at(0), Tensor::from<float>({2}, {1.5F, -2})));
  EXPECT_TRUE(identical(at(1), Tensor::from<bool>({2}, {true, false})));
  EXPECT_EQ(at(2).dtype(), DType::F16);
  EXPECT_EQ(at(2).at(0), 1);
  EXPECT_EQ(at(3).at(0), std::ldexp(1.0, 40));
  EXPECT_TRUE(identical(at(4), Tensor::from<std::int8_t>({1}, {-7})));
  EXPECT_EQ(at(5).at(0), 0.1);
}

class ExternalData : public testing::Test {
 protected:
  ExternalData() {
    std::filesystem::create_directory(scratch_ / "model");
    scratch_.write("model/weights.bin", std::string_view("\0\0\0\0\0\0\x80\x3f\0\0\0\x40", 12));
    scratch_.write("secret.bin", std::string(64, 's'));
    std::filesystem::create_symlink("../secret.bin", scratch_ / "model/link.bin");
  }

  // What reading says of a tensor of two floats at this place.
  std::string read(const std::string& location, const std::string& offset,
                   const std::string& length = "8") {
    wire::Model message;
    wire::Tensor& tensor = *message.mutable_graph()->add_initializer();
    tensor.set_name("w");
    tensor.set_data_type(1);
    tensor.add_dims(2);
    tensor.set_data_location(1);
    for (const auto& [key, value] : {std::pair{"location", location}, std::pair{"offset", offset},
                                     std::pair{"length", length}}) {
      wire::KeyValue& entry = *tensor.add_external_data();
      entry.set_key(key);
      entry.set_value(value);
    }
    const auto path = scratch_.write("model/m.onnx", message.SerializeAsString());
    return refusal(path.string(), [&] { last_ = read_onnx(path); });
  }

  ScratchDirectory scratch_;
  OnnxModel last_;
};

TEST_F(ExternalData, IsReadBesideTheModel) {
  EXPECT_EQ(read("weights.bin", "4"), "accepted");
  EXPECT_TRUE(
      identical(last_.graph.initializers[0].second, Tensor::from<float>({2}, {1.0F, 2.0F})));
}

TEST_F(ExternalData, IsConfinedToTheFolder) {
  EXPECT_NE(read("../secret.bin", "0"), "accepted");
  EXPECT_NE(read((scratch_ / "secret.bin").string(), "0"), "accepted");
  EXPECT_NE(read("link.bin", "0"), "accepted");
  EXPECT_EQ(
      read("weights.bin", "8"),
      "initializer \"w\": external data \"weights.bin\": 8 bytes at 8 are asked for, which it "
      "has not; the file has 12");
  EXPECT_EQ(read("weights.bin", "-4"),
            "initializer \"w\": external data: offset is \"-4\", expected a number");
  EXPECT_EQ(read("weights.bin", "0", "4"),
            "initializer \"w\": external data \"weights.bin\": 4 bytes at 0 are asked for, and the "
            "shape needs 8; the file has 12");
}

TEST(ReadOnnx, RefusesWhatIsNoModel) {
  EXPECT_EQ(refusal("", [] { parse_onnx("no protobuf", {}); }),
            "is no ONNX model: its bytes cannot be parsed as protobuf");
  EXPECT_EQ(refusal("", [] { parse_onnx("", {}); }), "is no ONNX model: it has no graph");
}

TEST(ImportOnnx, FoldsChainsOfShapesAndKeepsSymbols) {
  const ImportedGraph imported = import_onnx(small_model());
  const NodeId y = imported.graph.output("y")->node;
  EXPECT_EQ(to_text(imported.graph.types(y)[0]), "f32[B,2]");
  EXPECT_TRUE(imported.graph.nodes_of("reshape").empty());
  EXPECT_EQ(imported.graph.nodes_of("linear").size(), 1u);
  // A weight is stored as ours are, a row for each output.
  EXPECT_TRUE(identical(imported.state.at("w"), Tensor::from<float>({2, 3}, {1, 3, 5, 2, 4, 6})));
}

TEST(ImportOnnx, NamesEveryOpThatIsMissingAtOnce) {
  OnnxModel model = small_model();
  model.graph.nodes[1].op = "NonZero";
  model.graph.nodes[6].op = "If";
  model.graph.nodes[6].attributes["then_branch"] = std::int64_t{1};
  model.graph.nodes.push_back(
      {.op = "NonZero", .name = "again", .inputs = {"y"}, .outputs = {"z"}});
  model.graph.nodes.push_back(
      {.op = "Gelu", .domain = "com.example", .name = "own", .inputs = {"y"}, .outputs = {"g"}});
  EXPECT_EQ(
      refusal_of(model),
      "ops are not supported: \"If\" (node \"soft\", opset 17), \"NonZero\" (node \"sum\" and "
      "1 more, opset 17), \"com.example::Gelu\" (node \"own\", opset 1)");
}

TEST(ImportOnnx, RefusesGraphsThatDoNotHangTogether) {
  OnnxModel cyclic = small_model();
  cyclic.graph.nodes[0].inputs[0] = "r";
  EXPECT_EQ(refusal_of(cyclic), "node \"product\" (\"MatMul\") is part of a cycle or behind one");
  OnnxModel open = small_model();
  open.graph.nodes[1].inputs[1] = "bias";
  EXPECT_EQ(refusal_of(open), "node \"sum\" (\"Add\"): reads \"bias\", which nobody makes");
  OnnxModel twice = small_model();
  twice.graph.nodes[1].outputs[0] = "p";
  EXPECT_EQ(refusal_of(twice), "node \"sum\" (\"Add\"): value \"p\" is made twice");
  OnnxModel misshapen = small_model();
  misshapen.graph.initializers[0].second = Tensor::from<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(
      refusal_of(misshapen),
      "node \"product\" (\"MatMul\"): cannot multiply f32[B,3] by weight f32[3,2]: inner sizes "
      "3 and 2 differ");
  OnnxModel old = small_model();
  old.opsets[""] = 6;
  EXPECT_EQ(refusal_of(old), "is written for opset 6: expected 7 to 27");
  OnnxModel nothing = small_model();
  nothing.graph.outputs[0].name = "z";
  EXPECT_EQ(refusal_of(nothing), "output \"z\" is made by nobody");
}

TEST(ImportOnnx, RefusesAnOutputOfAnotherShapeThanTheFileSays) {
  OnnxModel model = small_model();
  model.graph.outputs[0].shape[1].number = 3;
  EXPECT_EQ(refusal_of(model), "output \"y\" is f32[B,2], and the file says f32[\"rows\",3]");
  model.graph.outputs[0].shape.pop_back();
  EXPECT_EQ(refusal_of(model), "output \"y\" is f32[B,2], and the file says f32[\"rows\"]");
}

// Nodes may stand in any order that can be sorted.
TEST(ImportOnnx, SortsNodes) {
  OnnxModel model = small_model();
  std::swap(model.graph.nodes[0], model.graph.nodes[6]);
  EXPECT_EQ(to_text(import_onnx(model).graph.type(*import_onnx(model).graph.output("y"))),
            "f32[B,2]");
}

TEST(ImportOnnx, RefusesSizesThatDoNotFit) {
  OnnxModel model = small_model();
  model.graph.nodes[5].inputs[1] = "sizes of others";
  model.graph.initializers.emplace_back("sizes of others", Tensor::from<std::int64_t>({2}, {7, 2}));
  EXPECT_EQ(refusal_of(model),
            "node \"same\": cannot reshape f32[B,2] to f32[7,2]: 2*B and 14 elements differ");
  // The same of what is computed while reading.
  model.graph.nodes[5].inputs[0] = "w";
  EXPECT_EQ(refusal_of(model),
            "node \"same\" (\"Reshape\"): cannot reshape f32[3,2] to f32[7,2]: 6 and 14 elements "
            "differ");
}

TEST(ImportOnnx, RefusesFiltersOfOtherAxesThanTheirImages) {
  OnnxModel model = small_model();
  model.graph.inputs[0].shape = {{.name = "rows"}, {.number = 1}, {.number = 4}, {.number = 4}};
  for (const char* const op : {"Conv", "ConvTranspose"}) {
    model.graph.nodes[0].op = op;
    EXPECT_EQ(refusal_of(model),
              fmt::format("node \"product\" (\"{}\"): {} (opset 17): weight f32[3,2] does not fit "
                          "f32[B,1,4,4]",
                          op, op));
  }
}

TEST(ImportOnnx, RefusesToReshapeSizesToFewerThanNone) {
  OnnxModel model = small_model();
  model.graph.initializers.emplace_back("fewer", Tensor::from<std::int64_t>({1}, {-2}));
  model.graph.nodes[3] = {
      .op = "Reshape", .name = "rows", .inputs = {"sizes", "fewer"}, .outputs = {"n"}};
  EXPECT_NE(refusal_of(model), "accepted");
}

TEST(ImportOnnx, RefusesBatchNormsWithoutChannels) {
  OnnxModel model = small_model();
  model.graph.inputs[0].shape.pop_back();
  model.graph.nodes[0] = {.op = "BatchNormalization",
                          .name = "norm",
                          .inputs = {"x", "b", "b", "b", "b"},
                          .outputs = {"p"},
                          .attributes = {{"training_mode", std::int64_t{1}}}};
  EXPECT_EQ(refusal_of(model),
            "node \"norm\" (\"BatchNormalization\"): BatchNormalization (opset 17): f32[B] has no "
            "channels");
}

// The least number of 64 bits has no opposite, and its quotient by -1 is no number.
TEST(ImportOnnx, RefusesSizesThatAreNoNumbers) {
  for (const char* const op : {"Div", "Mul", "Mod"}) {
    SCOPED_TRACE(op);
    OnnxModel model = small_model();
    model.graph.initializers.emplace_back(
        "least", Tensor::from<std::int64_t>({1}, {std::numeric_limits<std::int64_t>::min()}));
    model.graph.nodes.push_back(
        {.op = "Mul", .name = "many", .inputs = {"n", "least"}, .outputs = {"m"}});
    model.graph.nodes.push_back(
        {.op = op, .name = "few", .inputs = {"m", "open"}, .outputs = {"f"}});
    model.graph.nodes[4].inputs[0] = "f";
    EXPECT_NE(refusal_of(model), "accepted");
  }
}

}  // namespace
}  // namespace lathe::io::onnx
