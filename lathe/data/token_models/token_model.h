#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/core/registry.h"

namespace lathe::data {

/// What turns a piece of a text into token ids; immutable, so that threads share it.
class TokenModel {
 public:
  virtual ~TokenModel() = default;
  /// Appends the ids of a piece that is UTF-8 and not empty. TokenTable::kPadding bytes after it
  /// must be readable.
  virtual void append_ids(std::string_view piece, std::vector<std::int32_t>& ids) const = 0;
  /// What stands for what has no token, or -1.
  virtual std::int32_t unknown_id() const { return -1; }
};

/// A model and its tokens in the order of their ids.
struct LoadedModel {
  std::unique_ptr<const TokenModel> model;
  std::vector<std::string> tokens;
};

/// A kind of model, by the `type` that tokenizer.json gives it.
struct TokenModelKind {
  std::string name;
  /// `reads_bytes` asks for a model of the bytes themselves of what a ByteLevel pre-tokenizer would
  /// write as characters; a kind that cannot do so clears it.
  LoadedModel (*load)(const nlohmann::json& description, bool& reads_bytes) = nullptr;
};

}  // namespace lathe::data
