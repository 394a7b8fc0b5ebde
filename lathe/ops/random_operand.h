#pragma once

#include <cstdint>
#include <string_view>

#include "lathe/core/op.h"
#include "lathe/ops/dropout_mask.h"

/// The operand `random`, i32[3] = {seed low word, seed high word, step}, of ops that draw numbers.
namespace lathe::ops {

/// Fails unless the type is what `random` is.
void require_random(std::string_view op, const Type& type);
/// Fails unless inputs `first` and `first` + 1 are what `examples` and `positions` are: integers,
/// one for each row of x.
void require_places(std::string_view op, const OpCall& call, std::size_t first, const Type& x);
/// Fails unless `rate` is at least 0 and below 1, and `site` has 16 bits.
void require_dropout(std::string_view op, double rate, std::int64_t site);
DropoutStream read_dropout_stream(const Tensor& random, std::int64_t site);
/// The step, which counts from 1; fails when it does not.
std::int64_t read_step(const Tensor& random);

}  // namespace lathe::ops
