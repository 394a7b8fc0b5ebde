#include "lathe/hardware/simulation/vcd_file.h"

#include <charconv>
#include <map>

#include "lathe/core/error.h"

namespace lathe::hardware {
namespace {

std::int64_t number(std::string_view word, std::int64_t line) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size())
    fail("line {}: \"{}\" is no number", line, word);
  return value;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t begin = line.find_first_not_of(" \t\r", at);
    if (begin == std::string_view::npos) break;
    const std::size_t end = std::min(line.find_first_of(" \t\r", begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    at = end;
  }
  return words;
}

}  // namespace

const VcdSignal* VcdFile::find(std::string_view name) const {
  for (const VcdSignal& signal : signals)
    if (signal.name == name) return &signal;
  return nullptr;
}

VcdFile parse_vcd(std::string_view text) {
  VcdFile file;
  // A signal that goes through several scopes has one code and is listed in each.
  std::map<std::string, std::size_t, std::less<>> by_code;
  std::int64_t line_number = 0;
  while (!text.empty()) {
    ++line_number;
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::vector<std::string_view> words = words_of(text.substr(0, end));
    text.remove_prefix(std::min(text.size(), end + 1));
    if (words.empty()) continue;
    const auto change = [&](std::string_view code, std::string_view bits) {
      const auto found = by_code.find(code);
      if (found == by_code.end()) fail("line {}: no signal has the code {}", line_number, code);
      file.signals[found->second].changes.emplace_back(file.end, bits);
    };
    const char first = words[0][0];
    if (words[0] == "$var") {
      if (words.size() < 5) fail("line {}: a signal without a name", line_number);
      const std::string code(words[3]);
      if (by_code.contains(code)) continue;
      by_code[code] = file.signals.size();
      file.signals.push_back({.name = std::string(words[4]),
                              .width = static_cast<int>(number(words[2], line_number)),
                              .changes = {}});
    } else if (first == '#') {
      file.end = number(words[0].substr(1), line_number);
    } else if (first == 'b' || first == 'B') {
      if (words.size() != 2) fail("line {}: bits without a signal", line_number);
      change(words[1], words[0].substr(1));
    } else if (first == '0' || first == '1' || first == 'x' || first == 'z') {
      change(words[0].substr(1), words[0].substr(0, 1));
    }
  }
  return file;
}

}  // namespace lathe::hardware
