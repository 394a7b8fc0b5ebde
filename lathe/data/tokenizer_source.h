#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace lathe::data {

inline constexpr std::string_view kTokenizerJson = "tokenizer.json";
inline constexpr std::string_view kTokenizerConfig = "tokenizer_config.json";

/// What a tokenizer is made of: the files of a directory, as they are or compressed (NAME.zst), or
/// a single tokenizer.json, which may have any name and is then read without what lies beside it.
class TokenizerSource {
 public:
  explicit TokenizerSource(std::filesystem::path path);

  bool has(std::string_view name) const;
  /// Where that file is, for messages.
  std::string place(std::string_view name) const;
  std::string read(std::string_view name) const;
  /// The object in a JSON file; an empty one where there is no such file.
  nlohmann::json read_object(std::string_view name) const;

  /// What tokenizer.json holds, or nullptr.
  const nlohmann::json* tokenizer_json() const { return json_ ? &*json_ : nullptr; }
  /// The type of the model in tokenizer.json; empty where it says none.
  std::string model_type() const;

 private:
  std::filesystem::path path_;
  bool is_file_ = false;
  std::optional<nlohmann::json> json_;
};

}  // namespace lathe::data
