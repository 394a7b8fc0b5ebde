#pragma once

#include <functional>
#include <memory>
#include <string>

#include "lathe/cli/settings.h"
#include "lathe/core/registry.h"

namespace CLI {
class App;
}

namespace lathe::cli {

/// A command of the program, registered by its own file.
struct Command {
  std::string name;
  std::string summary;
  std::string examples;  ///< lines shown at the end of its help
  /// Adds the command's options to `app` and gives what runs once they are parsed.
  std::function<std::function<int(const Settings&)>(CLI::App& app)> setup;
};

/// Options that several commands share.
struct ModelArguments {
  std::string model = {};
  std::string task = {};
  std::vector<std::string> inputs = {};
  std::int64_t num_labels = 0;
};
void add_model_option(CLI::App& app, ModelArguments& arguments);
void add_task_options(CLI::App& app, ModelArguments& arguments);

}  // namespace lathe::cli
