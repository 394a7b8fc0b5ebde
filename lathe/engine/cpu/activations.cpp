#include "lathe/engine/cpu/activations.h"

#include <algorithm>
#include <array>

namespace lathe::engine {
namespace {

constexpr std::array kActivations{
    Activation{"relu", "relu", "", Unary::Relu, true, true},
    Activation{"gelu", "gelu", "none", Unary::GeluErf, true, true},
    Activation{"gelu_tanh", "gelu", "tanh", Unary::GeluTanh, true, true},
    Activation{"tanh", "tanh", "", Unary::Tanh, true, true},
    Activation{"sigmoid", "sigmoid", "", Unary::Sigmoid, true, true},
    Activation{"silu", "silu", "", Unary::Silu, true, true},
    Activation{"quick_gelu", "quick_gelu", "", Unary::QuickGelu, true, true},
    Activation{"exp", "exp", "", Unary::Exp, false, true},
    Activation{"erf", "erf", "", Unary::Erf, false, true},
    Activation{"log", "log", "", Unary::Log, false, true},
    Activation{"neg", "neg", "", Unary::Negate, false, true},
    Activation{"abs", "abs", "", Unary::Abs, false, true},
    Activation{"sqrt", "sqrt", "", Unary::Sqrt, false, true},
    Activation{"reciprocal", "reciprocal", "", Unary::Reciprocal, false, true},
};

}  // namespace

std::span<const Activation> activations() {
  return kActivations;
}

const Activation* find_activation(std::string_view op, const AttributeReader& attributes) {
  for (const Activation& activation : kActivations)
    if (activation.op == op && (activation.approximate.empty() ||
                                attributes.text("approximate") == activation.approximate))
      return &activation;
  return nullptr;
}

const Activation* find_epilogue(std::string_view name) {
  for (const Activation& activation : kActivations)
    if (activation.name == name && activation.is_in_epilogue) return &activation;
  return nullptr;
}

}  // namespace lathe::engine
