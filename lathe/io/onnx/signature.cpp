#include "lathe/io/onnx/signature.h"

#include <algorithm>
#include <limits>
#include <ranges>

#include "lathe/core/error.h"
#include "lathe/core/quote_text.h"

namespace lathe::io::onnx {
namespace {

// What an op has from one opset on, until its next line.
struct Signature {
  std::string_view op;
  std::int64_t since;
  std::size_t most_inputs;
  std::string_view attributes;  ///< their names, with spaces between
};

constexpr std::size_t kAny = std::numeric_limits<std::size_t>::max();

// As ONNX's changelog of operators gives them for the opsets that are read. The first line of an op
// is of the opset it came with, or an older one than is read.
constexpr Signature kSignatures[] = {
    {"Abs", 6, 1, ""},
    {"Acos", 7, 1, ""},
    {"Acosh", 9, 1, ""},
    {"Add", 7, 2, ""},
    {"And", 7, 2, ""},
    {"ArgMax", 1, 1, "axis keepdims"},
    {"ArgMax", 12, 1, "axis keepdims select_last_index"},
    {"ArgMin", 1, 1, "axis keepdims"},
    {"ArgMin", 12, 1, "axis keepdims select_last_index"},
    {"Asin", 7, 1, ""},
    {"Asinh", 9, 1, ""},
    {"Atan", 7, 1, ""},
    {"Atanh", 9, 1, ""},
    {"Attention", 23, 6,
     "is_causal kv_num_heads q_num_heads qk_matmul_output_mode scale softcap softmax_precision"},
    {"Attention", 24, 7,
     "is_causal kv_num_heads q_num_heads qk_matmul_output_mode scale softcap softmax_precision"},
    {"Attention", 25, 7,
     "is_causal kv_num_heads left_window_size q_num_heads qk_matmul_output_mode right_window_size "
     "scale softcap softmax_precision"},
    {"AveragePool", 7, 1, "auto_pad count_include_pad kernel_shape pads strides"},
    {"AveragePool", 10, 1, "auto_pad ceil_mode count_include_pad kernel_shape pads strides"},
    {"AveragePool", 19, 1,
     "auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides"},
    {"BatchNormalization", 7, 5, "epsilon momentum spatial"},
    {"BatchNormalization", 9, 5, "epsilon momentum"},
    {"BatchNormalization", 14, 5, "epsilon momentum training_mode"},
    {"Cast", 6, 1, "to"},
    {"Cast", 19, 1, "saturate to"},
    {"Cast", 24, 1, "round_mode saturate to"},
    {"CastLike", 15, 2, ""},
    {"CastLike", 19, 2, "saturate"},
    {"CastLike", 24, 2, "round_mode saturate"},
    {"Ceil", 6, 1, ""},
    {"Celu", 12, 1, "alpha"},
    {"Clip", 6, 1, "max min"},
    {"Clip", 11, 3, ""},
    {"Concat", 4, kAny, "axis"},
    {"Constant", 1, 0, "value"},
    {"Constant", 11, 0, "sparse_value value"},
    {"Constant", 12, 0,
     "sparse_value value value_float value_floats value_int value_ints value_string value_strings"},
    {"ConstantOfShape", 9, 1, "value"},
    {"Conv", 1, 3, "auto_pad dilations group kernel_shape pads strides"},
    {"ConvTranspose", 1, 3,
     "auto_pad dilations group kernel_shape output_padding output_shape pads strides"},
    {"Cos", 7, 1, ""},
    {"Cosh", 9, 1, ""},
    {"CumSum", 11, 2, "exclusive reverse"},
    {"DepthToSpace", 1, 1, "blocksize"},
    {"DepthToSpace", 11, 1, "blocksize mode"},
    {"DequantizeLinear", 10, 3, ""},
    {"DequantizeLinear", 13, 3, "axis"},
    {"DequantizeLinear", 21, 3, "axis block_size"},
    {"DequantizeLinear", 23, 3, "axis block_size output_dtype"},
    {"Div", 7, 2, ""},
    {"Dropout", 7, 1, "ratio"},
    {"Dropout", 12, 3, "seed"},
    {"DynamicQuantizeLinear", 11, 1, ""},
    {"Einsum", 12, kAny, "equation"},
    {"Elu", 6, 1, "alpha"},
    {"Equal", 7, 2, ""},
    {"Erf", 9, 1, ""},
    {"Exp", 6, 1, ""},
    {"Expand", 8, 2, ""},
    {"EyeLike", 9, 1, "dtype k"},
    {"Flatten", 1, 1, "axis"},
    {"Floor", 6, 1, ""},
    {"Gather", 1, 2, "axis"},
    {"GatherElements", 11, 2, "axis"},
    {"GatherND", 11, 2, ""},
    {"GatherND", 12, 2, "batch_dims"},
    {"Gelu", 20, 1, "approximate"},
    {"Gemm", 7, 3, "alpha beta transA transB"},
    {"GlobalAveragePool", 1, 1, ""},
    {"GlobalMaxPool", 1, 1, ""},
    {"Greater", 7, 2, ""},
    {"GreaterOrEqual", 12, 2, ""},
    {"GroupNormalization", 18, 3, "epsilon num_groups"},
    {"GroupNormalization", 21, 3, "epsilon num_groups stash_type"},
    {"HardSigmoid", 6, 1, "alpha beta"},
    {"HardSwish", 14, 1, ""},
    {"Hardmax", 1, 1, "axis"},
    {"Identity", 1, 1, ""},
    {"InstanceNormalization", 6, 3, "epsilon"},
    {"IsInf", 10, 1, "detect_negative detect_positive"},
    {"IsNaN", 9, 1, ""},
    {"LRN", 1, 1, "alpha beta bias size"},
    // ONNX has it since opset 17. onnxruntime had the same one in this domain before, which stands
    // in its optimized models of older opsets.
    {"LayerNormalization", 1, 3, "axis epsilon stash_type"},
    {"LeakyRelu", 6, 1, "alpha"},
    {"Less", 7, 2, ""},
    {"LessOrEqual", 12, 2, ""},
    {"Log", 6, 1, ""},
    {"LogSoftmax", 1, 1, "axis"},
    {"LpNormalization", 1, 1, "axis p"},
    {"MatMul", 1, 2, ""},
    {"MatMulInteger", 10, 4, ""},
    {"Max", 6, kAny, ""},
    {"MaxPool", 1, 1, "auto_pad kernel_shape pads strides"},
    {"MaxPool", 8, 1, "auto_pad kernel_shape pads storage_order strides"},
    {"MaxPool", 10, 1, "auto_pad ceil_mode dilations kernel_shape pads storage_order strides"},
    {"Mean", 6, kAny, ""},
    {"MeanVarianceNormalization", 9, 1, "axes"},
    {"Min", 6, kAny, ""},
    {"Mish", 18, 1, ""},
    {"Mod", 10, 2, "fmod"},
    {"Mul", 7, 2, ""},
    {"Neg", 6, 1, ""},
    {"NegativeLogLikelihoodLoss", 12, 3, "ignore_index reduction"},
    {"Not", 1, 1, ""},
    {"OneHot", 9, 3, "axis"},
    {"Or", 7, 2, ""},
    {"PRelu", 7, 2, ""},
    {"Pad", 2, 1, "mode pads value"},
    {"Pad", 11, 3, "mode"},
    {"Pad", 18, 4, "mode"},
    {"Pow", 7, 2, ""},
    {"QLinearMatMul", 10, 8, ""},
    {"QuantizeLinear", 10, 3, ""},
    {"QuantizeLinear", 13, 3, "axis"},
    {"QuantizeLinear", 19, 3, "axis saturate"},
    {"QuantizeLinear", 21, 3, "axis block_size output_dtype saturate"},
    {"QuantizeLinear", 23, 3, "axis block_size output_dtype precision saturate"},
    {"RMSNormalization", 23, 2, "axis epsilon stash_type"},
    {"Range", 11, 3, ""},
    {"Range", 27, 3, "stash_type"},
    {"Reciprocal", 6, 1, ""},
    {"ReduceL1", 1, 1, "axes keepdims"},
    {"ReduceL1", 18, 2, "keepdims noop_with_empty_axes"},
    {"ReduceL2", 1, 1, "axes keepdims"},
    {"ReduceL2", 18, 2, "keepdims noop_with_empty_axes"},
    {"ReduceLogSum", 1, 1, "axes keepdims"},
    {"ReduceLogSum", 18, 2, "keepdims noop_with_empty_axes"},
    {"ReduceLogSumExp", 1, 1, "axes keepdims"},
    {"ReduceLogSumExp", 18, 2, "keepdims noop_with_empty_axes"},
    {"ReduceMax", 1, 1, "axes keepdims"},
    {"ReduceMax", 18, 2, "keepdims noop_with_empty_axes"},
    {"ReduceMean", 1, 1, "axes keepdims"},
    {"ReduceMean", 18, 2, "keepdims noop_with_empty_axes"},
    {"ReduceMin", 1, 1, "axes keepdims"},
    {"ReduceMin", 18, 2, "keepdims noop_with_empty_axes"},
    {"ReduceProd", 1, 1, "axes keepdims"},
    {"ReduceProd", 18, 2, "keepdims noop_with_empty_axes"},
    {"ReduceSum", 1, 1, "axes keepdims"},
    {"ReduceSum", 13, 2, "keepdims noop_with_empty_axes"},
    {"ReduceSumSquare", 1, 1, "axes keepdims"},
    {"ReduceSumSquare", 18, 2, "keepdims noop_with_empty_axes"},
    {"Relu", 6, 1, ""},
    {"Reshape", 5, 2, ""},
    {"Reshape", 14, 2, "allowzero"},
    {"Resize", 10, 2, "mode"},
    {"Resize", 11, 4,
     "coordinate_transformation_mode cubic_coeff_a exclude_outside extrapolation_value mode "
     "nearest_mode"},
    {"Resize", 18, 4,
     "antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside "
     "extrapolation_value keep_aspect_ratio_policy mode nearest_mode"},
    {"ReverseSequence", 10, 2, "batch_axis time_axis"},
    {"Round", 11, 1, ""},
    {"Scatter", 9, 3, "axis"},
    {"ScatterElements", 11, 3, "axis"},
    {"ScatterElements", 16, 3, "axis reduction"},
    {"ScatterND", 11, 3, ""},
    {"ScatterND", 16, 3, "reduction"},
    {"Selu", 6, 1, "alpha gamma"},
    {"Shape", 1, 1, ""},
    {"Shape", 15, 1, "end start"},
    {"Shrink", 9, 1, "bias lambd"},
    {"Sigmoid", 6, 1, ""},
    {"Sign", 9, 1, ""},
    {"Sin", 7, 1, ""},
    {"Sinh", 9, 1, ""},
    {"Size", 1, 1, ""},
    {"Slice", 1, 1, "axes ends starts"},
    {"Slice", 10, 5, ""},
    {"Softmax", 1, 1, "axis"},
    {"SoftmaxCrossEntropyLoss", 12, 3, "ignore_index reduction"},
    {"Softplus", 1, 1, ""},
    {"Softsign", 1, 1, ""},
    {"SpaceToDepth", 1, 1, "blocksize"},
    {"Split", 2, 1, "axis split"},
    {"Split", 13, 2, "axis"},
    {"Split", 18, 2, "axis num_outputs"},
    {"Sqrt", 6, 1, ""},
    {"Squeeze", 1, 1, "axes"},
    {"Squeeze", 13, 2, ""},
    {"Sub", 7, 2, ""},
    {"Sum", 6, kAny, ""},
    {"Swish", 24, 1, "alpha"},
    {"Tan", 7, 1, ""},
    {"Tanh", 6, 1, ""},
    {"ThresholdedRelu", 10, 1, "alpha"},
    {"Tile", 6, 2, ""},
    {"TopK", 1, 1, "axis k"},
    {"TopK", 10, 2, "axis"},
    {"TopK", 11, 2, "axis largest sorted"},
    {"Transpose", 1, 1, "perm"},
    {"Trilu", 14, 2, "upper"},
    {"Unsqueeze", 1, 1, "axes"},
    {"Unsqueeze", 13, 2, ""},
    {"Upsample", 7, 1, "mode scales"},
    {"Upsample", 9, 2, "mode"},
    {"Where", 9, 3, ""},
    {"Xor", 7, 2, ""},
};

// Ops that ONNX took back: the opset that has them no longer, and what it has instead.
struct Withdrawn {
  std::string_view op;
  std::int64_t since;
  std::string_view successor;
};

constexpr Withdrawn kWithdrawn[] = {
    {"Scatter", 11, "ScatterElements"},
    {"Upsample", 10, "Resize"},
};

// The line that holds in an opset; fails where the opset has no such op.
const Signature* find_signature(std::string_view op, std::int64_t opset) {
  const auto lines = std::ranges::equal_range(kSignatures, op, {}, &Signature::op);
  if (lines.empty()) return nullptr;
  if (opset < lines.front().since)
    fail("{} (opset {}): this opset has no such op, which came with opset {}", op, opset,
         lines.front().since);
  for (const Withdrawn& withdrawn : kWithdrawn)
    if (withdrawn.op == op && withdrawn.since <= opset)
      fail("{} (opset {}): opset {} took this op back: expected {}", op, opset, withdrawn.since,
           withdrawn.successor);
  const Signature* found = nullptr;
  for (const Signature& line : lines)
    if (line.since <= opset) found = &line;
  return found;
}

bool has_word(std::string_view words, std::string_view word) {
  return std::ranges::any_of(words | std::views::split(' '), [&](auto part) {
    return std::string_view(part.begin(), part.end()) == word;
  });
}

}  // namespace

bool has_signature(std::string_view op) {
  return std::ranges::binary_search(kSignatures, op, {}, &Signature::op);
}

void check_signature(const OnnxNode& node, std::int64_t opset) {
  if (!node.domain.empty()) return;
  const Signature* signature = find_signature(node.op, opset);
  if (signature == nullptr) return;
  for (const auto& [name, value] : node.attributes) {
    // Names that begin so are a tool's own notes.
    if (name.starts_with("__") || has_word(signature->attributes, name)) continue;
    fail("{} (opset {}): attribute {} is none of this op's in this opset", node.op, opset,
         quote_text(name));
  }
  if (node.inputs.size() > signature->most_inputs)
    fail("{} (opset {}): {} operands, expected at most {}", node.op, opset, node.inputs.size(),
         signature->most_inputs);
}

}  // namespace lathe::io::onnx
