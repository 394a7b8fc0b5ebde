#include "lathe/experiment/pipeline/stage.h"

namespace lathe::experiment {

const Stage& find_stage(std::string_view name) {
  return StageRegistry::instance().at(name, "stage");
}

}  // namespace lathe::experiment
