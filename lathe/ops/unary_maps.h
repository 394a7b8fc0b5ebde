#pragma once

#include <string>
#include <vector>

#include "lathe/core/attribute.h"
#include "lathe/ops/whole.h"

namespace lathe::ops {

/// A function of one number that an op applies to each element; `map_gradient` looks its derivative
/// up by name.
struct UnaryMap {
  using Function = double (*)(double, const AttributeReader&);
  std::string name;
  std::string summary;
  Function function;
  Function derivative;
  Whole (*of_integers)(Whole) = nullptr;  ///< null: floats alone
  std::vector<AttributeSpec> attributes = {};
  std::string example_attributes = {};
  void (*check_attributes)(const AttributeReader&) = nullptr;
  bool is_alias = false;  ///< as in Op
};

/// All of them, sorted by name.
const std::vector<UnaryMap>& unary_maps();

}  // namespace lathe::ops
