#include "lathe/engine/packed_chain.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>
#include <vector>

#include "lathe/core/graph_text.h"
#include "lathe/core/number_format.h"

namespace lathe::engine {
namespace {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

// The same numbers in every format, about as large as keeps the size of x.
constexpr float kLargest = 1.7f;

std::vector<float> made_up_weights(std::int64_t size) {
  std::vector<float> weights(static_cast<std::size_t>(size * size));
  const float largest = kLargest / std::sqrt(static_cast<float>(size));
  std::uint32_t next = 1;
  for (float& weight : weights) {
    next = next * 1664525u + 1013904223u;
    weight = (static_cast<float>(next >> 8) * 0x1p-23f - 1) * largest;
  }
  return weights;
}

NamedTensors packed_weight(const NumberFormat& format, std::int64_t size) {
  const std::vector<float> weights = made_up_weights(size);
  const std::int64_t given = format.num_given_scales(size, size);
  const std::vector<float> scales(
      static_cast<std::size_t>(given),
      kLargest / std::sqrt(static_cast<float>(size)) / static_cast<float>(format.facts().maximum));
  const EncodedMatrix packed =
      format.encode({.rows = size, .columns = size, .x = weights.data(), .scales = scales.data()});
  NamedTensors states;
  states.emplace_back("codes",
                      Tensor::from<std::uint8_t>({size, format.code_bytes(size)}, packed.codes));
  if (!packed.scales.empty())
    states.emplace_back(
        "local", Tensor::from<std::uint8_t>({size, format.scale_bytes(size)}, packed.scales));
  if (given > 0) {
    std::vector<std::int64_t> dims = {size};
    if (given > size) dims.push_back(given / size);
    states.emplace_back("scale", Tensor::from<float>(dims, scales));
  }
  return states;
}

std::string state_text(const std::string& name, const Tensor& value) {
  return fmt::format("{} = state() : {}[{}]\n", name, value.dtype() == DType::U8 ? "u8" : "f32",
                     fmt::join(value.dims(), ","));
}

// Of `decode`, for one layer: operands that the format does not have are none between others.
std::string decode_operands(const NamedTensors& states, std::int64_t layer) {
  bool has_local = false, has_scale = false;
  for (const auto& [name, value] : states) {
    has_local = has_local || name == "local";
    has_scale = has_scale || name == "scale";
  }
  std::string operands = fmt::format("codes{}", layer);
  if (has_local || has_scale)
    operands += has_local ? fmt::format(", local{}", layer) : std::string(", none");
  if (has_scale) operands += fmt::format(", scale{}", layer);
  return operands;
}

std::string layer_text(const PackedChainShape& shape, const NamedTensors& states,
                       std::int64_t layer) {
  std::string text, x = fmt::format("x{}", layer), weight = fmt::format("w{}", layer);
  if (!shape.weight.empty()) {
    text += fmt::format("w{0} = decode({1}) {{format=\"{2}\", columns={3}}} : f32[{3},{3}]\n",
                        layer, decode_operands(states, layer), shape.weight, shape.size);
  }
  if (!shape.x.empty()) {
    text += fmt::format("q{} = quantize({}) {{format=\"{}\"}} : f32[T,{}]\n", layer, x, shape.x,
                        shape.size);
    x = fmt::format("q{}", layer);
  }
  return text + fmt::format("x{} = linear({}, {}) : f32[T,{}]\n", layer + 1, x, weight, shape.size);
}

}  // namespace

PackedChain make_packed_chain(const PackedChainShape& shape) {
  const NamedTensors states =
      shape.weight.empty() ? NamedTensors{{"w", Tensor::from<float>({shape.size, shape.size},
                                                                    made_up_weights(shape.size))}}
                           : packed_weight(*parse_format(shape.weight), shape.size);
  PackedChain chain;
  std::string text = fmt::format("symbols T\nx0 = input() : f32[T,{}]\n", shape.size);
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    for (const auto& [name, value] : states) {
      const std::string own = fmt::format("{}{}", name, layer);
      text += state_text(own, value);
      // A copy of its own: equal weights would stay in a cache.
      Tensor copy = value;
      copy.mutable_bytes();
      chain.state.emplace(own, std::move(copy));
    }
    text += layer_text(shape, states, layer);
  }
  text += fmt::format("output y <- x{}\n", shape.layers);
  chain.graph = parse_graph(text);
  for (const auto& [name, value] : states)
    chain.layer_bytes += static_cast<double>(value.num_bytes());
  return chain;
}

Tensor packed_chain_input(std::int64_t rows, std::int64_t size) {
  Tensor x(DType::F32, {rows, size});
  const std::span<float> numbers = x.mutable_data<float>();
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<float>(i * 37 % 101) * 0.02f - 1;
  return x;
}

}  // namespace lathe::engine
