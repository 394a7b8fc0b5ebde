#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

namespace lathe::hardware {

/// A compiled design that was loaded into this process.
class SimulationModel {
 public:
  /// Loads folder/model.so; memories are read from the same folder.
  SimulationModel(const std::filesystem::path& folder, std::size_t num_signals);
  ~SimulationModel();
  SimulationModel(const SimulationModel&) = delete;
  SimulationModel& operator=(const SimulationModel&) = delete;

  /// Where the signals live, in the order in which the design listed them. Bits from the lowest.
  const std::vector<void*>& signals() const { return signals_; }
  /// Lets every change of the inputs take effect.
  void evaluate() { evaluate_(model_); }

  void open_waves(const std::filesystem::path& path);
  /// Records the present values at a time.
  void dump(std::uint64_t time);

 private:
  template <typename Function>
  Function find(const char* name) const;

  void* library_ = nullptr;
  void* model_ = nullptr;
  bool has_waves_ = false;
  void (*evaluate_)(void*) = nullptr;
  void (*dump_)(void*, unsigned long long) = nullptr;
  std::vector<void*> signals_;
};

}  // namespace lathe::hardware
