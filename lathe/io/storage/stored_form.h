#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/core/dtype.h"
#include "lathe/io/storage/mask_bits.h"
#include "lathe/io/storage/symbol_coder.h"

namespace lathe::io {

/// How a tensor lies in a file that does not hold it as it is, but as a U8 tensor of its name.
///
/// A tensor is a matrix of symbols: its elements, or the codes of `width` bits in its rows of
/// bytes. Those of one pattern may be left out where a mask says so; the others are one pattern,
/// or lie one after the other, or have their upper bits coded by statistics. The stored bytes are
/// the mask's own bits, each coded plane of up to 8 bits from the top, and the rest of all symbols.
struct StoredForm {
  DType dtype = DType::F32;
  std::vector<std::int64_t> dims;
  int width = 0;             ///< of codes; 0: symbols are the elements
  std::int64_t columns = 0;  ///< of codes: how many a row has

  std::string mask;             ///< the tensor whose zeros are left out here
  bool is_transposed = false;   ///< that one's rows are this one's columns
  std::optional<BitForm> bits;  ///< instead: which symbols are there, as bits of its own
  std::uint32_t fill = 0;       ///< what stands where a symbol was left out

  std::optional<std::uint32_t> value;  ///< what all symbols that are there are
  std::vector<std::int64_t> coded;     ///< bytes of each coded plane
  SymbolOrder order = SymbolOrder::TwosComplement;
  std::uint32_t checksum = 0;  ///< CRC-32 of the tensor's bytes

  bool operator==(const StoredForm&) const = default;
};

/// The matrix of symbols that a tensor of this form is.
struct SymbolShape {
  std::int64_t rows = 0, columns = 0;
  int width = 0;
  std::int64_t count() const { return rows * columns; }
};
/// Fails where the form's numbers contradict each other.
SymbolShape symbol_shape(const StoredForm& form);

/// The forms of a file's tensors as text for its metadata, and back. A tensor without one is stored
/// as it is. Reading fails on anything that is not exactly such a text.
using StoredForms = std::map<std::string, StoredForm, std::less<>>;
std::string print_forms(const StoredForms& forms);
StoredForms parse_forms(std::string_view text);

/// In words: "bits 4x4", "under a.mask, coded".
std::string describe(const StoredForm& form);

/// Where a file's metadata has the forms.
inline constexpr std::string_view kFormsKey = "lathe.storage";

}  // namespace lathe::io
