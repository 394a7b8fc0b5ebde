#include "lathe/engine/cpu/column_pieces.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace lathe::engine {
namespace {

// Of what is left for each thread, so much is taken at once: a core that is half as fast as the
// others ends its first piece when they end all of theirs.
constexpr double kShareTaken = 0.5;
// What a piece costs beside its panels, in what those do: less than it says, because the model
// counts what comes from farther away as if nothing else were done meanwhile.
constexpr double kMostBeside = 1.5;

}  // namespace

ColumnPieces::ColumnPieces(std::vector<Group> groups, int threads)
    : groups_(std::move(groups)), threads_(threads), taken_(groups_.size()) {
  for (const bool is_first : {true, false}) {
    for (std::size_t i = 0; i < groups_.size(); ++i)
      if (comes_first(groups_[i]) == is_first) order_.push_back(i);
    if (is_first) num_first_ = order_.size();
  }
  for (const Group& group : groups_)
    total_ += static_cast<double>(group.panels) * group.panel_cycles;
  left_ = static_cast<std::int64_t>(total_);
}

std::int64_t ColumnPieces::panels_of_piece(const Group& group, double cycles) const {
  if (threads_ == 1 || group.panel_cycles <= 0) return group.panels;  // no rows cost nothing
  const double share = std::floor(kShareTaken * cycles / threads_ / group.panel_cycles);
  const double least = std::ceil(group.piece_cycles / kMostBeside / group.panel_cycles);
  return std::clamp(static_cast<std::int64_t>(std::max(share, least)), std::int64_t{1},
                    std::max<std::int64_t>(1, group.panels));
}

std::int64_t ColumnPieces::most_panels(std::size_t group) const {
  return panels_of_piece(groups_[group], total_);
}

std::int64_t ColumnPieces::neighbours(std::size_t group) const {
  const std::size_t of_kind = comes_first(groups_[group]) ? num_first_ : order_.size() - num_first_;
  return std::max<std::int64_t>(1, threads_ / static_cast<std::int64_t>(of_kind));
}

std::optional<ColumnPieces::Piece> ColumnPieces::take_from(std::size_t index) {
  const Group& group = groups_[index];
  std::atomic<std::int64_t>& taken = taken_[index];
  if (taken.load(std::memory_order_relaxed) >= group.panels) return std::nullopt;
  const double left = static_cast<double>(left_.load(std::memory_order_relaxed));
  const std::int64_t wanted = panels_of_piece(group, left);
  const std::int64_t first = taken.fetch_add(wanted, std::memory_order_relaxed);
  const std::int64_t count = std::min(wanted, group.panels - first);
  if (count <= 0) return std::nullopt;
  left_.fetch_sub(static_cast<std::int64_t>(static_cast<double>(count) * group.panel_cycles),
                  std::memory_order_relaxed);
  return Piece{index, first, count};
}

std::optional<ColumnPieces::Piece> ColumnPieces::take(int thread) {
  const auto own = static_cast<std::size_t>(thread), threads = static_cast<std::size_t>(threads_);
  for (const auto& [begin, end] :
       {std::pair(std::size_t{0}, num_first_), std::pair(num_first_, order_.size())}) {
    const std::size_t count = end - begin;
    for (std::size_t i = 0; i < count; ++i)
      if (const std::optional<Piece> piece =
              take_from(order_[begin + (own * count / threads + i) % count]))
        return piece;
  }
  return std::nullopt;
}

}  // namespace lathe::engine
