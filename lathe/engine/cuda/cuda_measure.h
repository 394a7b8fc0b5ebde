#pragma once

#include "lathe/engine/device_measure.h"

namespace lathe::engine {

/// On the first GPU; fails in one line where there is none.
std::unique_ptr<DeviceMeasure> make_cuda_measure();

}  // namespace lathe::engine
