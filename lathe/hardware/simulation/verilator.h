#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lathe/core/interrupt.h"

namespace lathe::hardware {

enum class Waves { None, Vcd, Fst };

/// Where Verilator and a compiler are installed. When one is missing `hint` says so.
struct VerilatorTools {
  std::filesystem::path verilator, compiler;
  std::string hint;

  bool are_there() const { return hint.empty(); }
};
VerilatorTools find_verilator();

/// Compiles what every model needs, Verilator's own library and a precompiled header, and keeps it
/// in the cache; returns its folder. Does nothing the second time.
std::filesystem::path prepare_verilator(Waves waves = Waves::None,
                                        const ShouldStop& should_stop = {});

/// A design to be compiled: its files lie below `folder`.
struct VerilatorDesign {
  std::filesystem::path folder = {};
  std::vector<std::string> sources = {};  ///< relative to the folder
  std::string top = {};
  std::vector<std::string> probes = {};   ///< nets inside `top` that can be read
  std::vector<std::string> signals = {};  ///< ports and probes, as SimulationModel orders them
  bool is_strict = true;                  ///< wrong widths and loops are errors
};

/// Verilates and compiles a design into folder/model.so. Fails with what the tools say.
void build_model(const VerilatorDesign& design, Waves waves, const ShouldStop& should_stop = {});

}  // namespace lathe::hardware
