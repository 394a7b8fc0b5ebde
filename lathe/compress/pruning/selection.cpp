#include "lathe/compress/pruning/selection.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "lathe/core/error.h"
#include "lathe/ops/channel_matrix.h"

namespace lathe::compress {
namespace {

constexpr std::array<std::string_view, 3> kScopes{"row", "local", "global"};
constexpr double kOut = -std::numeric_limits<double>::infinity();

// The scores and the mask of one state, as matrices.
struct Sheet {
  std::vector<std::int64_t> dims;
  std::int64_t axis = -1;
  Tensor scores, mask;
};

class Selector {
 public:
  Selector(std::span<const PruningUnit> units, const State& scores, const State& held)
      : units_(units) {
    for (const PruningUnit& unit : units)
      for (const GranulePart& part : unit.parts)
        if (!sheets_.contains(part.state)) sheets_[part.state] = make_sheet(part, scores, held);
  }

  State run(double sparsity, PruningScope scope) {
    std::vector<double> all;
    for (const PruningUnit& unit : units_) {
      const std::vector<double> scores = granule_scores(unit);
      const double share = granule_share(unit, sparsity);
      if (scope == PruningScope::Global) {
        all.insert(all.end(), scores.begin(), scores.end());
        continue;
      }
      std::vector<bool> pruned(scores.size());
      const std::int64_t lines = scope == PruningScope::Row ? unit.lines : 1;
      const auto width =
          static_cast<std::int64_t>(scores.size()) / std::max<std::int64_t>(1, lines);
      for (std::int64_t line = 0; line < lines; ++line) {
        // Shares of the lines so far, so that what rounding takes from one the next one gets.
        const std::int64_t count =
            share_of(share, (line + 1) * width) - share_of(share, line * width);
        const auto first = static_cast<std::size_t>(line * width);
        const std::vector<bool> chosen =
            lowest(std::span(scores).subspan(first, static_cast<std::size_t>(width)), count);
        std::copy(chosen.begin(), chosen.end(), pruned.begin() + line * width);
      }
      prune(unit, pruned, 0);
    }
    if (scope == PruningScope::Global) prune_globally(all, sparsity);
    return masks();
  }

 private:
  static Sheet make_sheet(const GranulePart& part, const State& scores, const State& held) {
    const auto found = scores.find(part.state);
    check(found != scores.end() &&
              found->second.num_elements() == part.matrix_rows * part.matrix_columns,
          "a score for each element");
    Sheet sheet{found->second.dims(), part.axis, ops::to_matrix(found->second, part.axis), {}};
    sheet.mask = Tensor(DType::F32, sheet.scores.dims());
    std::ranges::fill(sheet.mask.mutable_data<float>(), 1.0f);
    const auto before = held.find(part.state);
    if (before == held.end()) return sheet;
    const Tensor kept = ops::to_matrix(before->second, part.axis);
    check(kept.num_elements() == sheet.mask.num_elements(), "a mask of the scores' size");
    const std::span<float> values = sheet.scores.mutable_data<float>();
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (kept.data<float>()[i] != 0) continue;
      values[i] = -std::numeric_limits<float>::infinity();
      sheet.mask.mutable_data<float>()[i] = 0;
    }
    return sheet;
  }

  // The share of granules to prune, of which each loses all its elements or some.
  static double granule_share(const PruningUnit& unit, double sparsity) {
    if (unit.kept == 0) return sparsity;
    const double lost =
        1 - static_cast<double>(unit.kept) / static_cast<double>(unit.parts.front().tile_columns);
    return std::min(1.0, sparsity / lost);
  }

  std::vector<double> granule_scores(const PruningUnit& unit) const {
    const auto count = static_cast<std::size_t>(unit.granules);
    std::vector<double> sums(count, 0.0);
    if (unit.kept > 0) {
      for (std::size_t granule = 0; granule < count; ++granule)
        sums[granule] = mean_of(lost_elements(unit, granule));
      return sums;
    }
    std::vector<std::int64_t> elements(count), out(count);
    for (const GranulePart& part : unit.parts) {
      const std::span<const float> scores = sheets_.at(part.state).scores.data<float>();
      for_each_element(part, [&](std::size_t granule, std::size_t i) {
        ++elements[granule];
        if (std::isinf(scores[i]) && scores[i] < 0)
          ++out[granule];
        else
          sums[granule] += static_cast<double>(scores[i]);
      });
    }
    for (std::size_t g = 0; g < count; ++g)
      sums[g] = out[g] == elements[g] ? kOut : sums[g] / static_cast<double>(elements[g]);
    return sums;
  }

