#include "lathe/engine/cpu/channel_moments.h"

#include <algorithm>
#include <cmath>

namespace lathe::engine {

template <typename Number>
void ChannelMoments::join(double count, const Number* means, const Number* squares) {
  if (count == 0) return;
  const double share = count / (count_ + count), weight = count_ * share;
  for (std::size_t c = 0; c < means_.size(); ++c) {
    const double distance = means[c] - means_[c];
    means_[c] += distance * share;
    squares_[c] += squares[c] + distance * distance * weight;
  }
  count_ += count;
}
template void ChannelMoments::join(double, const double*, const double*);

void ChannelMoments::add(const Kernels& kernels, const float* pixels, std::int64_t count) {
  const auto channels = static_cast<std::int64_t>(means_.size());
  std::vector<float> part(2 * means_.size());
  for (std::int64_t row = 0; row < count; row += kChannelRows) {
    const std::int64_t rows = std::min(kChannelRows, count - row);
    kernels.channel_moments({.rows = rows,
                             .n = channels,
                             .x = pixels + row * channels,
                             .means = part.data(),
                             .squares = part.data() + channels});
    join(static_cast<double>(rows), part.data(), part.data() + channels);
  }
}

void put_statistics(std::span<const ChannelMoments> moments, std::span<const float> weight,
                    double eps, const ChannelStatistics& results) {
  ChannelMoments all(std::ssize(weight));
  for (const ChannelMoments& more : moments) all.join(more);
  for (std::size_t c = 0; c < weight.size(); ++c) {
    const double squares = all.squares(c);
    results.mean[c] = static_cast<float>(all.mean(c));
    results.variance[c] = static_cast<float>(squares / (all.count() - 1));
    results.slope[c] = static_cast<float>(weight[c] / std::sqrt(squares / all.count() + eps));
  }
}

}  // namespace lathe::engine
