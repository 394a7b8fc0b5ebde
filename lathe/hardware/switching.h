#pragma once

#include <cstdint>

#include "lathe/hardware/netlist.h"

namespace lathe::hardware {

/// A proxy of dynamic power: the bits that may switch in an average cycle, where a frame enters
/// every `frame_interval` cycles. A LUT gives one bit, a DSP48 48 and a block RAM of 18 kbit 36, in
/// the share of cycles in which their block works. Compares designs of one device at one clock.
double switching_bits(const Netlist& netlist, std::int64_t frame_interval);

}  // namespace lathe::hardware