  struct Scored {
    float score;
    std::size_t index;
  };
  // The elements that a group of N:M would lose.
  std::vector<Scored> lost_elements(const PruningUnit& unit, std::size_t granule) const {
    const GranulePart& part = unit.parts.front();
    const std::span<const float> scores = sheets_.at(part.state).scores.data<float>();
    const auto size = static_cast<std::size_t>(part.tile_columns);
    std::vector<Scored> group;
    // Groups divide rows, so they follow each other in the matrix.
    for (std::size_t i = granule * size; i < (granule + 1) * size; ++i)
      group.push_back({scores[i], i});
    std::ranges::stable_sort(group, {}, &Scored::score);
    group.resize(size - static_cast<std::size_t>(unit.kept));
    return group;
  }
  static double mean_of(const std::vector<Scored>& group) {
    double sum = 0;
    bool is_out = true;
    for (const Scored& each : group) {
      if (std::isinf(each.score) && each.score < 0) continue;
      sum += static_cast<double>(each.score);
      is_out = false;
    }
    return is_out ? kOut : sum / static_cast<double>(group.size());
  }

  void prune_globally(const std::vector<double>& scores, double sparsity) {
    if (units_.empty()) return;
    const auto total = static_cast<std::int64_t>(scores.size());
    const std::vector<bool> pruned =
        lowest(scores, share_of(granule_share(units_.front(), sparsity), total));
    std::size_t first = 0;
    for (const PruningUnit& unit : units_) {
      prune(unit, pruned, first);
      first += static_cast<std::size_t>(unit.granules);
    }
  }

  void prune(const PruningUnit& unit, const std::vector<bool>& pruned, std::size_t first) {
    for (const GranulePart& part : unit.parts) {
      const std::span<float> mask = sheets_.at(part.state).mask.mutable_data<float>();
      if (unit.kept == 0) {
        for_each_element(part, [&](std::size_t granule, std::size_t i) {
          if (pruned[first + granule]) mask[i] = 0;
        });
        continue;
      }
      for (std::size_t granule = 0; granule < static_cast<std::size_t>(unit.granules); ++granule)
        if (pruned[first + granule])
          for (const Scored& each : lost_elements(unit, granule)) mask[each.index] = 0;
    }
  }

  State masks() const {
    State result;
    for (const auto& [state, sheet] : sheets_)
      result[state] = ops::from_matrix(sheet.mask, sheet.dims, sheet.axis);
    return result;
  }

  std::span<const PruningUnit> units_;
  std::map<std::string, Sheet> sheets_;
};

}  // namespace

std::string_view name(PruningScope scope) {
  return kScopes[static_cast<std::size_t>(scope)];
}

PruningScope parse_pruning_scope(std::string_view text) {
  for (std::size_t i = 0; i < kScopes.size(); ++i)
    if (kScopes[i] == text) return static_cast<PruningScope>(i);
  throw unknown_name("scope", text, {kScopes.begin(), kScopes.end()});
}

std::int64_t share_of(double share, std::int64_t count) {
  return std::llround(share * static_cast<double>(count));
}

std::vector<bool> lowest(std::span<const double> scores, std::int64_t count) {
  std::vector<bool> result(scores.size());
  if (count <= 0) return result;
  std::vector<double> sorted(scores.begin(), scores.end());
  std::nth_element(sorted.begin(), sorted.begin() + (count - 1), sorted.end());
  const double last = sorted[static_cast<std::size_t>(count - 1)];
  // All below the last one, then the first of its equals.
  for (std::size_t i = 0; i < scores.size(); ++i)
    if (scores[i] < last) {
      result[i] = true;
      --count;
    }
  for (std::size_t i = 0; i < scores.size() && count > 0; ++i)
    if (scores[i] == last) {
      result[i] = true;
      --count;
    }
  return result;
}

void check_sparsity(double sparsity, const Granularity& granularity) {
  if (!(sparsity >= 0 && sparsity <= 1))
    fail("sparsity {:g}: expected a share of the weights, 0 to 1", sparsity);
  // Shares such as 1 - 1/3 are not exact.
  if (sparsity > largest_sparsity(granularity) + 1e-9)
    fail("sparsity {:g}: {} prunes {:g} of a weight at most", sparsity, to_text(granularity),
         largest_sparsity(granularity));
}

State select_masks(std::span<const PruningUnit> units, const State& scores, double sparsity,
                   PruningScope scope, const State& held) {
  return Selector(units, scores, held).run(sparsity, scope);
}

}  // namespace lathe::compress
