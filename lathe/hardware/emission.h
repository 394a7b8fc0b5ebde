#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "lathe/hardware/netlist.h"

namespace lathe::hardware {

/// A design as files: NAME.sv, the modules of rtl/ it uses and the memories, all by relative paths.
struct Emission {
  std::string top;                           ///< the module's name
  std::map<std::string, std::string> files;  ///< path and contents
  std::vector<std::string> stream_names;     ///< by stream: the prefix of its three nets

  /// The Verilog files, the top one last.
  std::vector<std::string> sources() const;
  /// Of all files: equal designs have equal ones.
  std::string digest() const;
};

/// The netlist must be whole: every stream with one reader.
Emission emit(const Netlist& netlist);

/// Writes the files below a folder, which is made.
void write(const Emission& emission, const std::filesystem::path& folder);

}  // namespace lathe::hardware
