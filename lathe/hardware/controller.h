#pragma once

#include <memory>
#include <vector>

#include "lathe/hardware/block.h"

namespace lathe::hardware {

/// The handshake wires of one cycle, by stream.
struct Wires {
  std::vector<char> valid, ready;
};

/// One block without its data. In each cycle `offer` is called in the order of the data, `accept`
/// against it, then `clock`.
class Controller {
 public:
  virtual ~Controller() = default;
  virtual void offer(Wires& wires) const = 0;
  virtual void accept(Wires& wires) = 0;
  /// Takes the cycle's transfers; true if anything moved.
  virtual bool clock(const Wires& wires) = 0;
  /// The room that a queue has needed so far: a beat that leaves makes room for the next cycle
  /// only.
  virtual std::int64_t needed() const { return 0; }
};

/// The controller of a block's timing. `capacity` is what a queue holds instead of what it says; 0:
/// what it says.
std::unique_ptr<Controller> make_controller(const BlockCall& call, std::int64_t capacity);

}  // namespace lathe::hardware
