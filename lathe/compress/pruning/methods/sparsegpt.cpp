#include <algorithm>
#include <limits>

#include "lathe/compress/pruning/method.h"
#include "lathe/compress/symmetric_matrix.h"
#include "lathe/ops/channel_matrix.h"

// Frantar and Alistarh 2023: column after column, what is pruned is made up for by the columns to
// come, as in GPTQ. Which weights of a block of columns go is decided when it is reached, by the
// error that each leaves after that: w^2 / U_cc^2, with U the upper factor of the inverse of x x^T.
namespace lathe::compress::sparsegpt {
namespace {

constexpr std::int64_t kBlock = 128;
constexpr double kOut = -std::numeric_limits<double>::infinity();

class Compensation {
 public:
  Compensation(std::span<const float> weights, std::int64_t columns,
               const std::vector<double>& products, std::span<const float> held)
      : k_(static_cast<std::size_t>(columns)),
        rows_(weights.size() / k_),
        weights_(weights.begin(), weights.end()),
        lower_(inverse_factor(products, k_)),
        held_(held),
        mask_(weights.size(), 1) {}

  // Blocks so wide, the last one narrower; in each as many go as are missing to the share of all
  // columns so far.
  void prune(double sparsity) {
    const auto width = static_cast<std::size_t>(kBlock);
    std::int64_t pruned = 0;
    for (std::size_t first = 0; first < k_; first += width) {
      const std::size_t end = std::min(first + width, k_);
      const std::int64_t wanted =
          share_of(sparsity, static_cast<std::int64_t>(rows_ * end)) - pruned;
      pruned += choose(first, end, std::max<std::int64_t>(0, wanted));
      compensate(first, end);
    }
  }

  // `kept` of `of` columns stay in a row, in as many groups as the sparsity asks for, those first
  // that leave the least error.
  void prune_groups(double sparsity, std::int64_t kept, std::int64_t of) {
    const auto size = static_cast<std::size_t>(of), lost = static_cast<std::size_t>(of - kept);
    const double share =
        std::min(1.0, sparsity * static_cast<double>(of) / static_cast<double>(of - kept));
    std::int64_t pruned = 0;
    for (std::size_t first = 0; first < k_; first += size) {
      std::vector<double> errors(rows_);
      std::vector<std::vector<std::size_t>> choices(rows_);
      for (std::size_t r = 0; r < rows_; ++r) {
        std::vector<double> scores;
        for (std::size_t c = first; c < first + size; ++c) scores.push_back(score(r, c));
        const std::vector<bool> chosen = lowest(scores, of - kept);
        bool is_out = true;
        for (std::size_t i = 0; i < size; ++i)
          if (chosen[i]) {
            choices[r].push_back(first + i);
            if (scores[i] == kOut) continue;
            errors[r] += scores[i] / static_cast<double>(lost);
            is_out = false;
          }
        if (is_out) errors[r] = kOut;
      }
      const auto groups = static_cast<std::int64_t>(rows_ * ((first + size) / size));
      const std::int64_t count = share_of(share, groups) - pruned;
      const std::vector<bool> lines = lowest(errors, count);
      for (std::size_t r = 0; r < rows_; ++r)
        if (lines[r])
          for (const std::size_t c : choices[r]) mask_[r * k_ + c] = 0;
      pruned += count;
      keep_holes(first, first + size);
      compensate(first, first + size);
    }
  }

  std::vector<float> mask() const { return mask_; }
  std::vector<float> weights() const { return {weights_.begin(), weights_.end()}; }

 private:
  double upper(std::size_t i, std::size_t j) const { return lower_[j * k_ + i]; }
  bool is_held(std::size_t i) const { return !held_.empty() && held_[i] == 0; }

  double score(std::size_t row, std::size_t column) const {
    if (is_held(row * k_ + column)) return kOut;
    const double ratio = weights_[row * k_ + column] / upper(column, column);
    return ratio * ratio;
  }

  // Marks the weights of some columns that leave the least error; returns how many went.
  std::int64_t choose(std::size_t first, std::size_t end, std::int64_t count) {
    std::vector<double> scores;
    for (std::size_t r = 0; r < rows_; ++r)
      for (std::size_t c = first; c < end; ++c) scores.push_back(score(r, c));
    const std::vector<bool> chosen =
        lowest(scores, std::min(count, static_cast<std::int64_t>(scores.size())));
    for (std::size_t i = 0; i < scores.size(); ++i)
      if (chosen[i]) mask_[i / (end - first) * k_ + first + i % (end - first)] = 0;
    keep_holes(first, end);
    std::int64_t gone = 0;
    for (std::size_t r = 0; r < rows_; ++r)
      for (std::size_t c = first; c < end; ++c) gone += mask_[r * k_ + c] == 0 ? 1 : 0;
    return gone;
  }

  void keep_holes(std::size_t first, std::size_t end) {
    for (std::size_t r = 0; r < rows_; ++r)
      for (std::size_t c = first; c < end; ++c)
        if (is_held(r * k_ + c)) mask_[r * k_ + c] = 0;
  }

  void compensate(std::size_t first, std::size_t end) {
    for (std::size_t r = 0; r < rows_; ++r)
      for (std::size_t c = first; c < end; ++c) {
        double& weight = weights_[r * k_ + c];
        if (mask_[r * k_ + c] != 0) continue;
        const double error = weight / upper(c, c);
        for (std::size_t j = c + 1; j < k_; ++j) weights_[r * k_ + j] -= error * upper(c, j);
        weight = 0;
      }
  }

  std::size_t k_, rows_;
  std::vector<double> weights_;
  const std::vector<double> lower_;
  std::span<const float> held_;
  std::vector<float> mask_;
};

PrunedWeight prune(const ScoringInput& input, const PruningUnit& unit, double sparsity,
                   const Tensor* held) {
  const GranulePart& part = unit.parts.front();
  const Tensor& value = input.values.at(part.state);
  const Tensor matrix = ops::to_matrix(value, part.axis);
  const Tensor holes = held == nullptr ? Tensor() : ops::to_matrix(*held, part.axis);
  Compensation compensation(matrix.data<float>(), part.matrix_columns,
                            input.products->at(part.state), holes.data<float>());
  if (unit.kept > 0)
    compensation.prune_groups(sparsity, unit.kept, part.tile_columns);
  else
    compensation.prune(sparsity);
  const auto restored = [&](const std::vector<float>& values) {
    return ops::from_matrix(Tensor::from<float>(matrix.dims(), std::span<const float>(values)),
                            value.dims(), part.axis);
  };
  return {.mask = restored(compensation.mask()), .values = restored(compensation.weights())};
}

const Register registration{PruningMethod{
    .name = "sparsegpt",
    .summary = "those that leave the least error, which the weights that stay make up for",
    .evidence = PruningEvidence::Inputs,
    .granularities =
        [](const Granularity& granularity) {
          return granularity.kind == Granularity::Kind::Element ||
                 granularity.kind == Granularity::Kind::SomeOfSeveral;
        },
    .prunes = "elements and N:M",
    .prune = prune,
}};

}  // namespace
}  // namespace lathe::compress::sparsegpt
