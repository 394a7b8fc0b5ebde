#include "lathe/io/storage/symbol_coder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "lathe/core/testing/error_text.h"

namespace lathe::io {
namespace {

SymbolTable make_table(std::int64_t rows, std::int64_t columns, int bits) {
  return {.rows = rows,
          .columns = columns,
          .bits = bits,
          .symbols = std::vector<std::uint8_t>(static_cast<std::size_t>(rows * columns))};
}

SymbolTable random_table(std::int64_t rows, std::int64_t columns, int bits, unsigned seed) {
  SymbolTable table = make_table(rows, columns, bits);
  std::mt19937 random(seed);
  for (std::uint8_t& symbol : table.symbols)
    symbol = static_cast<std::uint8_t>(random() % (1u << bits));
  return table;
}

std::vector<std::uint8_t> decoded(const SymbolTable& table, std::span<const std::uint8_t> bytes,
                                  SymbolOrder order) {
  SymbolTable result = table;
  result.symbols.assign(table.symbols.size(), 0);
  decode_symbols(bytes, order, result);
  return result.symbols;
}

TEST(SymbolCoder, GivesBackEverySymbolThatWasThere) {
  for (const int bits : {1, 2, 3, 4, 5, 8})
    for (const SymbolOrder order : {SymbolOrder::TwosComplement, SymbolOrder::SignMagnitude}) {
      SymbolTable table = random_table(17, 23, bits, 1);
      EXPECT_EQ(decoded(table, encode_symbols(table, order), order), table.symbols);
      std::mt19937 random(3);
      std::vector<std::uint8_t> present(table.symbols.size()), beside(table.symbols.size());
      for (std::uint8_t& one : present) one = random() % 3 == 0 ? 1 : 0;
      for (std::uint8_t& byte : beside) byte = static_cast<std::uint8_t>(random());
      table.present = present;
      table.beside = beside;
      for (std::size_t i = 0; i < present.size(); ++i)
        if (present[i] == 0) table.symbols[i] = 0;
      EXPECT_EQ(decoded(table, encode_symbols(table, order), order), table.symbols) << bits;
    }
}

TEST(SymbolCoder, GivesBackTablesWiderThanItsStatistics) {
  const SymbolTable table = random_table(2, 5000, 8, 2);
  const auto bytes = encode_symbols(table, SymbolOrder::TwosComplement);
  EXPECT_EQ(decoded(table, bytes, SymbolOrder::TwosComplement), table.symbols);
}

double bits_a_symbol(const SymbolTable& table) {
  return 8.0 * static_cast<double>(encode_symbols(table, SymbolOrder::TwosComplement).size()) /
         static_cast<double>(table.symbols.size());
}

// Entropies of what is drawn, and 2 % for learning them.
TEST(SymbolCoder, ApproachesTheEntropyOfIndependentSymbols) {
  SymbolTable table = make_table(1000, 64, 1);
  std::mt19937 random(4);
  for (std::uint8_t& bit : table.symbols) bit = random() % 10 == 0 ? 1 : 0;
  const double entropy = -0.1 * std::log2(0.1) - 0.9 * std::log2(0.9);
  EXPECT_LT(bits_a_symbol(table), 1.02 * entropy);
}

TEST(SymbolCoder, SeesWhatColumnsHaveInCommon) {
  // Each column has a symbol of its own, which every fourth place departs from.
  SymbolTable table = make_table(2000, 32, 4);
  std::mt19937 random(5);
  for (std::size_t i = 0; i < table.symbols.size(); ++i)
    table.symbols[i] = static_cast<std::uint8_t>(random() % 4 == 0 ? random() % 16 : i % 32 / 2);
  const double alike = 0.75 + 0.25 / 16, other = (1 - alike) / 15;
  const double entropy = -alike * std::log2(alike) - 15 * other * std::log2(other);
  EXPECT_LT(bits_a_symbol(table), 1.05 * entropy);
}

TEST(SymbolCoder, SeesThatTwoOfFourAreKept) {
  SymbolTable table = make_table(500, 128, 1);
  std::mt19937 random(6);
  for (std::size_t first = 0; first < table.symbols.size(); first += 4) {
    const std::size_t a = random() % 4, b = (a + 1 + random() % 3) % 4;
    table.symbols[first + a] = table.symbols[first + b] = 1;
  }
  // What is certain costs a little all the same: no bit is ever held for quite certain.
  EXPECT_LT(bits_a_symbol(table), 1.05 * std::log2(6) / 4);
}

TEST(SymbolCoder, ChoosesTheOrderOfTheFormat) {
  // Rows of large and of small numbers.
  std::mt19937 random(7);
  SymbolTable twos = make_table(400, 64, 4), signed_magnitudes = twos;
  for (std::size_t i = 0; i < twos.symbols.size(); ++i) {
    const int most = i / 64 % 2 == 0 ? 7 : 1;
    const int number = static_cast<int>(random() % (2 * most + 1)) - most;
    twos.symbols[i] = static_cast<std::uint8_t>(number & 15);
    signed_magnitudes.symbols[i] =
        static_cast<std::uint8_t>(std::abs(number) + (number < 0 ? 8 : 0));
  }
  EXPECT_EQ(choose_order(twos), SymbolOrder::TwosComplement);
  EXPECT_EQ(choose_order(signed_magnitudes), SymbolOrder::SignMagnitude);
}

TEST(SymbolCoder, RefusesBytesThatAreLeftOver) {
  const SymbolTable table = random_table(3, 4, 4, 8);
  std::vector<std::uint8_t> bytes = encode_symbols(table, SymbolOrder::TwosComplement);
  bytes.resize(bytes.size() + 20, 1);
  EXPECT_EQ(error_text([&] { decoded(table, bytes, SymbolOrder::TwosComplement); }),
            fmt::format("coded symbols end before their {} bytes do", bytes.size()));
}

TEST(SymbolCoder, HoldsNoMoreSymbolsThanItSays) {
  // The most predictable table there is.
  const SymbolTable table = make_table(1000, 1000, 1);
  const auto bytes = encode_symbols(table, SymbolOrder::TwosComplement);
  EXPECT_GE(most_symbols(std::ssize(bytes), 1), 1000 * 1000);
  EXPECT_LT(bytes.size(), 200u);
}

TEST(SymbolCoder, WritesTheSameBytesEverywhere) {
  SymbolTable table = make_table(4, 8, 4);
  for (std::size_t i = 0; i < table.symbols.size(); ++i)
    table.symbols[i] = static_cast<std::uint8_t>(i * i % 11);
  EXPECT_EQ(encode_symbols(table, SymbolOrder::TwosComplement),
            (std::vector<std::uint8_t>{252, 204, 72, 106, 85, 158, 97, 238, 104, 126, 85, 164, 232,
                                       224}));
}

}  // namespace
}  // namespace lathe::io
