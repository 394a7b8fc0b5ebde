#include "lathe/engine/cpu/channel_gradients.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace lathe::engine {

void add_channel_products(const Kernels& kernels, const ChannelProductsArgs& pixels,
                          double* total) {
  const std::int64_t n = pixels.n;
  std::vector<float> part(static_cast<std::size_t>(2 * n));
  for (std::int64_t row = 0; row < pixels.rows; row += kChannelRows) {
    const auto at = [&](auto* values) { return values == nullptr ? nullptr : values + row * n; };
    kernels.channel_products({.rows = std::min(kChannelRows, pixels.rows - row),
                              .n = n,
                              .dy = at(pixels.dy),
                              .more = at(pixels.more),
                              .relu = at(pixels.relu),
                              .g = at(pixels.g),
                              .x = at(pixels.x),
                              .center = pixels.center,
                              .sums = part.data(),
                              .products = part.data() + n});
    for (std::int64_t i = 0; i < 2 * n; ++i) total[i] += part[static_cast<std::size_t>(i)];
  }
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
