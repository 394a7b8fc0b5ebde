#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lathe {

/// What an example's label is, in data and to a model.
enum class LabelKind : std::uint8_t {
  Class,   ///< one of several names
  Number,  ///< a number to come close to
  Set,     ///< any of several names, none and all included
};

/// What Hugging Face's configurations call it: `problem_type`.
constexpr std::string_view problem_type(LabelKind kind) {
  return kind == LabelKind::Class    ? "single_label_classification"
         : kind == LabelKind::Number ? "regression"
                                     : "multi_label_classification";
}

/// The kind of that `problem_type`; nothing for a name that is none.
constexpr std::optional<LabelKind> find_label_kind(std::string_view problem) {
  for (const LabelKind kind : {LabelKind::Class, LabelKind::Number, LabelKind::Set})
    if (problem_type(kind) == problem) return kind;
  return std::nullopt;
}

}  // namespace lathe
