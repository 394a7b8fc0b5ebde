#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lathe/core/error.h"

namespace lathe {

/// A constant written on a node or given to a pass: `eps=1e-12`, `axes=[0,2]`, `activation="relu"`.
using Attribute = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>,
                               std::vector<double>>;
using Attributes = std::map<std::string, Attribute, std::less<>>;

/// The kinds of attribute, in the order of the variant's alternatives.
enum class AttributeKind { Flag, Integer, Real, Text, Integers, Reals };
std::string_view name(AttributeKind kind);
inline AttributeKind kind_of(const Attribute& attribute) {
  return static_cast<AttributeKind>(attribute.index());
}

/// "true", "3", "0.1", "\"relu\"", "[1,2]": what the graph's text form holds.
std::string to_text(const Attribute& attribute);
/// `{a=1, b="x"}`, or nothing when there are none.
std::string to_text(const Attributes& attributes);

/// An attribute that an op or a pass understands.
struct AttributeSpec {
  std::string name;
  Attribute default_value;  ///< also fixes the kind
  std::string summary;
  bool required = false;  ///< then default_value only says the kind
};

/// Fails on a name that no spec has (with the nearest one), on a wrong kind and on a missing
/// required attribute. An integer is accepted where a real is expected.
void check_attributes(const Attributes& attributes, const std::vector<AttributeSpec>& specs);

/// Reads attributes with the defaults of their specs.
class AttributeReader {
 public:
  AttributeReader(const Attributes& attributes, const std::vector<AttributeSpec>& specs)
      : attributes_(&attributes), specs_(&specs) {}
  bool flag(std::string_view name) const { return std::get<bool>(value(name)); }
  std::int64_t integer(std::string_view name) const { return std::get<std::int64_t>(value(name)); }
  double real(std::string_view name) const;
  const std::string& text(std::string_view name) const {
    return std::get<std::string>(value(name));
  }
  const std::vector<std::int64_t>& integers(std::string_view name) const {
    return std::get<std::vector<std::int64_t>>(value(name));
  }
  std::vector<double> reals(std::string_view name) const;
  /// Whether it is written out rather than left to its default.
  bool is_given(std::string_view name) const { return attributes_->contains(name); }

 private:
  const Attribute& value(std::string_view name) const;
  const Attributes* attributes_;
  const std::vector<AttributeSpec>* specs_;
};

}  // namespace lathe
