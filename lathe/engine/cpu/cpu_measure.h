#pragma once

#include "lathe/engine/device_measure.h"

namespace lathe::engine {

/// On the threads of `pool`; nullptr: on the calling thread.
std::unique_ptr<DeviceMeasure> make_cpu_measure(ThreadPool* pool);

}  // namespace lathe::engine
