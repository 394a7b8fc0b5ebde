#pragma once

#include "lathe/hardware/netlist.h"

namespace lathe::hardware {

/// The same design with a fork behind every stream that has several readers. A stream that nobody
/// reads is refused by name.
Netlist insert_forks(const Netlist& netlist);

/// The stream in beats of so many lanes: itself, or behind a width converter.
StreamId convert_lanes(Netlist& netlist, StreamId stream, int lanes);

}  // namespace lathe::hardware
