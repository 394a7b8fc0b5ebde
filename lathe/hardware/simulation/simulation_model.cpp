#include "lathe/hardware/simulation/simulation_model.h"

#include <dlfcn.h>

#include "lathe/core/error.h"

namespace lathe::hardware {

template <typename Function>
Function SimulationModel::find(const char* name) const {
  void* symbol = dlsym(library_, name);
  check(symbol != nullptr, "a model to have its functions");
  return reinterpret_cast<Function>(symbol);
}

SimulationModel::SimulationModel(const std::filesystem::path& folder, std::size_t num_signals)
    : signals_(num_signals) {
  const std::filesystem::path file = folder / "model.so";
  library_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) fail("{}: cannot be loaded: {}", file.string(), dlerror());
  model_ = find<void* (*)(const char*)>("lathe_model_new")(folder.c_str());
  find<void (*)(void*, void**)>("lathe_model_signals")(model_, signals_.data());
  evaluate_ = find<void (*)(void*)>("lathe_model_evaluate");
}

SimulationModel::~SimulationModel() {
  if (has_waves_) find<void (*)(void*)>("lathe_model_close_waves")(model_);
  find<void (*)(void*)>("lathe_model_delete")(model_);
  dlclose(library_);
}

void SimulationModel::open_waves(const std::filesystem::path& path) {
  // A model looks for relative names in its own folder.
  const std::filesystem::path whole = std::filesystem::absolute(path);
  find<void (*)(void*, const char*)>("lathe_model_open_waves")(model_, whole.c_str());
  dump_ = find<void (*)(void*, unsigned long long)>("lathe_model_dump");
  has_waves_ = true;
}

void SimulationModel::dump(std::uint64_t time) {
  dump_(model_, time);
}

}  // namespace lathe::hardware
