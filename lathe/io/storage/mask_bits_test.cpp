#include "lathe/io/storage/mask_bits.h"

#include <gtest/gtest.h>

#include <random>

#include "lathe/core/testing/error_text.h"

namespace lathe::io {
namespace {

using Bits = std::vector<std::uint8_t>;

// Stores bits, expects them back, and gives the form.
StoredBits stored(const Bits& bits, std::int64_t columns, bool may_code) {
  StoredBits result = store_bits(bits, columns, may_code);
  const std::int64_t rows = std::ssize(bits) / columns;
  EXPECT_EQ(num_bit_bytes(result.form, rows, columns), std::ssize(result.bytes));
  EXPECT_EQ(restore_bits(result.form, result.bytes, rows, columns), bits);
  return result;
}

Bits random_bits(std::int64_t count, unsigned one_in, unsigned seed) {
  Bits bits(static_cast<std::size_t>(count));
  std::mt19937 random(seed);
  for (std::uint8_t& bit : bits) bit = random() % one_in == 0 ? 1 : 0;
  return bits;
}

Bits blocks(std::int64_t rows, std::int64_t columns, std::int64_t block_rows,
            std::int64_t block_columns) {
  const Bits grid = random_bits(rows * columns, 2, 1);
  Bits bits;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c)
      bits.push_back(grid[static_cast<std::size_t>(r / block_rows * columns + c / block_columns)]);
  return bits;
}

TEST(MaskBits, TakeABitEach) {
  const StoredBits result = stored(random_bits(7 * 13, 2, 1), 13, false);
  EXPECT_EQ(result.form, BitForm{});
  EXPECT_EQ(result.bytes.size(), 12u);  // 91 bits
}

TEST(MaskBits, OfBlocksTakeABitABlock) {
  for (const auto& [rows, columns, block_rows, block_columns] :
       {std::tuple{32, 64, 1, 16}, std::tuple{32, 64, 4, 4}, std::tuple{31, 63, 4, 4},
        std::tuple{30, 64, 1, 64}, std::tuple{30, 64, 30, 1}, std::tuple{256, 64, 64, 64}}) {
    const StoredBits result =
        stored(blocks(rows, columns, block_rows, block_columns), columns, false);
    EXPECT_EQ(result.form.block_rows, block_rows);
    EXPECT_EQ(result.form.block_columns, block_columns);
  }
}

TEST(MaskBits, OfGroupsTakeTheNumberOfTheChoice) {
  std::mt19937 random(2);
  for (const auto& [kept, group, bytes] :
       {std::tuple{2, 4, 96u}, std::tuple{1, 4, 64u}, std::tuple{4, 8, 112u}}) {
    Bits bits(1024);
    for (std::size_t first = 0; first < bits.size(); first += static_cast<std::size_t>(group)) {
      std::fill_n(bits.begin() + static_cast<std::ptrdiff_t>(first), kept, 1);
      std::shuffle(bits.begin() + static_cast<std::ptrdiff_t>(first),
                   bits.begin() + static_cast<std::ptrdiff_t>(first) + group, random);
    }
    const StoredBits result = stored(bits, 64, false);
    EXPECT_EQ(result.form.kept, kept);
    EXPECT_EQ(result.form.group, group);
    EXPECT_EQ(result.bytes.size(), bytes);  // 3 bits of 4, 2 of 4, 7 of 8
  }
}

TEST(MaskBits, AreCodedWhereThatIsSmaller) {
  const StoredBits few = stored(random_bits(64 * 128, 20, 3), 128, true);
  EXPECT_GT(few.form.coded_bytes, 0);
  EXPECT_LT(few.bytes.size(), 64u * 128 / 8 / 2);
  const StoredBits half = stored(random_bits(64 * 128, 2, 4), 128, true);
  EXPECT_EQ(half.form.coded_bytes, 0);
}

TEST(MaskBits, AllAlikeTakeOne) {
  for (const std::uint8_t bit : {0, 1})
    EXPECT_LE(stored(Bits(7 * 9, bit), 9, false).bytes.size(), 1u);
}

std::string refused(const BitForm& form, const Bits& bytes, std::int64_t rows,
                    std::int64_t columns) {
  return error_text([&] {
    if (num_bit_bytes(form, rows, columns) == std::ssize(bytes))
      restore_bits(form, bytes, rows, columns);
  });
}

TEST(MaskBits, RefuseFormsThatMakeNoSense) {
  EXPECT_EQ(refused({.block_rows = 0}, {}, 4, 4), "blocks of 0 x 1 bits: expected at least 1 x 1");
  EXPECT_EQ(refused({.group = 4, .kept = 5}, {}, 4, 4),
            "5 of every 4 bits: expected a group of at most 16 that divides a row of 4");
  EXPECT_EQ(refused({.group = 4, .kept = 2}, {}, 4, 6),
            "2 of every 4 bits: expected a group of at most 16 that divides a row of 6");
  EXPECT_EQ(refused({.group = 4, .kept = 2, .coded_bytes = 3}, {}, 4, 4),
            "bits are both coded and in groups of 4");
  EXPECT_EQ(refused({.coded_bytes = 1}, {0}, 1 << 20, 1 << 20),
            "1099511627776 bits cannot be coded in 1 bytes");
  // There are six ways to choose two of four, numbered from 0.
  EXPECT_EQ(refused({.group = 4, .kept = 2}, {6}, 1, 4),
            "bits 0 and after are choice 6, but 2 of 4 can be chosen in 6 ways");
}

}  // namespace
}  // namespace lathe::io
