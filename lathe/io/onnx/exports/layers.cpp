#include <cmath>

#include "lathe/io/onnx/onnx_writer.h"
#include "lathe/ops/rope_turn.h"

// Products, norms, windows and attention.
namespace lathe::io::onnx::exports_layers {
namespace {

void write_linear(ExportCall& call) {
  // A product with a matrix [k,n] and a sum: what other programs write for any number of axes.
  const std::string weight = write_weight(call, 1, true);
  if (!call.has(2)) {
    call.give_node("MatMul", {call.input(0), weight});
    return;
  }
  const std::string product = call.add("MatMul", {call.input(0), weight}, {}, "product");
  call.give_node("Add", {product, call.input(2)});
}

std::string flipped(ExportCall& call, const std::string& value, std::size_t rank) {
  std::vector<std::int64_t> axes;
  for (std::size_t i = 0; i < rank; ++i) axes.push_back(static_cast<std::int64_t>(i));
  std::swap(axes[rank - 1], axes[rank - 2]);
  return call.add("Transpose", {value}, {{"perm", axes}}, "flipped");
}

void write_matmul(ExportCall& call) {
  std::string a = call.input(0), b = call.input(1);
  if (call.attributes().flag("transpose_a")) a = flipped(call, a, call.type(0).rank());
  if (call.attributes().flag("transpose_b")) b = flipped(call, b, call.type(1).rank());
  call.give_node("MatMul", {a, b});
}

void write_layer_norm(ExportCall& call) {
  call.give_node("LayerNormalization", call.inputs(),
                 {{"axis", std::int64_t{-1}}, {"epsilon", call.attributes().real("eps")}});
}

// Opset 17 has no op for it.
void write_rms_norm(ExportCall& call) {
  const std::string x = call.input(0);
  const std::string mean =
      call.add("ReduceMean", {call.add("Mul", {x, x})},
               {{"axes", std::vector<std::int64_t>{-1}}, {"keepdims", std::int64_t{1}}});
  const std::string root =
      call.add("Sqrt", {call.add("Add", {mean, call.number(call.attributes().real("eps"))})});
  call.give_node("Mul", {call.add("Div", {x, root}), call.input(1)});
}

void write_batch_norm(ExportCall& call) {
  call.give_node("BatchNormalization", call.inputs(), {{"epsilon", call.attributes().real("eps")}});
}

void write_softmax(ExportCall& call) {
  call.give_node(call.graph().is(call.node(), "softmax") ? "Softmax" : "LogSoftmax",
                 {call.input(0)}, {{"axis", call.attributes().integer("axis")}});
}

void write_conv2d(ExportCall& call) {
  const AttributeReader attributes = call.attributes();
  const Type& weight = call.type(1);
  std::vector<std::string> inputs{call.input(0), write_weight(call, 1, false)};
  if (call.has(2)) inputs.push_back(call.input(2));
  call.give_node("Conv", inputs,
                 {{"kernel_shape", std::vector<std::int64_t>{weight.shape[2].constant(),
                                                             weight.shape[3].constant()}},
                  {"strides", attributes.integers("strides")},
                  {"pads", attributes.integers("pads")},
                  {"dilations", attributes.integers("dilations")},
                  {"group", attributes.integer("groups")}});
}

void write_pool(ExportCall& call) {
  const AttributeReader attributes = call.attributes();
  const bool is_average = call.graph().is(call.node(), "avg_pool2d");
  std::vector<std::int64_t> strides = attributes.integers("strides");
  if (strides.empty()) strides = attributes.integers("kernel");
  std::map<std::string, AttributeValue, std::less<>> written{
      {"kernel_shape", attributes.integers("kernel")},
      {"strides", strides},
      {"pads", attributes.integers("pads")}};
  if (is_average) written["count_include_pad"] = std::int64_t{attributes.flag("count_include_pad")};
  call.give_node(is_average ? "AveragePool" : "MaxPool", {call.input(0)}, std::move(written));
}

// Heads apart: [B,L,h*d] as [B,h,L,d], or [B,h,d,L] for keys.
std::string split_heads(ExportCall& call, std::size_t index, std::int64_t heads, bool is_turned) {
  const std::int64_t size = call.type(index).axis(-1).constant() / heads;
  const std::string apart =
      call.add("Reshape", {call.input(index), call.integers({0, 0, heads, size})}, {}, "apart");
  const std::vector<std::int64_t> axes =
      is_turned ? std::vector<std::int64_t>{0, 2, 3, 1} : std::vector<std::int64_t>{0, 2, 1, 3};
  return call.add("Transpose", {apart}, {{"perm", axes}}, "heads");
}

// Keys or values that several heads share, once for each of them.
std::string repeat_heads(ExportCall& call, const std::string& value, std::int64_t heads,
                         std::int64_t times) {
  if (times == 1) return value;
  const std::string apart = call.add("Unsqueeze", {value, call.integers({2})}, {}, "shared");
  const std::string wide =
      call.add("Expand", {apart, call.integers({1, 1, times, 1, 1})}, {}, "repeated");
  // The two axes behind are as they were.
  const std::string shape = call.add(
      "Concat",
      {call.add("Shape", {value}, {{"start", std::int64_t{0}}, {"end", std::int64_t{1}}}),
       call.integers({heads * times}), call.add("Shape", {value}, {{"start", std::int64_t{2}}})},
      {{"axis", std::int64_t{0}}});
  return call.add("Reshape", {wide, shape}, {}, "joined");
}

void write_attention(ExportCall& call) {
  const AttributeReader attributes = call.attributes();
  if (call.type(0).rank() != 3 || call.has(4))
    fail("attention of packed sequences is not written in ONNX");
  if (!attributes.text("weight_format").empty())
    fail("attention weights rounded to {} are not written in ONNX",
         attributes.text("weight_format"));
  const std::int64_t heads = attributes.integer("heads");
  const std::int64_t kv_heads =
      attributes.integer("kv_heads") == 0 ? heads : attributes.integer("kv_heads");
  const std::int64_t size = call.type(0).axis(-1).constant() / heads;
  double scale = attributes.real("scale");
  if (scale == 0) scale = 1.0 / std::sqrt(static_cast<double>(size));
  const std::string q = split_heads(call, 0, heads, false);
  const std::string k =
      repeat_heads(call, split_heads(call, 1, kv_heads, true), kv_heads, heads / kv_heads);
  const std::string v =
      repeat_heads(call, split_heads(call, 2, kv_heads, false), kv_heads, heads / kv_heads);
  std::string scores = call.add("MatMul", {q, k}, {}, "scores");
  scores = call.add("Mul", {scores, call.number(scale)}, {}, "scaled");
  constexpr double kHidden = -3.4028234663852886e38;
  const auto hide = [&](const std::string& is_seen) {
    const std::string bias =
        call.add("Where", {is_seen, call.number(0), call.number(kHidden)}, {}, "bias");
    scores = call.add("Add", {scores, bias}, {}, "masked");
  };
  if (call.has(3)) {
    const std::string truth = call.add("Cast", {call.input(3)}, {{"to", onnx_code(DType::Bool)}});
    hide(call.add("Unsqueeze", {truth, call.integers({1, 2})}, {}, "keys"));
  }
  if (attributes.flag("causal")) {
    const std::string shape =
        call.add("Shape", {scores}, {{"start", std::int64_t{2}}, {"end", std::int64_t{4}}});
    const std::string ones =
        call.add("ConstantOfShape", {shape}, {{"value", Tensor::from<std::int64_t>({1}, {1})}});
    const std::string lower = call.add("Trilu", {ones}, {{"upper", std::int64_t{0}}});
    hide(call.add("Cast", {lower}, {{"to", onnx_code(DType::Bool)}}));
  }
  const std::string weights =
      call.add("Softmax", {scores}, {{"axis", std::int64_t{-1}}}, "weights");
  const std::string mixed = call.add("MatMul", {weights, v}, {}, "mixed");
  const std::string turned =
      call.add("Transpose", {mixed}, {{"perm", std::vector<std::int64_t>{0, 2, 1, 3}}}, "turned");
  call.give_node("Reshape", {turned, call.integers({0, 0, heads * size})});
}

// Pairs of features, turned by the angles of their positions: halves of a head, or neighbours.
void write_rope(ExportCall& call) {
  const AttributeReader attributes = call.attributes();
  const Type& x = call.type(0);
  if (x.rank() != 3) fail("rotary positions of {} are not written in ONNX", to_text(x));
  const std::int64_t heads = attributes.integer("heads");
  const std::int64_t size = x.axis(-1).constant() / heads, half = size / 2;
  const bool is_interleaved = attributes.flag("interleaved");
  std::vector<float> frequencies;
  for (const double frequency : ops::rope_frequencies(attributes, size))
    frequencies.push_back(static_cast<float>(frequency));
  const std::string places = call.add(
      "Unsqueeze",
      {call.add("Cast", {call.input(1)}, {{"to", onnx_code(DType::F32)}}), call.integers({2, 3})});
  const std::string angles = call.add(
      "Mul",
      {places, call.constant(Tensor::from<float>({half}, std::span<const float>(frequencies)),
                             "frequencies")});
  const std::string cosine = call.add("Cos", {angles}), sine = call.add("Sin", {angles});
  // Both parts of all pairs, [B,L,heads,half] each.
  const std::int64_t axis = is_interleaved ? 4 : 3;
  const std::string apart = call.add(
      "Reshape", {call.input(0),
                  call.integers(is_interleaved ? std::vector<std::int64_t>{0, 0, heads, half, 2}
                                               : std::vector<std::int64_t>{0, 0, heads, size})});
  const auto part = [&](std::int64_t index) {
    const std::int64_t width = is_interleaved ? 1 : half;
    const std::string cut =
        call.add("Slice", {apart, call.integers({index * width}),
                           call.integers({(index + 1) * width}), call.integers({axis})});
    return is_interleaved ? call.add("Squeeze", {cut, call.integers({4})}) : cut;
  };
  const std::string a = part(0), b = part(1);
  const auto mixed = [&](const char* op, const std::string& first, const std::string& second) {
    const std::string turned =
        call.add(op, {call.add("Mul", {a, first}), call.add("Mul", {b, second})});
    return is_interleaved ? call.add("Unsqueeze", {turned, call.integers({4})}) : turned;
  };
  const std::string joined = call.add(
      "Concat", {mixed("Sub", cosine, sine), mixed("Add", sine, cosine)}, {{"axis", axis}});
  call.give_node("Reshape", {joined, call.integers({0, 0, heads * size})});
}

const std::vector<Register> registrations = [] {
  std::vector<Register> result;
  const OnnxWriter writers[] = {
      {.name = "attention", .write = write_attention, .takes_wide = true},
      {.name = "avg_pool2d", .write = write_pool},
      {.name = "batch_norm", .write = write_batch_norm},
      {.name = "conv2d", .write = write_conv2d},
      {.name = "layer_norm", .write = write_layer_norm},
      {.name = "linear", .write = write_linear},
      {.name = "log_softmax", .write = write_softmax},
      {.name = "matmul", .write = write_matmul},
      {.name = "max_pool2d", .write = write_pool},
      {.name = "rms_norm", .write = write_rms_norm},
      {.name = "rope", .write = write_rope, .takes_wide = true},
      {.name = "softmax", .write = write_softmax},
  };
  for (const OnnxWriter& writer : writers) result.emplace_back(writer);
  return result;
}();

}  // namespace
}  // namespace lathe::io::onnx::exports_layers
