#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

namespace lathe::engine {

/// The columns of products, in groups that have the same rows, which threads take piece by piece.
///
/// A piece costs something before its first column is multiplied, so the first ones are large; who
/// takes a late one holds up all others, so they become smaller as less is left. A result has the
/// same bits in whatever piece it lies, so pieces may follow the threads and their speed.
class ColumnPieces {
 public:
  struct Group {
    std::int64_t panels = 0;  ///< of columns, which are taken whole
    double panel_cycles = 1;  ///< for each of them
    double piece_cycles = 0;  ///< for a piece, beside its panels
  };
  struct Piece {
    std::size_t group;
    std::int64_t first, count;  ///< panels
  };

  ColumnPieces(std::vector<Group> groups, int threads);

  /// The next piece for a thread, which begins with groups of its own; none when all are taken.
  /// Groups of which small pieces cost little come last.
  std::optional<Piece> take(int thread);

  /// How many panels the largest piece of a group may have.
  std::int64_t most_panels(std::size_t group) const;
  /// How many threads begin with the same group as another does.
  std::int64_t neighbours(std::size_t group) const;

 private:
  static bool comes_first(const Group& group) {
    return group.piece_cycles > 2 * group.panel_cycles;
  }
  std::optional<Piece> take_from(std::size_t group);
  std::int64_t panels_of_piece(const Group& group, double cycles) const;

  std::vector<Group> groups_;
  std::vector<std::size_t> order_;  // of groups
  std::size_t num_first_ = 0;       // of those that come first
  int threads_;
  double total_ = 0;                // cycles of all panels
  std::atomic<std::int64_t> left_;  // of these
  std::vector<std::atomic<std::int64_t>> taken_;
};

}  // namespace lathe::engine
