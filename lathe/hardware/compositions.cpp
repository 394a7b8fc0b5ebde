#include "lathe/hardware/compositions.h"

#include <algorithm>

#include "lathe/numerics/integer/integer_square_root.h"

namespace lathe::hardware {
namespace {

// Bits of a normalized element: the root of the size bounds it, and the floor of a root of at least
// 1 makes it at most twice as large.
int normalized_width(const numerics::Normalization& normalization) {
  const auto root = static_cast<std::int64_t>(
      numerics::integer_square_root(static_cast<std::uint64_t>(normalization.size)));
  const Wide most = Wide{2 * (root + 1)} << normalization.fraction;
  return signed_width(-most, most);
}

}  // namespace

ExponentialRows add_exponentials(Netlist& netlist, const std::string& name, StreamId scores,
                                 std::int64_t multiplier, std::int64_t shift) {
  const StreamId largest = netlist.add_single({.name = name + ".largest",
                                               .block = "row_reduce",
                                               .parameters = {{"op", 2}},
                                               .inputs = {scores}});
  const StreamId exponentials =
      netlist.add_single({.name = name + ".exponential",
                          .block = "exponential",
                          .parameters = {{"multiplier", multiplier}, {"shift", shift}},
                          .inputs = {scores, largest}});
  const StreamId sums = netlist.add_single({.name = name + ".sum",
                                            .block = "row_reduce",
                                            .parameters = {{"op", 0}},
                                            .inputs = {exponentials}});
  return {.exponentials = exponentials, .sums = sums};
}

StreamId add_softmax(Netlist& netlist, const std::string& name, StreamId scores,
                     const SoftmaxOptions& options) {
  const ExponentialRows rows =
      add_exponentials(netlist, name, scores, options.score_multiplier, options.score_shift);
  return netlist.add_single({.name = name,
                             .block = "divide",
                             .parameters = {{"multiplier", options.multiplier},
                                            {"shift", options.shift},
                                            {"width", options.element.width},
                                            {"signed", options.element.is_signed ? 1 : 0},
                                            {"bits", options.bits}},
                             .inputs = {rows.exponentials, rows.sums}});
}

StreamId add_layer_norm(Netlist& netlist, const std::string& name, StreamId x,
                        const LayerNormOptions& options) {
  const numerics::Normalization& normalization = options.normalization;
  const auto reduce = [&](const char* part, int op) {
    return netlist.add_single(
        {.name = name + part, .block = "row_reduce", .parameters = {{"op", op}}, .inputs = {x}});
  };
  const StreamId sum = reduce(".sum", 0), squares = reduce(".squares", 1);
  // n * x - sum, which the ends of their ranges bound.
  const Element &element = netlist.type(x).element, &total = netlist.type(sum).element;
  const int width = signed_width(Wide{element.lowest()} * normalization.size - total.highest(),
                                 Wide{element.highest()} * normalization.size - total.lowest());
  const StreamId centred = netlist.add_single({.name = name + ".centred",
                                               .block = "element_wise",
                                               .parameters = {{"op", 1},
                                                              {"multiplier_a", normalization.size},
                                                              {"per_row", 1},
                                                              {"width", width}},
                                               .inputs = {x, sum}});
  const StreamId root =
      netlist.add_single({.name = name + ".root",
                          .block = "row_root",
                          .parameters = {{"size", normalization.size},
                                         {"epsilon", normalization.epsilon},
                                         {"fraction", normalization.root_fraction}},
                          .inputs = {sum, squares}});
  const StreamId normalized = netlist.add_single(
      {.name = name + ".normalized",
       .block = "divide",
       .parameters = {{"shift", -(normalization.root_fraction + normalization.fraction)},
                      {"width", normalized_width(normalization)},
                      {"bits", options.bits}},
       .inputs = {centred, root}});
  return netlist.add_single({.name = name,
                             .block = "channel_scale",
                             .parameters = {{"shift", options.shift},
                                            {"width", options.element.width},
                                            {"signed", options.element.is_signed ? 1 : 0}},
                             .tables = {{"factor", options.factor}, {"summand", options.summand}},
                             .inputs = {normalized}});
}

}  // namespace lathe::hardware
