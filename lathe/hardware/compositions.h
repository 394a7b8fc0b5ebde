#pragma once

#include <cstdint>
#include <string>

#include "lathe/hardware/netlist.h"
#include "lathe/numerics/integer/normalization.h"

/// What a model calls one operation and hardware makes of several blocks: the streams between them
/// are compared like any other, and `size_fifos` gives them what they need to overlap.
namespace lathe::hardware {

/// The exponentials of rows of scores and their sums (docs/integer.md, "Softmax"): what deferred
/// normalisation divides by. multiplier / 2^shift is the number of 64ths of a power of two that a
/// step of the scores is worth.
struct ExponentialRows {
  StreamId exponentials, sums;
};
ExponentialRows add_exponentials(Netlist& netlist, const std::string& name, StreamId scores,
                                 std::int64_t multiplier, std::int64_t shift);

/// Softmax over rows: exponentials * multiplier / (their sum * 2^shift), in `element`; `bits` of a
/// quotient a cycle.
struct SoftmaxOptions {
  std::int64_t score_multiplier = 1, score_shift = 1;
  std::int64_t multiplier = 1;
  int shift = 0;
  Element element = {};
  int bits = 1;
};
StreamId add_softmax(Netlist& netlist, const std::string& name, StreamId scores,
                     const SoftmaxOptions& options);

/// Layer norm over rows (docs/integer.md, "Layer norm"): z has normalization.fraction bits behind
/// the point and as many in front as it can need; `factor` and `summand` are G and B.
struct LayerNormOptions {
  numerics::Normalization normalization = {};
  Values factor = {}, summand = {};
  int shift = 0;
  Element element = {};
  int bits = 1;  ///< of a quotient, in a cycle
};
StreamId add_layer_norm(Netlist& netlist, const std::string& name, StreamId x,
                        const LayerNormOptions& options);

}  // namespace lathe::hardware
