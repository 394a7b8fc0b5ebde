#include "lathe/hardware/simulation/temporary_folder.h"

#include <cstdlib>
#include <string>

#include "lathe/core/error.h"

namespace lathe::hardware {

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "lathe-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) fail("{}: cannot be made", name);
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace lathe::hardware
