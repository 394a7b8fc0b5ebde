#include <cctype>
#include <set>

#include "lathe/io/onnx/import_onnx.h"

namespace lathe::io::onnx {
namespace {

// A name that Size can read.
std::string as_symbol(const std::string& name) {
  std::string symbol;
  for (const char c : name) symbol += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  if (symbol.empty() || std::isdigit(static_cast<unsigned char>(symbol.front())) != 0)
    symbol.insert(0, "n");
  return symbol;
}

}  // namespace

// Axes without a name of their own are told apart by their place alone: the first axes of all
// inputs count the same rows, the second the same positions.
std::string axis_name(const OnnxValue& input, std::size_t axis) {
  if (!input.shape[axis].name.empty()) return input.shape[axis].name;
  if (axis < 2) return axis == 0 ? "\nrows" : "\npositions";
  return input.name + "_" + std::to_string(axis);
}

std::map<std::string, std::string> choose_symbols(const OnnxGraph& graph) {
  std::set<std::string> initializers;
  for (const auto& [name, tensor] : graph.initializers) initializers.insert(name);
  std::map<std::string, std::string> symbols;
  std::set<std::string> taken;
  const auto choose = [&](const std::string& name, const std::string& symbol) {
    if (symbols.contains(name) || taken.contains(symbol)) return;
    symbols[name] = symbol;
    taken.insert(symbol);
  };
  // B and L first, so that no file's own "B" stands in their way.
  for (const std::size_t place : {0, 1})
    for (const OnnxValue& input : graph.inputs) {
      if (initializers.contains(input.name) || input.shape.size() <= place) continue;
      if (!input.shape[place].number) choose(axis_name(input, place), place == 0 ? "B" : "L");
    }
  for (const OnnxValue& input : graph.inputs)
    for (std::size_t axis = 0; axis < input.shape.size(); ++axis) {
      if (initializers.contains(input.name) || input.shape[axis].number) continue;
      std::string symbol = as_symbol(axis_name(input, axis));
      while (taken.contains(symbol) || symbol == "T" || symbol == "S") symbol += "_";
      choose(axis_name(input, axis), symbol);
    }
  return symbols;
}

}  // namespace lathe::io::onnx
