#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "lathe/engine/cpu/step.h"
#include "lathe/engine/cpu/steps/integer/integer_rows.h"

namespace lathe::engine {

/// The operands and the result of one row of an integer op. Operands that are no rows are there
/// whole; an absent one is empty.
struct IntegerRow {
  std::vector<std::span<const std::int64_t>> operands;
  std::span<std::int64_t> result;
};

/// A step that widens each row to 64 bits and calls a function on it. `is_row[i]` says whether
/// operand i is a row for each row of the result, of the result's width, or read whole.
std::unique_ptr<Step> make_integer_row_step(const Graph& graph, NodeId id,
                                            const std::vector<bool>& is_row,
                                            std::function<void(const IntegerRow&)> function);

}  // namespace lathe::engine
