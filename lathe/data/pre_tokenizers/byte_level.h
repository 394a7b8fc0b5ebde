#pragma once

#include <memory>

#include "lathe/data/pre_tokenizers/pre_tokenizer.h"

namespace lathe::data {

/// The pre-tokenizer ByteLevel; without writing bytes as characters where the model reads bytes.
std::unique_ptr<const PreTokenizer> make_byte_level(const nlohmann::json& description,
                                                    bool writes_bytes);

}  // namespace lathe::data
