#include "lathe/io/json_file.h"

#include "lathe/io/mapped_file.h"

namespace lathe::io {

nlohmann::json read_json(const std::filesystem::path& path, const JsonLimits& limits) {
  return parse_json(MappedFile::open(path)->text(), path.string(), limits);
}

}  // namespace lathe::io
