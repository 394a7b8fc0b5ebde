#include "lathe/compress/pruning/method.h"

namespace lathe::compress {

const PruningMethod& find_pruning_method(std::string_view name) {
  return PruningMethodRegistry::instance().at(name, "method");
}

}  // namespace lathe::compress
