#include "lathe/models/initialize.h"

#include <cmath>
#include <numbers>

#include "lathe/core/philox.h"

namespace lathe::models {
namespace {

// FNV-1a: spreads a name over 64 bits, the same on every machine.
std::uint64_t hash_name(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3u;
  }
  return hash;
}

void fill_normal(std::span<float> values, double scale, std::uint64_t seed, std::uint64_t stream) {
  // Box and Muller: two of the four words give one pair of normal numbers, so a counter serves
  // four.
  for (std::size_t i = 0; i < values.size(); i += 4) {
    const std::uint64_t block = i / 4;
    const PhiloxCounter bits =
        philox({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)},
               seed);
    for (std::size_t pair = 0; pair < 2; ++pair) {
      const double radius = std::sqrt(-2 * std::log(unit_interval(bits[2 * pair])));
      const double angle = 2 * std::numbers::pi * unit_interval(bits[2 * pair + 1]);
      const std::size_t at = i + 2 * pair;
      if (at < values.size()) values[at] = static_cast<float>(scale * radius * std::cos(angle));
      if (at + 1 < values.size())
        values[at + 1] = static_cast<float>(scale * radius * std::sin(angle));
    }
  }
}

void fill_uniform(std::span<float> values, double bound, std::uint64_t seed, std::uint64_t stream) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t block = i / 4;
    const PhiloxCounter bits =
        philox({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)},
               seed);
    values[i] = static_cast<float>(bound * (2 * unit_interval(bits[i % 4]) - 1));
  }
}

}  // namespace

Tensor initialize_state(const Graph& graph, NodeId state, std::uint64_t seed) {
  const Type& type = graph.types(state)[0];
  Tensor tensor(type.dtype, type.dims({}));
  const AttributeReader attributes = graph.attribute(state);
  const std::string& rule = attributes.text("init");
  if (rule == "zeros") return tensor;
  if (type.dtype != DType::F32)
    fail("state \"{}\": init \"{}\" needs f32, not {}", graph.name(state), rule, to_text(type));
  const std::span<float> values = tensor.mutable_data<float>();
  if (rule == "ones") {
    for (float& value : values) value = 1;
  } else if (rule == "normal") {
    fill_normal(values, attributes.real("scale"), seed, hash_name(graph.name(state)));
  } else if (rule == "uniform") {
    fill_uniform(values, attributes.real("scale"), seed, hash_name(graph.name(state)));
  } else {
    throw unknown_name(fmt::format("init of state \"{}\"", graph.name(state)), rule,
                       {"normal", "ones", "uniform", "zeros"});
  }
  return tensor;
}

State initialize(const Graph& graph, std::uint64_t seed) {
  State state;
  for (const NodeId id : graph.nodes_of("state"))
    state.emplace(graph.name(id), initialize_state(graph, id, seed));
  return state;
}

}  // namespace lathe::models
