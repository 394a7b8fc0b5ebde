#pragma once

#include <string>

#include "lathe/data/text_pattern.h"

namespace lathe::data {

/// Puts `content` in the place of every match.
inline void replace_matches(const TextPattern& pattern, const std::string& content,
                            std::string& text) {
  std::string result;
  std::size_t done = 0;
  bool is_found = false;
  pattern.find(text, [&](TextPattern::Match match) {
    if (!is_found) result.reserve(text.size() + text.size() / 2);
    is_found = true;
    result.append(text, done, match.begin - done);
    result += content;
    done = match.end;
  });
  if (!is_found) return;
  result.append(text, done);
  text = std::move(result);
}

}  // namespace lathe::data
