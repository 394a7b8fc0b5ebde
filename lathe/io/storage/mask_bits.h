#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lathe::io {

/// How the bits of a mask lie in a file.
struct BitForm {
  /// One bit stands for a block of so many rows and columns, which may be cut short at the edges.
  std::int64_t block_rows = 1, block_columns = 1;
  /// Of every `group` bits along a row exactly `kept` are set, so that the number of the choice
  /// stands for them; 0: any may be.
  int group = 0, kept = 0;
  /// Bytes of the bits as `encode_symbols` writes them; 0: one after the other, the lowest first.
  std::int64_t coded_bytes = 0;

  bool operator==(const BitForm&) const = default;
};

struct StoredBits {
  BitForm form;
  std::vector<std::uint8_t> bytes;
};

/// Stores a matrix of bits, one byte each, in as few bytes as its structure allows: blocks that are
/// alike, groups of which equally many are set, and, where `may_code` says so, arithmetic coding.
StoredBits store_bits(std::span<const std::uint8_t> bits, std::int64_t columns, bool may_code);

/// The bytes that bits of this form take, for a matrix of that size. Fails where the form makes no
/// sense there.
std::int64_t num_bit_bytes(const BitForm& form, std::int64_t rows, std::int64_t columns);
/// Reads them back, one byte each. Fails where the bytes cannot be those of such a mask.
std::vector<std::uint8_t> restore_bits(const BitForm& form, std::span<const std::uint8_t> bytes,
                                       std::int64_t rows, std::int64_t columns);

}  // namespace lathe::io
