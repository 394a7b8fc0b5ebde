#include "lathe/engine/cuda/cuda_maps.h"

#include <array>

namespace lathe::engine {
namespace {

struct Named {
  std::string_view name;
  cuda::Map map;
};
using cuda::Map;
constexpr std::array<Named, 16> kMaps{{{"relu", Map::Relu},
                                       {"gelu", Map::GeluErf},
                                       {"tanh", Map::Tanh},
                                       {"sigmoid", Map::Sigmoid},
                                       {"silu", Map::Silu},
                                       {"quick_gelu", Map::QuickGelu},
                                       {"exp", Map::Exp},
                                       {"erf", Map::Erf},
                                       {"log", Map::Log},
                                       {"neg", Map::Negate},
                                       {"abs", Map::Abs},
                                       {"sqrt", Map::Sqrt},
                                       {"reciprocal", Map::Reciprocal},
                                       {"cos", Map::Cos},
                                       {"sin", Map::Sin},
                                       {"leaky_relu", Map::LeakyRelu}}};

}  // namespace

std::optional<CudaMap> find_cuda_map(std::string_view op, const AttributeReader& attributes) {
  for (const Named& named : kMaps) {
    if (named.name != op) continue;
    CudaMap result{named.map, 0};
    if (op == "gelu" && attributes.text("approximate") == "tanh") result.map = Map::GeluTanh;
    if (op == "leaky_relu") result.slope = static_cast<float>(attributes.real("slope"));
    return result;
  }
  return std::nullopt;
}

std::optional<cuda::Map> find_cuda_epilogue(std::string_view name) {
  if (name == "none") return Map::Identity;
  if (name == "gelu_tanh") return Map::GeluTanh;
  if (name == "leaky_relu") return std::nullopt;  // its slope has no place in a fused linear
  for (const Named& named : kMaps)
    if (named.name == name) return named.map;
  return std::nullopt;
}

}  // namespace lathe::engine
