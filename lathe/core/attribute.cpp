#include "lathe/core/attribute.h"

#include <algorithm>
#include <cmath>

namespace lathe {
namespace {

// The shortest decimal that reads back as the same double, marked as a real even when whole.
std::string real_text(double value) {
  std::string text = fmt::format("{}", value);
  if (std::isfinite(value) && text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n')
      result += "\\n";
    else
      result += c;
  }
  return result + '"';
}

struct Printer {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const { return real_text(value); }
  std::string operator()(const std::string& value) const { return quoted(value); }
  std::string operator()(const std::vector<std::int64_t>& values) const {
    return fmt::format("[{}]", fmt::join(values, ","));
  }
  std::string operator()(const std::vector<double>& values) const {
    std::string result = "[";
    for (const double value : values) {
      if (result.size() > 1) result += ',';
      result += real_text(value);
    }
    return result + ']';
  }
};

bool is_accepted(AttributeKind given, AttributeKind expected) {
  if (given == expected) return true;
  if (expected == AttributeKind::Real && given == AttributeKind::Integer) return true;
  return expected == AttributeKind::Reals && given == AttributeKind::Integers;
}

}  // namespace

std::string_view name(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::Flag:
      return "true or false";
    case AttributeKind::Integer:
      return "an integer";
    case AttributeKind::Real:
      return "a number";
    case AttributeKind::Text:
      return "a text";
    case AttributeKind::Integers:
      return "a list of integers";
    case AttributeKind::Reals:
      return "a list of numbers";
  }
  return "";
}

std::string to_text(const Attribute& attribute) {
  return std::visit(Printer{}, attribute);
}

std::string to_text(const Attributes& attributes) {
  if (attributes.empty()) return {};
  std::string result = "{";
  for (const auto& [name, value] : attributes) {
    if (result.size() > 1) result += ", ";
    result += name + '=' + to_text(value);
  }
  return result + '}';
}

void check_attributes(const Attributes& attributes, const std::vector<AttributeSpec>& specs) {
  for (const auto& [attribute_name, value] : attributes) {
    const auto spec = std::find_if(
        specs.begin(), specs.end(),
        [&, &wanted = attribute_name](const AttributeSpec& s) { return s.name == wanted; });
    if (spec == specs.end()) {
      std::vector<std::string> known;
      for (const AttributeSpec& candidate : specs) known.push_back(candidate.name);
      std::sort(known.begin(), known.end());
      throw unknown_name("attribute", attribute_name, known);
    }
    const AttributeKind expected = kind_of(spec->default_value);
    if (!is_accepted(kind_of(value), expected))
      fail("attribute {}={}: expected {}", attribute_name, to_text(value), name(expected));
  }
  for (const AttributeSpec& spec : specs)
    if (spec.required && !attributes.contains(spec.name))
      fail("attribute {} is missing: expected {}", spec.name, name(kind_of(spec.default_value)));
}

const Attribute& AttributeReader::value(std::string_view name) const {
  const auto found = attributes_->find(name);
  if (found != attributes_->end()) return found->second;
  for (const AttributeSpec& spec : *specs_)
    if (spec.name == name) return spec.default_value;
  throw InternalError(fmt::format("a declared attribute, not {}", name),
                      std::source_location::current());
}

double AttributeReader::real(std::string_view name) const {
  const Attribute& attribute = value(name);
  if (const auto* integer = std::get_if<std::int64_t>(&attribute))
    return static_cast<double>(*integer);
  return std::get<double>(attribute);
}

std::vector<double> AttributeReader::reals(std::string_view name) const {
  const Attribute& attribute = value(name);
  if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&attribute))
    return {integers->begin(), integers->end()};
  return std::get<std::vector<double>>(attribute);
}

}  // namespace lathe
