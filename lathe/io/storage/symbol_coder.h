#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lathe::io {

/// Which of a symbol's patterns are near zero: what the coder goes by to tell rows and columns of
/// large numbers from those of small ones. It changes sizes, never values.
enum class SymbolOrder : std::uint8_t {
  TwosComplement,  ///< 0, then 1 and the pattern of all ones; or the other way round
  SignMagnitude,   ///< 0 and the pattern of the top bit alone
};

/// A matrix of symbols of 1 to 8 bits, some of which may be absent.
struct SymbolTable {
  std::int64_t rows = 0, columns = 0;
  int bits = 0;
  /// rows x columns; what stands at an absent place means nothing.
  std::vector<std::uint8_t> symbols;
  /// 1 for each symbol that is there; empty where all are. Both sides know it.
  std::span<const std::uint8_t> present = {};
  /// What is known of the same places already, such as the upper byte of a number whose lower one
  /// this is; may be empty.
  std::span<const std::uint8_t> beside = {};
};

/// The symbols as few bytes: arithmetic coding with statistics of the column, of how large the
/// row's and the column's symbols have been, and of the symbols before. Weights of a table of
/// embeddings have much in common by column, masks of the kind N:M repeat along the row.
std::vector<std::uint8_t> encode_symbols(const SymbolTable& table, SymbolOrder order);

/// The order that makes the first symbols smallest.
SymbolOrder choose_order(const SymbolTable& table);

/// Fills in `table.symbols`, whose size is given by all other members. Fails where bytes are left
/// over.
void decode_symbols(std::span<const std::uint8_t> bytes, SymbolOrder order, SymbolTable& table);

/// The most symbols of so many bits that so many bytes can hold: what a reader may believe.
std::int64_t most_symbols(std::int64_t bytes, int bits);

}  // namespace lathe::io
