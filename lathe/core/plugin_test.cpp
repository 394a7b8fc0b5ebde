#include "lathe/core/plugin.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lathe/core/testing/error_text.h"

namespace lathe {
namespace {

TEST(LoadPlugin, RefusesAFileThatIsNotThere) {
  EXPECT_EQ(error_text([] { load_plugin("nothing.so"); }),
            "plugin nothing.so: there is no such file");
}

TEST(LoadPlugin, RefusesALibraryWithoutRecords) {
  Dl_info library{};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&::lgamma_r), &library), 0);
  const std::string path = library.dli_fname;
  EXPECT_EQ(error_text([&] { load_plugin(path); }),
            "plugin " + path + ": it has no function lathe_plugin");
}

}  // namespace
}  // namespace lathe
