#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/hardware/block.h"
#include "lathe/hardware/mapping/parallelism.h"

namespace lathe::hardware {

/// A layer that is the user's own SystemVerilog module: it maps each element alone, and is checked
/// against a definition in integers.
///
/// The module has the ports clk, rst, s_data, s_valid, s_ready, m_data, m_valid and m_ready, and
/// the parameters LANES and WIDTH, as rtl/relu.sv has; `stages` registers lie between its streams,
/// each of which moves when the next is free.
struct ExternalLayer {
  std::string layer;   ///< the node in the graph, up to a '/'
  std::string module;  ///< the name of the Verilog module and, with .sv, of its file
  std::string source;  ///< its text
  int stages = 1;
  /// y as a function of x and the registers; the low bits that an element has are kept.
  std::string result = {};
  /// Registers and what they hold at first, and what each becomes after a beat.
  std::map<std::string, std::int64_t, std::less<>> registers = {};
  std::map<std::string, std::string, std::less<>> next = {};
  /// Instead of `result`: a shared object and a function in it,
  /// extern "C" void f(const int64_t* x, int64_t* y, int64_t elements, int64_t lanes), which is
  /// given vector after vector.
  std::string library = {}, function = {};
};

/// The block of such a layer. Fails on a definition that cannot be read, with the layer's name.
Block external_block(const ExternalLayer& layer);

/// What a rules file of hardware says: `[[layer]]` tables with `name`, and of each `parallelism` =
/// "4x8", or a module of its own: `sv` (a path, from the file's folder), `y`, `registers`, `next`,
/// `stages`, `library`, `function`; `toolchain` = "internal" or "external" may be said.
struct HardwareRules {
  Parallelism parallelism = {};
  std::vector<ExternalLayer> external = {};
};
HardwareRules parse_hardware_rules(std::string_view text, const std::string& source);
/// Fails unless it is "internal", our own modules, or "external", the user's.
void check_toolchain(const std::string& toolchain);

}  // namespace lathe::hardware
