#include "lathe/hardware/verilog.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "lathe/hardware/verilog_keywords.h"

namespace lathe::hardware {
namespace {

std::string range(std::int64_t width) {
  return width == 1 ? "" : fmt::format("[{}:0]", width - 1);
}

template <typename List, typename Width>
std::size_t widest(const List& list, Width width) {
  std::size_t result = 0;
  for (const auto& item : list) result = std::max(result, width(item));
  return result;
}

// A word of a comment: what would end the line is replaced, and what tools take for an order to
// them stands behind a quote. Names of models may hold any of it.
std::string comment_word(std::string_view word) {
  constexpr std::array<std::string_view, 4> kOrders = {"verilator", "synopsys", "synthesis",
                                                       "pragma"};
  std::string result(word);
  for (char& c : result)
    if (std::iscntrl(static_cast<unsigned char>(c)) != 0) c = '_';
  const bool is_order = std::ranges::any_of(
      kOrders, [&](std::string_view order) { return result.starts_with(order); });
  return is_order ? "'" + result : result;
}

// A sentence in lines of at most 100 characters.
void append_comment(std::string& text, std::string_view indent, std::string_view sentence) {
  std::string line = fmt::format("{}//", indent);
  while (!sentence.empty()) {
    const std::size_t end = std::min(sentence.find(' '), sentence.size());
    if (line.size() + 1 + end > 100) {
      text += line + '\n';
      line = fmt::format("{}//  ", indent);
    }
    line += ' ';
    line += comment_word(sentence.substr(0, end));
    sentence.remove_prefix(std::min(end + 1, sentence.size()));
  }
  text += line + '\n';
}

// `.name(value)` a line, the parentheses below each other.
void append_named(std::string& text, const std::vector<std::pair<std::string, std::string>>& list) {
  const std::size_t names = widest(list, [](const auto& item) { return item.first.size(); });
  for (std::size_t i = 0; i < list.size(); ++i)
    text += fmt::format("      .{:<{}}({}){}\n", list[i].first, names, list[i].second,
                        i + 1 < list.size() ? "," : "");
}

}  // namespace

std::string print(const VerilogModule& module) {
  std::string text;
  for (const std::string& line : module.comment) append_comment(text, "", line);
  text += fmt::format("module {} (\n", module.name);
  const std::size_t port_ranges =
      widest(module.ports, [](const auto& port) { return range(port.width).size(); });
  for (std::size_t i = 0; i < module.ports.size(); ++i) {
    const VerilogModule::Port& port = module.ports[i];
    text += fmt::format("    {} logic {:>{}} {}{}\n",
                        port.direction == VerilogModule::Direction::Input ? "input " : "output",
                        range(port.width), port_ranges, port.name,
                        i + 1 < module.ports.size() ? "," : "");
  }
  text += ");\n";
  const std::size_t net_ranges =
      widest(module.nets, [](const auto& net) { return range(net.width).size(); });
  for (const VerilogModule::Net& net : module.nets)
    text += fmt::format("  logic {:>{}} {};\n", range(net.width), net_ranges, net.name);
  for (const VerilogModule::Instance& instance : module.instances) {
    text += '\n';
    for (const std::string& line : instance.comment) append_comment(text, "  ", line);
    text += fmt::format("  {}", instance.module);
    if (!instance.parameters.empty()) {
      text += " #(\n";
      append_named(text, instance.parameters);
      text += "  )";
    }
    text += fmt::format(" {} (\n", instance.name);
    append_named(text, instance.connections);
    text += "  );\n";
  }
  return text + "endmodule\n";
}

std::string verilog_identifier(const std::string& name) {
  std::string result;
  for (const char c : name) {
    const bool is_word = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (is_word)
      result += c;
    else if (!result.empty() && result.back() != '_')
      result += '_';
  }
  while (!result.empty() && result.back() == '_') result.pop_back();
  const bool is_keyword = kVerilogKeywords.find(" " + result + " ") != std::string_view::npos;
  if (result.empty() || std::isdigit(static_cast<unsigned char>(result[0])) != 0 || is_keyword)
    result = "n" + (result.empty() ? result : "_" + result);
  return result;
}

}  // namespace lathe::hardware
