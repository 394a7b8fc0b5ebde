#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::numerics {

/// What follows the colon of a format, `8,4,block=16,asymmetric`: positional arguments, options
/// with a value and flags, each taken once. `finish` refuses what nobody took.
class FormatArguments {
 public:
  explicit FormatArguments(std::string_view text);

  /// The next positional argument; fails when there is none. `name` is what a user calls it.
  std::string text(std::string_view name);
  /// The same where it must be a whole number between two others.
  std::int64_t integer(std::string_view name, std::int64_t low, std::int64_t high);
  /// The next positional argument if there is one and it does not name an option.
  std::optional<std::string> next_text();
  bool flag(std::string_view name);
  std::optional<std::string> option(std::string_view name);
  std::optional<std::int64_t> integer_option(std::string_view name, std::int64_t low,
                                             std::int64_t high);
  /// "16" or "4x16": rows and columns of a block.
  struct Tile {
    std::int64_t rows = 1;
    std::int64_t columns = 0;
  };
  Tile tile_option(std::string_view name, Tile otherwise);
  /// "block=16": the columns of a block within a row.
  std::int64_t block_option(std::int64_t otherwise);
  /// Fails on an argument that was not taken, with the nearest known option.
  void finish() const;

 private:
  std::vector<std::string> rest_;
  std::vector<std::string> known_;  // every option that was asked for
};

/// Reads a whole number between two others; fails with `name` and what was given.
std::int64_t parse_integer(std::string_view text, std::string_view name, std::int64_t low,
                           std::int64_t high);

}  // namespace lathe::numerics
