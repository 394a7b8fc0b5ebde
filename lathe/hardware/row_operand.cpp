#include "lathe/hardware/row_operand.h"

#include "lathe/core/error.h"

namespace lathe::hardware {

void require_row_operand(const BlockCall& call) {
  const Stream &rows = call.inputs[0], &operand = call.inputs[1];
  const bool is_whole = operand.vectors == rows.vectors;
  const bool is_part = operand.vectors % rows.vectors == 0 &&
                       rows.num_elements() % (operand.vectors * rows.lanes) == 0;
  if (operand.size != 1 || operand.lanes != 1 || (!is_whole && !is_part))
    fail("{} is not one element for each row of {}", operand.text(), rows.text());
}

std::int64_t row_size(const BlockCall& call) {
  return call.inputs[0].num_elements() / call.inputs[1].vectors;
}

std::int64_t row_beats(const BlockCall& call) {
  return call.inputs[0].beats() / call.inputs[1].vectors;
}

SequenceTiming row_operand_timing(const BlockCall& call, int stages, std::int64_t idle) {
  SequenceTiming result{.period = {}, .stages = stages, .merge = stages};
  for (std::int64_t beat = 0; beat < row_beats(call); ++beat) {
    const std::uint32_t takes = beat == 0 ? 0b11 : 0b01;
    result.period.push_back({.count = 1, .takes = takes, .gives = idle == 0});
    if (idle > 1) result.period.push_back({.count = idle - 1, .takes = 0, .gives = false});
    if (idle > 0) result.period.push_back({.count = 1, .takes = 0, .gives = true});
  }
  return result;
}

}  // namespace lathe::hardware
