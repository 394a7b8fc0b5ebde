# cmake -D FOLDER=rtl -D OUTPUT=rtl_library.cpp -P embed_rtl.cmake: the modules of rtl/ as C++ text.
cmake_minimum_required(VERSION 3.25)
file(GLOB modules ${FOLDER}/*.sv)
list(SORT modules)
set(entries "")
foreach(module ${modules})
  get_filename_component(name ${module} NAME_WE)
  file(READ ${module} text)
  string(APPEND entries "    {\"${name}\", R\"verilog(${text})verilog\"},\n")
endforeach()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT "// Written by cmake/embed_rtl.cmake.
#include \"lathe/hardware/rtl_library.h\"

#include <map>

#include \"lathe/core/error.h\"

namespace lathe::hardware {

std::string_view rtl_source(std::string_view module) {
  static const std::map<std::string_view, std::string_view> kModules = {
@entries@  };
  const auto found = kModules.find(module);
  if (found == kModules.end()) fail(\"rtl has no module \\\"{}\\\"\", module);
  return found->second;
}

}  // namespace lathe::hardware
")
