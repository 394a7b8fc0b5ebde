# cmake -D FOLDER=rtl -D SUFFIX=sv -D OUTPUT=rtl_library.cpp -D HEADER=lathe/hardware/rtl_library.h
#   -D NAMESPACE=lathe::hardware -D FUNCTION=rtl_source -D "MISSING=rtl has no module"
#   [-D LIST=FUNCTION] -P embed_files.cmake
# The files of a folder as C++ text: FUNCTION gives the text of one by its name without the suffix,
# LIST the names of all of them.
cmake_minimum_required(VERSION 3.25)
file(GLOB files ${FOLDER}/*.${SUFFIX})
list(SORT files)
set(entries "")
foreach(each ${files})
  get_filename_component(name ${each} NAME_WE)
  file(READ ${each} text)
  string(APPEND entries "    {\"${name}\", R\"embedded(${text})embedded\"},\n")
endforeach()
set(listing "")
if(LIST)
  set(listing "
std::vector<std::string> ${LIST}() {
  std::vector<std::string> names;
  for (const auto& [name, text] : embedded_files()) names.emplace_back(name);
  return names;
}
")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT "// Written by cmake/embed_files.cmake.
#include \"@HEADER@\"

#include <map>

#include \"lathe/core/error.h\"

namespace @NAMESPACE@ {

static const std::map<std::string_view, std::string_view>& embedded_files() {
  static const std::map<std::string_view, std::string_view> kFiles = {
@entries@  };
  return kFiles;
}

std::string_view @FUNCTION@(std::string_view name) {
  const auto found = embedded_files().find(name);
  if (found == embedded_files().end()) fail(\"@MISSING@ \\\"{}\\\"\", name);
  return found->second;
}
@listing@
}  // namespace @NAMESPACE@
")
