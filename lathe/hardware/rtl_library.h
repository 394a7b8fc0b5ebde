#pragma once

#include <string>
#include <string_view>

namespace lathe::hardware {

/// The text of rtl/NAME.sv, which is compiled into the library. Fails for a module that is not
/// there.
std::string_view rtl_source(std::string_view module);

}  // namespace lathe::hardware
