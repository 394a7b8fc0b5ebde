#include "lathe/io/storage/mask_bits.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "lathe/core/error.h"
#include "lathe/io/storage/symbol_coder.h"
#include "lathe/numerics/bit_stream.h"

namespace lathe::io {
namespace {

constexpr int kMostGroup = 16;

std::int64_t num_blocks(std::int64_t size, std::int64_t block) {
  return size / block + (size % block != 0 ? 1 : 0);
}

std::size_t place(std::int64_t row, std::int64_t columns, std::int64_t column) {
  return static_cast<std::size_t>(row * columns + column);
}

bool has_blocks(std::span<const std::uint8_t> bits, std::int64_t columns, std::int64_t block_rows,
                std::int64_t block_columns) {
  const std::int64_t rows = std::ssize(bits) / columns;
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < columns; ++column)
      if (bits[place(row, columns, column)] != bits[place(row / block_rows * block_rows, columns,
                                                          column / block_columns * block_columns)])
        return false;
  return true;
}

// The block form with the fewest bits.
BitForm find_blocks(std::span<const std::uint8_t> bits, std::int64_t columns) {
  const std::int64_t rows = std::ssize(bits) / columns;
  BitForm best;
  std::int64_t least = rows * columns;
  constexpr std::int64_t kWhole = std::numeric_limits<std::int64_t>::max();
  constexpr std::array<std::int64_t, 8> kSizes{1, 2, 4, 8, 16, 32, 64, kWhole};
  for (const std::int64_t tried_rows : kSizes)
    for (const std::int64_t tried_columns : kSizes) {
      const std::int64_t block_rows = std::min(tried_rows, rows);
      const std::int64_t block_columns = std::min(tried_columns, columns);
      const std::int64_t count = num_blocks(rows, block_rows) * num_blocks(columns, block_columns);
      if (count >= least || !has_blocks(bits, columns, block_rows, block_columns)) continue;
      best.block_rows = block_rows;
      best.block_columns = block_columns;
      least = count;
    }
  return best;
}

using Binomials = std::array<std::array<std::uint32_t, kMostGroup + 2>, kMostGroup + 1>;
constexpr Binomials make_binomials() {
  Binomials result{};
  for (std::size_t n = 0; n <= kMostGroup; ++n) {
    result[n][0] = 1;
    for (std::size_t k = 1; k <= n; ++k) result[n][k] = result[n - 1][k - 1] + result[n - 1][k];
  }
  return result;
}
// [n][k]: in how many ways k of n bits can be set.
constexpr Binomials kBinomials = make_binomials();

std::uint32_t num_choices(int group, int kept) {
  return kBinomials[static_cast<std::size_t>(group)][static_cast<std::size_t>(kept)];
}

int choice_bits(int group, int kept) {
  return std::bit_width(num_choices(group, kept) - 1);
}

// The number of a choice: how many come before it when their highest set bits are compared first.
std::uint32_t choice_of(std::span<const std::uint8_t> bits) {
  std::uint32_t choice = 0;
  std::size_t seen = 0;
  for (std::size_t i = 0; i < bits.size(); ++i)
    if (bits[i] != 0) choice += kBinomials[i][++seen];
  return choice;
}

void set_choice(std::uint32_t choice, int kept, std::span<std::uint8_t> bits) {
  for (std::size_t i = bits.size(); i-- > 0;) {
    const std::uint32_t below = kBinomials[i][static_cast<std::size_t>(kept)];
    bits[i] = kept > 0 && choice >= below ? 1 : 0;
    if (bits[i] == 0) continue;
    choice -= below;
    --kept;
  }
}

// How many of the first group are set, if that holds for all.
int count_kept(std::span<const std::uint8_t> bits, std::int64_t group) {
  int kept = -1;
  for (std::int64_t first = 0; first < std::ssize(bits); first += group) {
    int count = 0;
    for (const std::uint8_t bit :
         bits.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(group)))
      count += bit;
    if (kept >= 0 && count != kept) return -1;
    kept = count;
  }
  return kept;
}

std::vector<std::uint8_t> pack(std::span<const std::uint8_t> bits, const BitForm& form) {
  const int group = form.group > 0 ? form.group : 1;
  const int width = form.group > 0 ? choice_bits(form.group, form.kept) : 1;
  std::vector<std::uint8_t> bytes(
      static_cast<std::size_t>(numerics::bytes_for_bits(std::ssize(bits) / group * width)));
  numerics::BitWriter writer(bytes.data());
  for (std::size_t first = 0; first < bits.size(); first += static_cast<std::size_t>(group))
    writer.put(form.group > 0 ? choice_of(bits.subspan(first, static_cast<std::size_t>(group)))
                              : bits[first],
               width);
  return bytes;
}

}  // namespace

