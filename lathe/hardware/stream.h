#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lathe::hardware {

/// The integers that pass through a stream, vector after vector, without padding.
using Values = std::vector<std::int64_t>;

/// What one element of a stream is: a pattern of bits, and what it means to people.
struct Element {
  int width = 8;
  bool is_signed = true;
  std::string meaning = {};  ///< a number format such as "fixed:8,3"; no hardware looks at it

  std::int64_t lowest() const;
  std::int64_t highest() const;
  /// "s8" or "u8", and the meaning behind it.
  std::string text() const;
};

/// What passes through a valid/ready stream in one frame (one example): `vectors` vectors of `size`
/// elements, `lanes` a beat, element 0 in the low bits. A vector begins with a beat of its own, so
/// its last one may be partly filled; what stands in the empty lanes means nothing.
struct Stream {
  Element element = {};
  int lanes = 1;
  std::int64_t size = 1;
  std::int64_t vectors = 1;

  std::int64_t beats_per_vector() const { return (size + lanes - 1) / lanes; }
  std::int64_t beats() const { return vectors * beats_per_vector(); }
  std::int64_t num_elements() const { return vectors * size; }
  /// Of one beat.
  std::int64_t bits() const { return static_cast<std::int64_t>(lanes) * element.width; }
  /// "6 x 10 s8, 4 a beat".
  std::string text() const;
};

}  // namespace lathe::hardware
