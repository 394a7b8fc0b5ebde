#include "lathe/io/storage/symbol_coder.h"

#include <algorithm>
#include <array>

#include "lathe/core/error.h"
#include "lathe/io/storage/bit_predictor.h"
#include "lathe/io/storage/range_coder.h"

namespace lathe::io {
namespace {

// Statistics are kept by column for as many columns as fit here; beyond, columns share them.
constexpr std::size_t kMostStatistics = std::size_t{1} << 22;
constexpr std::size_t kLevels = 16;  // of how large symbols are
// Of a mask's bits the column modulo 8 counts too, so that groups of 4 and 8 are seen.
constexpr std::size_t kPhases = 8;

// How large each pattern is, 0 to 65535.
std::array<std::int32_t, 256> pattern_levels(int bits, SymbolOrder order) {
  const int patterns = 1 << bits;
  std::array<std::int32_t, 256> levels{};
  for (int i = 0; i < patterns; ++i) {
    // The last negative number, which symmetric formats do without, counts as the one before.
    int magnitude = std::min({i, patterns - i, std::max(1, patterns / 2 - 1)});
    if (order == SymbolOrder::SignMagnitude) magnitude = i % std::max(patterns / 2, 1);
    levels[static_cast<std::size_t>(i)] = magnitude;
  }
  const std::int32_t most = std::max(1, *std::max_element(levels.begin(), levels.end()));
  for (std::int32_t& level : levels) level = level * 65535 / most;
  return levels;
}

// Walks through the symbols that are there, row by row and each from its top bit, and keeps the
// statistics. `code(bit, probability)` writes a bit, or reads one, and returns it.
class SymbolWalk {
 public:
  SymbolWalk(const SymbolTable& table, SymbolOrder order)
      : table_(table),
        patterns_(std::size_t{1} << table.bits),
        kept_columns_(std::clamp<std::size_t>(static_cast<std::size_t>(table.columns), 1,
                                              kMostStatistics / (kLevels * patterns_))),
        phases_(table.bits == 1 ? kPhases : 1),
        levels_(pattern_levels(table.bits, order)),
        predictor_(patterns_),
        by_column_(kept_columns_ * patterns_, kNothingSeen),
        by_levels_(kLevels * kLevels * patterns_, kNothingSeen),
        by_column_and_level_(kept_columns_ * kLevels * patterns_, kNothingSeen),
        by_history_(256 * phases_ * patterns_, kNothingSeen),
        column_levels_(static_cast<std::size_t>(table.columns), kMiddle) {}

  template <typename Code>
  void run(std::vector<std::uint8_t>& symbols, std::int64_t rows, Code&& code) {
    std::size_t place = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
      row_level_ = kMiddle;
      history_ = 0;
      for (std::size_t column = 0; column < column_levels_.size(); ++column, ++place)
        if (table_.present.empty() || table_.present[place] != 0)
          symbols[place] = visit(symbols[place], place, column, code);
    }
  }

 private:
  static constexpr std::int32_t kMiddle = 32768;
  static std::size_t level_class(std::int32_t level) {
    return static_cast<std::size_t>(level) / (65536 / kLevels);
  }

  template <typename Code>
  std::uint8_t visit(std::uint8_t symbol, std::size_t place, std::size_t column, Code&& code) {
    const std::size_t kept = column % kept_columns_, row_class = level_class(row_level_);
    const std::size_t before = table_.beside.empty() ? history_ : table_.beside[place];
    const BitPredictor::Contexts contexts{
        by_column_.data() + kept * patterns_,
        by_levels_.data() + (row_class * kLevels + level_class(column_levels_[column])) * patterns_,
        by_column_and_level_.data() + (kept * kLevels + row_class) * patterns_,
        by_history_.data() + (before * phases_ + column % phases_) * patterns_};
    std::size_t prefix = 1;  // the bits so far below a set one
    for (int shift = table_.bits - 1; shift >= 0; --shift) {
      const bool bit = code((symbol >> shift & 1) != 0, predictor_.predict(contexts, prefix));
      predictor_.learn(contexts, prefix, bit);
      prefix = 2 * prefix + static_cast<std::size_t>(bit);
    }
    const std::size_t found = prefix - patterns_;
    const std::int32_t level = levels_[found];
    row_level_ += (level - row_level_) >> 4;
    column_levels_[column] += (level - column_levels_[column]) >> 5;
    history_ = (history_ << table_.bits | found) & 0xff;
    return static_cast<std::uint8_t>(found);
  }

  const SymbolTable& table_;
  std::size_t patterns_, kept_columns_, phases_;
  std::array<std::int32_t, 256> levels_;
  BitPredictor predictor_;
  std::vector<BitStatistics> by_column_, by_levels_, by_column_and_level_, by_history_;
  std::vector<std::int32_t> column_levels_;
  std::int32_t row_level_ = kMiddle;
  std::size_t history_ = 0;  // the bits of the last symbols
};

std::vector<std::uint8_t> encode_rows(const SymbolTable& table, SymbolOrder order,
                                      std::int64_t rows) {
  RangeEncoder encoder;
  std::vector<std::uint8_t> symbols = table.symbols;
  SymbolWalk(table, order).run(symbols, rows, [&](bool bit, std::uint32_t one) {
    encoder.put(bit, one);
    return bit;
  });
  return encoder.finish();
}

}  // namespace

std::vector<std::uint8_t> encode_symbols(const SymbolTable& table, SymbolOrder order) {
  return encode_rows(table, order, table.rows);
}

SymbolOrder choose_order(const SymbolTable& table) {
  constexpr std::int64_t kTried = 1 << 16;
  const std::int64_t rows =
      std::min(table.rows, kTried / std::max<std::int64_t>(1, table.columns) + 1);
  if (table.bits == 1) return SymbolOrder::TwosComplement;
  const std::size_t twos = encode_rows(table, SymbolOrder::TwosComplement, rows).size();
  const std::size_t sign = encode_rows(table, SymbolOrder::SignMagnitude, rows).size();
  return sign < twos ? SymbolOrder::SignMagnitude : SymbolOrder::TwosComplement;
}

void decode_symbols(std::span<const std::uint8_t> bytes, SymbolOrder order, SymbolTable& table) {
  RangeDecoder decoder(bytes);
  SymbolWalk(table, order).run(table.symbols, table.rows, [&](bool, std::uint32_t one) {
    return decoder.take(one);
  });
  if (!decoder.is_at_end()) fail("coded symbols end before their {} bytes do", bytes.size());
}

std::int64_t most_symbols(std::int64_t bytes, int bits) {
  // A bit costs at least log2(65536 / (65536 - 32)) bits, one in 1420; a decoder has taken 8 bytes
  // more than it needed.
  constexpr std::int64_t kMostDecisions = 8 * 1420;
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 48;
  return (std::min(bytes, kMostBytes) + 8) * kMostDecisions / bits;
}

}  // namespace lathe::io
