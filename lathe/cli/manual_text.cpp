#include "lathe/cli/manual_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace lathe::cli {
namespace {

// Text that troff takes as it is: no escapes, no line that begins like a request.
std::string plain(const std::string& text) {
  std::string result;
  bool is_line_start = true;
  for (const char c : text) {
    if (is_line_start && (c == '.' || c == '\'')) result += "\\&";
    if (c == '\\')
      result += "\\e";
    else if (c == '-')
      result += "\\-";
    else
      result += c;
    is_line_start = c == '\n';
  }
  return result;
}

std::string heading(const std::string& title, const std::string& summary) {
  std::string capitals = title;
  std::ranges::transform(capitals, capitals.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return fmt::format(".TH {} 1 \"\" \"lathe {}\" \"Lathe\"\n.SH NAME\n{} \\- {}\n", plain(capitals),
                     LATHE_VERSION, plain(title), plain(summary));
}

std::string option_entry(const OptionText& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.names) names.push_back("\\fB" + plain(name) + "\\fR");
  std::string text = fmt::format(".TP\n{}", fmt::join(names, ", "));
  if (!option.value.empty() && option.names.front().starts_with("-"))
    text += fmt::format(" \\fI{}\\fR", option.value);
  if (!option.range.empty()) text += ", " + plain(option.range);
  if (option.is_required) text += ", required";
  text += "\n" + plain(option.help) + "\n";
  if (!option.variable.empty())
    text += fmt::format("May stand in the environment as {}.\n", plain(option.variable));
  return text;
}

std::string example_block(const std::string& examples) {
  return examples.empty() ? "" : fmt::format(".SH EXAMPLES\n.nf\n{}\n.fi\n", plain(examples));
}

}  // namespace

std::string program_manual(const std::vector<CommandText>& commands) {
  std::string text = heading("lathe", "takes a trained network and makes it smaller and faster");
  text += ".SH SYNOPSIS\n\\fBlathe\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n.SH COMMANDS\n";
  for (const CommandText& command : commands)
    text += fmt::format(".TP\n\\fB{}\\fR\n{}\n", plain(command.name), plain(command.summary));
  text += ".SH OPTIONS OF EVERY COMMAND\n";
  if (!commands.empty())
    for (const OptionText& option : commands.front().options)
      if (option.is_everywhere) text += option_entry(option);
  return text +
         ".SH EXIT STATUS\n0; 1 for what the user can fix, with one line that says what; 70 for\n"
         "mistakes of the program; 130 and 143 when interrupted.\n";
}

std::string command_manual(const CommandText& command) {
  std::string name = "lathe-" + command.name;
  std::ranges::replace(name, ' ', '-');
  std::string text = heading(name, command.summary);
  text += fmt::format(".SH SYNOPSIS\n\\fBlathe {}\\fR", plain(command.name));
  for (const OptionText& option : command.options)
    if (!option.names.front().starts_with("-"))
      text += fmt::format(" \\fI{}\\fR", plain(option.names.front()));
  text += " [\\fIOPTIONS\\fR]\n.SH OPTIONS\n";
  for (const OptionText& option : command.options)
    if (!option.is_everywhere) text += option_entry(option);
  text += ".SH OPTIONS OF EVERY COMMAND\nSee \\fBlathe\\fR(1).\n";
  return text + example_block(command.examples);
}

}  // namespace lathe::cli
