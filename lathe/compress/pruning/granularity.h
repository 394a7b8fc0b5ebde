#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lathe::compress {

/// What is pruned as one. Rows and columns are those of a weight as [outputs, inputs].
struct Granularity {
  enum class Kind {
    Element,
    SomeOfSeveral,  ///< `kept` of `of` consecutive inputs of an output stay: 2:4
    Block,          ///< `rows` x `columns`; what is left at the edges makes smaller ones
    Row,
    Column,
    Head,    ///< of an attention, in all that makes and reads it; heads that share keys go together
    Neuron,  ///< of a feed-forward part: an output of its first layer, an input of its second
    Vocabulary,  ///< a row of a table that the model's inputs are looked up in
  };
  Kind kind = Kind::Element;
  std::int64_t kept = 0, of = 0;
  std::int64_t rows = 1, columns = 1;
  bool operator==(const Granularity&) const = default;
};

/// Reads `element`, `2:4`, `1x16`, `row`, `column`, `head`, `neuron` or `vocabulary`; fails with
/// the nearest name.
Granularity parse_granularity(std::string_view text);
std::string to_text(const Granularity& granularity);

/// Whether granules are parts of single weights, and not of all that belong to an attention or a
/// feed-forward part.
bool is_within_weights(const Granularity& granularity);

/// The largest share of a weight that can be pruned: 1, or 0.5 for 2:4.
double largest_sparsity(const Granularity& granularity);

}  // namespace lathe::compress
