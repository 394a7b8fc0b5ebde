#include "lathe/cli/completion_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lathe/core/error.h"

namespace lathe::cli {
namespace {

// What may follow `lathe` and `lathe GROUP`, with summaries: the words of commands as a tree.
using Words = std::map<std::string, std::string>;
std::map<std::string, Words> word_tree(const std::vector<CommandText>& commands) {
  std::map<std::string, Words> tree;
  for (const CommandText& command : commands) {
    const std::size_t blank = command.name.find(' ');
    if (blank == std::string::npos) {
      tree[""][command.name] = command.summary;
      continue;
    }
    const std::string group = command.name.substr(0, blank);
    tree[""].try_emplace(group, "see lathe " + group + " --help");
    tree[group][command.name.substr(blank + 1)] = command.summary;
  }
  return tree;
}

// The text in single quotes, as all three shells read it.
std::string quoted(std::string text) {
  for (std::size_t at = 0; (at = text.find('\'', at)) != std::string::npos; at += 4)
    text.replace(at, 1, "'\\''");
  return "'" + text + "'";
}

std::string option_names(const CommandText& command) {
  std::string names;
  for (const OptionText& option : command.options)
    for (const std::string& name : option.names)
      if (name.starts_with("-")) names += (names.empty() ? "" : " ") + name;
  return names;
}

std::string bash_script(const std::vector<CommandText>& commands) {
  std::string text =
      "# bash completion for lathe; made by lathe completion bash\n"
      "_lathe() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} words=\n"
      "  case \"$command ${COMP_WORDS[2]}\" in\n";
  // Two words come before one, so that a command of a group is found before its group.
  for (const CommandText& command : commands)
    if (command.name.find(' ') != std::string::npos)
      text += fmt::format("  {}) [ $COMP_CWORD -gt 2 ] && words={} ;;\n", quoted(command.name),
                          quoted(option_names(command)));
  text += "  esac\n  if [ -z \"$words\" ]; then\n    case $command in\n";
  const auto tree = word_tree(commands);
  for (const auto& [group, words] : tree) {
    if (group.empty()) continue;
    std::vector<std::string> names;
    for (const auto& [name, summary] : words) names.push_back(name);
    text += fmt::format("    {}) [ $COMP_CWORD -eq 2 ] && words='{}' ;;\n", group,
                        fmt::join(names, " "));
  }
  for (const CommandText& command : commands)
    if (command.name.find(' ') == std::string::npos)
      text += fmt::format("    {}) words={} ;;\n", command.name, quoted(option_names(command)));
  std::vector<std::string> first;
  for (const auto& [name, summary] : tree.at("")) first.push_back(name);
  return text +
         fmt::format(
             "    esac\n  fi\n"
             "  [ $COMP_CWORD -eq 1 ] && words='{} --help --version'\n"
             "  case $word in\n"
             "  -*) COMPREPLY=($(compgen -W \"$words\" -- \"$word\")) ;;\n"
             "  *) COMPREPLY=($([ $COMP_CWORD -le 2 ] && compgen -W \"$words\" -- \"$word\") "
             "$(compgen -f -- \"$word\")) ;;\n"
             "  esac\n"
             "}}\n"
             "complete -o filenames -F _lathe lathe\n",
             fmt::join(first, " "));
}

// A colon would end what zsh takes for the word.
std::string described(const std::string& name, const std::string& summary) {
  std::string safe = name;
  for (std::size_t at = 0; (at = safe.find(':', at)) != std::string::npos; at += 2)
    safe.insert(at, 1, '\\');
  return quoted(safe + ":" + summary);
}

std::string zsh_script(const std::vector<CommandText>& commands) {
  std::string text =
      "#compdef lathe\n# made by lathe completion zsh\n_lathe() {\n  local -a choices\n";
  const auto tree = word_tree(commands);
  text += "  if (( CURRENT == 2 )); then\n    choices=(\n";
  for (const auto& [name, summary] : tree.at(""))
    text += "      " + described(name, summary) + "\n";
  text +=
      "    )\n    _describe command choices\n    return\n  fi\n  if (( CURRENT == 3 )); then\n"
      "    case $words[2] in\n";
  for (const auto& [group, words] : tree) {
    if (group.empty()) continue;
    text += fmt::format("    {})\n      choices=(\n", group);
    for (const auto& [name, summary] : words) text += "        " + described(name, summary) + "\n";
    text += "      )\n      _describe command choices\n      return ;;\n";
  }
  text += "    esac\n  fi\n  case \"$words[2] $words[3]\" in\n";
  const auto add_options = [&](const CommandText& command, const std::string& pattern) {
    text += fmt::format("  {})\n    choices=(\n", pattern);
    for (const OptionText& option : command.options)
      for (const std::string& name : option.names)
        if (name.starts_with("--")) text += "      " + described(name, option.help) + "\n";
    text += "    ) ;;\n";
  };
  for (const CommandText& command : commands)
    if (command.name.find(' ') != std::string::npos) add_options(command, quoted(command.name));
  for (const CommandText& command : commands)
    if (command.name.find(' ') == std::string::npos)
      add_options(command, quoted(command.name + " ") + "*");
  return text +
         "  esac\n"
         "  [[ $PREFIX == -* ]] && _describe option choices || _files\n"
         "}\n"
         "_lathe \"$@\"\n";
}

std::string fish_script(const std::vector<CommandText>& commands) {
  std::string text = "# fish completion for lathe; made by lathe completion fish\n";
  const auto tree = word_tree(commands);
  for (const auto& [name, summary] : tree.at(""))
    text += fmt::format("complete -c lathe -n __fish_use_subcommand -a {} -d {}\n", name,
                        quoted(summary));
  for (const auto& [group, words] : tree) {
    if (group.empty()) continue;
    std::vector<std::string> names;
    for (const auto& [name, summary] : words) names.push_back(name);
    for (const auto& [name, summary] : words)
      text += fmt::format(
          "complete -c lathe -n '__fish_seen_subcommand_from {}; and not "
          "__fish_seen_subcommand_from {}' -a {} -d {}\n",
          group, fmt::join(names, " "), name, quoted(summary));
  }
  for (const CommandText& command : commands) {
    const std::size_t blank = command.name.find(' ');
    std::string condition = "__fish_seen_subcommand_from " + command.name.substr(0, blank);
    if (blank != std::string::npos)
      condition += "; and __fish_seen_subcommand_from " + command.name.substr(blank + 1);
    for (const OptionText& option : command.options)
      for (const std::string& name : option.names)
        if (name.starts_with("--"))
          text +=
              fmt::format("complete -c lathe -n {} -l {}{} -d {}\n", quoted(condition),
                          name.substr(2), option.value.empty() ? "" : " -r", quoted(option.help));
  }
  return text;
}

}  // namespace

std::string completion_script(const std::string& shell, const std::vector<CommandText>& commands) {
  if (shell == "bash") return bash_script(commands);
  if (shell == "zsh") return zsh_script(commands);
  if (shell == "fish") return fish_script(commands);
  throw unknown_name("shell", shell, {"bash", "fish", "zsh"});
}

}  // namespace lathe::cli
