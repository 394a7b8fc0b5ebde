#include "lathe/report/op_category.h"

#include <array>
#include <utility>

namespace lathe::report {
namespace {

// Keyed by words of the name rather than whole names, so that a new `group_norm`, `conv3d` or
// `linear_gradient` gets its family's colour on the day it is added. The first match wins: what
// is rare and telling (attention, a loss) comes before what it may be made of.
constexpr std::array<std::pair<std::string_view, OpCategory>, 37> kWords{{
    {"attention", OpCategory::Attention}, {"rope", OpCategory::Attention},
    {"entropy", OpCategory::Loss},        {"loss", OpCategory::Loss},
    {"error", OpCategory::Loss},          {"embedding", OpCategory::Embedding},
    {"positions", OpCategory::Embedding}, {"dropout", OpCategory::Dropout},
    {"norm", OpCategory::Norm},           {"linear", OpCategory::Product},
    {"matmul", OpCategory::Product},      {"gemm", OpCategory::Product},
    {"conv", OpCategory::Product},        {"conv1d", OpCategory::Product},
    {"conv2d", OpCategory::Product},      {"conv3d", OpCategory::Product},
    {"lora", OpCategory::Product},        {"input", OpCategory::Source},
    {"state", OpCategory::Source},        {"constant", OpCategory::Source},
    {"full", OpCategory::Source},         {"reshape", OpCategory::Shape},
    {"transpose", OpCategory::Shape},     {"concat", OpCategory::Shape},
    {"split", OpCategory::Shape},         {"slice", OpCategory::Shape},
    {"select", OpCategory::Shape},        {"broadcast", OpCategory::Shape},
    {"gather", OpCategory::Shape},        {"squeeze", OpCategory::Shape},
    {"unsqueeze", OpCategory::Shape},     {"flatten", OpCategory::Shape},
    {"pad", OpCategory::Shape},           {"cast", OpCategory::Shape},
    {"quantize", OpCategory::Quantizer},  {"decode", OpCategory::Quantizer},
    {"requant", OpCategory::Quantizer},
}};

bool has_word(std::string_view name, std::string_view word) {
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('_', begin), name.size());
    if (name.substr(begin, end - begin) == word) return true;
    begin = end + 1;
  }
  return false;
}

}  // namespace

OpCategory category(const Op& op) {
  if (op.is_source) return OpCategory::Source;
  if (op.is_identity_in_inference) return OpCategory::Dropout;
  if (op.name == "to_integer" || op.name == "from_integer") return OpCategory::Quantizer;
  for (const auto& [word, category] : kWords)
    if (has_word(op.name, word)) return category;
  return OpCategory::Elementwise;
}

BoxColors colors(OpCategory category) {
  switch (category) {
    case OpCategory::Product:
      return {"#dbe9f9", "#5b8fc9"};
    case OpCategory::Norm:
      return {"#dff2e3", "#5fa872"};
    case OpCategory::Attention:
      return {"#e9e0f7", "#8f6fc4"};
    case OpCategory::Elementwise:
      return {"#fdeed9", "#d49a45"};
    case OpCategory::Embedding:
      return {"#d9f1f1", "#4aa3a3"};
    case OpCategory::Dropout:
      return {"#f3f3f3", "#b5b5b5"};
    case OpCategory::Loss:
      return {"#fbdfe1", "#cf6a73"};
    case OpCategory::Shape:
      return {"#f6f1e7", "#b3a27c"};
    case OpCategory::Quantizer:
      return {"#fff3c9", "#b8860b"};
    case OpCategory::Source:
      break;
  }
  return {"#ffffff", "#7a7a7a"};
}

}  // namespace lathe::report
