#pragma once

#include <cstdint>
#include <functional>

namespace lathe::engine {

/// Runs so many tasks on several threads, each with its number and that of its thread.
using ParallelTasks =
    std::function<void(std::int64_t, const std::function<void(std::int64_t, int)>&)>;

}  // namespace lathe::engine
