#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace lathe::hardware {

/// The part of SystemVerilog that designs are made of: a module of nets and instances.
struct VerilogModule {
  enum class Direction { Input, Output };
  struct Port {
    Direction direction = Direction::Input;
    std::string name;
    std::int64_t width = 1;
  };
  struct Net {
    std::string name;
    std::int64_t width = 1;
  };
  struct Instance {
    std::vector<std::string> comment;
    std::string module;
    std::string name;
    std::vector<std::pair<std::string, std::string>> parameters = {};   ///< values as written
    std::vector<std::pair<std::string, std::string>> connections = {};  ///< port and net
  };
  std::vector<std::string> comment;
  std::string name;
  std::vector<Port> ports;
  std::vector<Net> nets;
  std::vector<Instance> instances;
};

/// The module's text, laid out in columns.
std::string print(const VerilogModule& module);

/// `name` as an identifier that Verilog, C++ and file systems take as it is: letters, digits and
/// single underscores, no keyword of Verilog.
std::string verilog_identifier(const std::string& name);

}  // namespace lathe::hardware
