#include "lathe/cli/command_text.h"

#include "lathe/cli/command.h"
#include "lathe/cli/program.h"

namespace lathe::cli {
namespace {

OptionText describe(const CLI::Option& option) {
  OptionText text{.value = value_word(option),
                  .range = range_words(option),
                  .help = option.get_description(),
                  .variable = option.get_envname(),
                  .is_required = option.get_required(),
                  .is_everywhere = option.get_group() == kEverywhere};
  if (option.get_positional()) text.names.push_back(option.get_name(true));
  for (const std::string& name : option.get_lnames()) text.names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) text.names.push_back("-" + name);
  return text;
}

}  // namespace

std::vector<CommandText> describe_commands() {
  Program program;
  std::vector<CommandText> commands;
  for (const auto& [name, record] : Registry<Command>::instance().all()) {
    CommandText command{.name = name, .summary = record.summary, .examples = record.examples};
    const std::size_t blank = name.find(' ');
    CLI::App* app = find_subcommand(program.app, name.substr(0, blank));
    if (blank != std::string::npos) app = find_subcommand(*app, name.substr(blank + 1));
    for (const CLI::Option* option : app->get_options())
      command.options.push_back(describe(*option));
    commands.push_back(std::move(command));
  }
  return commands;
}

}  // namespace lathe::cli
