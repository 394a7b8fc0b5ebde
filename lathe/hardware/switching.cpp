#include "lathe/hardware/switching.h"

#include <algorithm>

#include "lathe/hardware/lut_model.h"
#include "lathe/hardware/schedule.h"

namespace lathe::hardware {

double switching_bits(const Netlist& netlist, std::int64_t frame_interval) {
  constexpr double kDspBits = 48, kBlockRamBits = 36;
  double bits = 0;
  for (std::size_t i = 0; i < netlist.instances().size(); ++i) {
    const BlockCall call = netlist.call(i);
    const Resources taken = resources_of(call);
    const double share =
        std::min(1.0, static_cast<double>(frame_cycles(call)) /
                          static_cast<double>(std::max<std::int64_t>(1, frame_interval)));
    bits += share * (static_cast<double>(taken.lut) + kDspBits * static_cast<double>(taken.dsp) +
                     kBlockRamBits * static_cast<double>(taken.bram18));
  }
  return bits;
}

}  // namespace lathe::hardware
