#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace lathe::data {

/// A pattern of tokenizer.json: {"String": literal} or {"Regex": expression}.
class TextPattern {
 public:
  struct Match {
    std::size_t begin, end;
  };

  virtual ~TextPattern() = default;
  /// Calls `take` for every match in `text`, which is UTF-8, from left to right.
  virtual void find(std::string_view text, const std::function<void(Match)>& take) const = 0;
};

/// The pattern under that key of `object`.
///
/// Expressions that well-known tokenizers cut by have scanners of their own; ICU matches others,
/// within bounds of time and memory: an expression that runs past them is an error when it does.
std::unique_ptr<const TextPattern> read_pattern(const nlohmann::json& object, const char* key);

}  // namespace lathe::data
