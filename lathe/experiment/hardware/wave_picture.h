#pragma once

#include <filesystem>
#include <string>

#include "lathe/hardware/mapping/design.h"

namespace lathe::experiment {

/// The first cycles of a simulation as an SVG document: clock, reset, and each stream at the
/// design's edge with its elements in decimals, from the VCD that was recorded.
std::string wave_picture(const hardware::Design& design, const std::filesystem::path& vcd);

}  // namespace lathe::experiment