StoredBits store_bits(std::span<const std::uint8_t> bits, std::int64_t columns, bool may_code) {
  const std::int64_t rows = std::ssize(bits) / columns;
  StoredBits best;
  best.form = find_blocks(bits, columns);
  const BitForm blocks = best.form;
  SymbolTable grid{.rows = num_blocks(rows, blocks.block_rows),
                   .columns = num_blocks(columns, blocks.block_columns),
                   .bits = 1,
                   .symbols = {}};
  for (std::int64_t row = 0; row < rows; row += blocks.block_rows)
    for (std::int64_t column = 0; column < columns; column += blocks.block_columns)
      grid.symbols.push_back(bits[place(row, columns, column)]);
  best.bytes = pack(grid.symbols, best.form);

  for (const int group : {2, 4, 8, kMostGroup}) {
    if (grid.columns % group != 0) continue;
    const int kept = count_kept(grid.symbols, group);
    if (kept < 0) continue;
    BitForm form = blocks;
    form.group = group;
    form.kept = kept;
    std::vector<std::uint8_t> bytes = pack(grid.symbols, form);
    if (bytes.size() < best.bytes.size()) best = {form, std::move(bytes)};
  }
  if (!may_code) return best;
  std::vector<std::uint8_t> coded = encode_symbols(grid, SymbolOrder::TwosComplement);
  if (coded.size() < best.bytes.size()) {
    best.form = blocks;
    best.form.coded_bytes = std::ssize(coded);
    best.bytes = std::move(coded);
  }
  return best;
}

std::int64_t num_bit_bytes(const BitForm& form, std::int64_t rows, std::int64_t columns) {
  if (form.block_rows < 1 || form.block_columns < 1)
    fail("blocks of {} x {} bits: expected at least 1 x 1", form.block_rows, form.block_columns);
  const std::int64_t count =
      num_blocks(rows, form.block_rows) * num_blocks(columns, form.block_columns);
  if (form.coded_bytes < 0) fail("bits coded in {} bytes", form.coded_bytes);
  if (form.coded_bytes > 0) {
    if (form.group != 0) fail("bits are both coded and in groups of {}", form.group);
    if (count > most_symbols(form.coded_bytes, 1))
      fail("{} bits cannot be coded in {} bytes", count, form.coded_bytes);
    return form.coded_bytes;
  }
  if (form.group == 0) return numerics::bytes_for_bits(count);
  if (form.group < 1 || form.group > kMostGroup || form.kept < 0 || form.kept > form.group ||
      num_blocks(columns, form.block_columns) % form.group != 0)
    fail("{} of every {} bits: expected a group of at most {} that divides a row of {}", form.kept,
         form.group, kMostGroup, num_blocks(columns, form.block_columns));
  return numerics::bytes_for_bits(count / form.group * choice_bits(form.group, form.kept));
}

std::vector<std::uint8_t> restore_bits(const BitForm& form, std::span<const std::uint8_t> bytes,
                                       std::int64_t rows, std::int64_t columns) {
  check(num_bit_bytes(form, rows, columns) == std::ssize(bytes), "as many bytes as the form takes");
  SymbolTable grid{.rows = num_blocks(rows, form.block_rows),
                   .columns = num_blocks(columns, form.block_columns),
                   .bits = 1,
                   .symbols = {}};
  grid.symbols.resize(static_cast<std::size_t>(grid.rows * grid.columns));
  if (form.coded_bytes > 0) {
    decode_symbols(bytes, SymbolOrder::TwosComplement, grid);
  } else if (form.group > 0) {
    numerics::BitReader reader(bytes.data());
    const int width = choice_bits(form.group, form.kept);
    for (std::size_t first = 0; first < grid.symbols.size();
         first += static_cast<std::size_t>(form.group)) {
      const std::uint32_t choice = width > 0 ? reader.take(width) : 0;
      if (choice >= num_choices(form.group, form.kept))
        fail("bits {} and after are choice {}, but {} of {} can be chosen in {} ways", first,
             choice, form.kept, form.group, num_choices(form.group, form.kept));
      set_choice(choice, form.kept,
                 std::span(grid.symbols).subspan(first, static_cast<std::size_t>(form.group)));
    }
  } else {
    numerics::BitReader reader(bytes.data());
    for (std::uint8_t& bit : grid.symbols) bit = static_cast<std::uint8_t>(reader.take(1));
  }
  if (form.block_rows == 1 && form.block_columns == 1) return std::move(grid.symbols);
  std::vector<std::uint8_t> bits(static_cast<std::size_t>(rows * columns));
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < columns; ++column)
      bits[place(row, columns, column)] =
          grid.symbols[place(row / form.block_rows, grid.columns, column / form.block_columns)];
  return bits;
}

}  // namespace lathe::io
