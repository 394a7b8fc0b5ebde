#pragma once

#include <functional>
#include <memory>
#include <string>

#include "lathe/cli/flags.h"
#include "lathe/cli/settings.h"
#include "lathe/core/registry.h"
#include "lathe/data/columns.h"
#include "lathe/io/storage/stored_weights.h"

namespace lathe::cli {

/// A command of the program, registered by its own file.
struct Command {
  std::string name;
  std::string summary;
  std::string examples;  ///< lines shown at the end of its help
  /// Lists of tables that the file of --config may hold and that the command reads itself.
  std::vector<std::string> lists = {};
  /// --threads is not how many threads compute here, so that no number of cores limits it.
  bool has_own_threads = false;
  /// Declares the command's options and gives what runs once they are parsed.
  std::function<std::function<int(const Settings&)>(Flags)> setup;
};

/// Options that several commands share.
struct ModelArguments {
  std::string model = {};
  std::string task = {};
  std::vector<std::string> inputs = {};
  std::int64_t num_labels = 0;
  std::string images = {};  ///< what is done to images, where the model does not say so itself
};
void add_model_option(Flags flags, ModelArguments& arguments);
void add_task_options(Flags flags, ModelArguments& arguments);
/// What is done to images before a model sees them.
void add_image_option(Flags flags, std::string& images);
/// Which columns of a table hold texts and labels.
void add_column_options(Flags flags, data::ColumnOptions& columns);
/// How a checkpoint's files are to be stored.
void add_storage_option(Flags flags, io::Storage& storage);

}  // namespace lathe::cli
