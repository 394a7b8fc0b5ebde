#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lathe/engine/cpu/kernels.h"

namespace lathe::engine {

/// The count, mean and sum of squared distances of what was seen of each channel: two such join
/// without losing digits however far the mean is from 0 (Chan, Golub and LeVeque 1983).
class ChannelMoments {
 public:
  explicit ChannelMoments(std::int64_t channels)
      : means_(static_cast<std::size_t>(channels), 0.0), squares_(means_) {}

  /// Joins some pixels, whose channels lie side by side: kChannelRows of them are summed in floats.
  void add(const Kernels& kernels, const float* pixels, std::int64_t count);
  void join(const ChannelMoments& other) {
    join(other.count_, other.means_.data(), other.squares_.data());
  }
  /// Joins `count` pixels whose means and sums of squared distances are known.
  template <typename Number>
  void join(double count, const Number* means, const Number* squares);
  double count() const { return count_; }
  double mean(std::size_t channel) const { return means_[channel]; }
  double squares(std::size_t channel) const { return squares_[channel]; }

 private:
  double count_ = 0;
  std::vector<double> means_, squares_;
};

/// Where the results of channel_statistics go.
struct ChannelStatistics {
  float* mean;
  float* variance;
  float* slope;
};
/// Joins moments in their order and writes what channel_statistics says of a norm with that weight.
void put_statistics(std::span<const ChannelMoments> moments, std::span<const float> weight,
                    double eps, const ChannelStatistics& results);

}  // namespace lathe::engine
