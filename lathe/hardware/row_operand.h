#pragma once

#include "lathe/hardware/block.h"

namespace lathe::hardware {

/// Fails unless the second input has one element for each row of the first: a vector, or an equal
/// part of one that fills its beats, such as a head of an attention.
void require_row_operand(const BlockCall& call);
/// Elements and beats of such a row.
std::int64_t row_size(const BlockCall& call);
std::int64_t row_beats(const BlockCall& call);

/// Takes the second input with the first beat of each of the first's rows. A beat takes one
/// cycle, and `idle` more in which it works before it gives.
SequenceTiming row_operand_timing(const BlockCall& call, int stages, std::int64_t idle = 0);

}  // namespace lathe::hardware
