#include "lathe/engine/cpu/channel_gradients.h"

#include <cmath>
#include <vector>

namespace lathe::engine {

void add_channel_products(const Kernels& kernels, const ChannelProductsArgs& pixels,
                          double* total) {
  const auto sums = static_cast<std::size_t>(2 * pixels.n);
  const auto blocks = static_cast<std::size_t>((pixels.rows + kChannelRows - 1) / kChannelRows);
  std::vector<float> parts(blocks * sums);
  ChannelProductsArgs args = pixels;
  args.sums = parts.data();
  kernels.channel_products(args);
  for (std::size_t part = 0; part < parts.size(); part += sums)
    for (std::size_t i = 0; i < sums; ++i) total[i] += parts[part + i];
}

void put_channel_gradients(const ChannelSums& sums, const ChannelGradients& results) {
  const auto n = static_cast<std::size_t>(sums.n);
  std::vector<double> totals(2 * n, 0.0);
  for (std::size_t part = 0; part < sums.parts.size(); part += 2 * n)
    for (std::size_t i = 0; i < 2 * n; ++i) totals[i] += sums.parts[part + i];
  for (std::size_t c = 0; c < n; ++c) {
    const double dbias = totals[c], products = totals[n + c];
    const double scale =
        1.0 / std::sqrt(sums.variance[c] * (sums.count - 1) / sums.count + sums.eps);
    const double dweight = products * scale;
    results.weight[c] = static_cast<float>(dweight);
    results.bias[c] = static_cast<float>(dbias);
    results.factor[c] = static_cast<float>(scale * sums.weight[c]);
    results.shift[c] = static_cast<float>(dbias / sums.count);
    results.slope[c] = static_cast<float>(scale * dweight / sums.count);
  }
}

}  // namespace lathe::engine
