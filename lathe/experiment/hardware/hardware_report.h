#pragma once

#include <string>

#include "lathe/hardware/mapping/design.h"
#include "lathe/report/table.h"

namespace lathe::experiment {

/// A row for each layer that has blocks: modules, streams, cycles and resources.
report::Table layer_table(const hardware::Design& design);
/// A row for each FIFO: in front of what, how deep, and whether less would stop the design.
report::Table fifo_table(const hardware::Design& design);

/// A design as a page: what it is, its layers, its FIFOs.
std::string design_page(const std::string& model, const hardware::Design& design);

}  // namespace lathe::experiment
