#include "lathe/models/config_checks.h"

#include "lathe/core/error.h"

namespace lathe::models {

void check_size(std::string_view key, std::int64_t value) {
  constexpr std::int64_t kMost = std::int64_t{1} << 24;
  if (value < 1 || value > kMost) fail("{} is {}: expected 1 to {}", key, value, kMost);
}

void check_depth(std::string_view key, std::int64_t value) {
  if (value < 0 || value > 1024) fail("{} is {}: expected 0 to 1024", key, value);
}

void check_heads(std::int64_t hidden, std::int64_t heads) {
  if (hidden % heads != 0)
    fail("hidden_size {} is not a multiple of num_attention_heads {}", hidden, heads);
}

void check_dropout(double rate) {
  if (!(rate >= 0 && rate < 1)) fail("dropout probability {}: expected 0 up to below 1", rate);
}

}  // namespace lathe::models
