#pragma once

#include <cstdint>
#include <string_view>

/// What configurations of every family must hold; each fails naming the key.
namespace lathe::models {

/// Fails unless a size is 1 or more, and not beyond any model's.
void check_size(std::string_view key, std::int64_t value);
/// Fails unless a stack has 0 to 1024 layers.
void check_depth(std::string_view key, std::int64_t value);
/// Fails unless hidden_size can be cut into num_attention_heads, both 1 or more.
void check_heads(std::int64_t hidden, std::int64_t heads);
/// Fails unless a dropout probability is 0 or more and below 1.
void check_dropout(double rate);

}  // namespace lathe::models
