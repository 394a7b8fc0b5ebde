#pragma once

#include <exception>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lathe/experiment/callbacks.h"
#include "lathe/experiment/fine_tune_options.h"
#include "lathe/train/run_directory.h"

/// The directory of a run of training: begun, taken up, extended, and gone when nothing came of it.
namespace lathe::experiment {

/// Completes the recipe of a new run where the options in `given` do not say otherwise: one cycle
/// of the rate for a number of epochs that was chosen, and the rate that LoRA's paths need, which
/// start at nothing and are scaled down (chosen on a fold of IMDb's training reviews).
void complete_recipe(FineTuneOptions& options, const std::set<std::string>& given);
inline constexpr double kLoraRate = 1e-3;

/// Takes up the run in `options.out`, if there is one: its options become `options`, those in
/// `given` must be the same. False when no run was started there.
///
/// More `epochs` than it was started with extend the run by cycles of the rate like those before,
/// and the result is that of a run that was started with so many epochs and cycles; where whole
/// cycles do not make the epochs, one more cycle does.
bool take_up_run(FineTuneOptions& options, const std::set<std::string>& given);

/// What must not be replaced by the run: it is read.
std::vector<std::filesystem::path> needed_by(const FineTuneOptions& options);

/// The directory of a run that is resumed; nothing for a new one.
std::optional<train::RunDirectory> open_run(const FineTuneOptions& options,
                                            const Callbacks& callbacks);
/// The directory of a new run, with what it replaces removed.
train::RunDirectory create_run(const FineTuneOptions& options);

/// Removes the directory of a run that failed before it had anything worth keeping, so that the
/// same command can be tried again.
class FailedRun {
 public:
  explicit FailedRun(const train::RunDirectory* directory, std::filesystem::path path)
      : directory_(directory), path_(std::move(path)) {}
  ~FailedRun() {
    std::error_code ignored;
    if (directory_ != nullptr && std::uncaught_exceptions() > uncaught_ &&
        !has_checkpoint(path_ / "checkpoints"))
      std::filesystem::remove_all(path_, ignored);
  }
  // There is something worth keeping now.
  void keep() { directory_ = nullptr; }
  FailedRun(const FailedRun&) = delete;
  FailedRun& operator=(const FailedRun&) = delete;

 private:
  static bool has_checkpoint(const std::filesystem::path& path) {
    std::error_code ignored;
    return std::filesystem::exists(path, ignored) && !std::filesystem::is_empty(path, ignored);
  }
  const train::RunDirectory* directory_;
  std::filesystem::path path_;
  int uncaught_ = std::uncaught_exceptions();
};

}  // namespace lathe::experiment
