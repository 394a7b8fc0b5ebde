// What shells and man(1) know of the program, made from the records that it parses by.
#include <algorithm>
#include <filesystem>

#include "lathe/cli/command.h"
#include "lathe/cli/completion_text.h"
#include "lathe/cli/manual_text.h"
#include "lathe/io/atomic_file.h"

namespace lathe::cli::help_files_command {
namespace {

std::function<int(const Settings&)> setup_completion(Flags flags) {
  auto shell = std::make_shared<std::string>();
  flags.add_option("shell", *shell, "bash, zsh or fish").required();
  return [shell](const Settings&) {
    fmt::print("{}", completion_script(*shell, describe_commands()));
    return 0;
  };
}

struct ManualArguments {
  std::vector<std::string> command;
  std::string out;
};

// All pages as files: lathe.1, lathe-train.1, ...
void write_pages(const std::filesystem::path& directory, const std::vector<CommandText>& commands) {
  std::filesystem::create_directories(directory);
  io::write_atomically(directory / "lathe.1", program_manual(commands));
  for (const CommandText& command : commands) {
    std::string name = "lathe-" + command.name + ".1";
    std::ranges::replace(name, ' ', '-');
    io::write_atomically(directory / name, command_manual(command));
  }
}

int print_manual(const ManualArguments& arguments) {
  const std::vector<CommandText> commands = describe_commands();
  if (!arguments.out.empty()) {
    write_pages(arguments.out, commands);
    fmt::print("wrote {} pages to {}\n", commands.size() + 1, arguments.out);
    return 0;
  }
  if (arguments.command.empty()) {
    fmt::print("{}", program_manual(commands));
    return 0;
  }
  const std::string name = fmt::format("{}", fmt::join(arguments.command, " "));
  std::vector<std::string> names;
  for (const CommandText& command : commands) {
    if (command.name == name) {
      fmt::print("{}", command_manual(command));
      return 0;
    }
    names.push_back(command.name);
  }
  throw unknown_name("command", name, names);
}

std::function<int(const Settings&)> setup_manual(Flags flags) {
  auto arguments = std::make_shared<ManualArguments>();
  flags.add_option("command", arguments->command, "a command, such as graph print [the program]")
      .repeatable();
  flags.add_option("--out", arguments->out, "directory for the pages of all commands");
  return [arguments](const Settings&) { return print_manual(*arguments); };
}

const Register completion{Command{
    .name = "completion",
    .summary = "print what completes commands and options in a shell",
    .examples = "  source <(lathe completion bash)\n"
                "  lathe completion zsh > ~/.zfunc/_lathe\n"
                "  lathe completion fish > ~/.config/fish/completions/lathe.fish",
    .setup = setup_completion,
}};
const Register manual{Command{
    .name = "man",
    .summary = "print a page for man(1), or write those of all commands",
    .examples = "  lathe man train | man -l -\n"
                "  lathe man --out /usr/local/share/man/man1",
    .setup = setup_manual,
}};

}  // namespace
}  // namespace lathe::cli::help_files_command
