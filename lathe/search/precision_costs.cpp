#include "lathe/search/precision_costs.h"

#include <algorithm>

#include "lathe/core/error.h"

namespace lathe::search {

compress::AverageBits PrecisionCosts::average(const Candidate& candidate) const {
  std::vector<compress::LayerBits> layers = layers_;
  for (compress::LayerBits& layer : layers) {
    const auto formats = candidate.formats.find(layer.layer);
    if (formats == candidate.formats.end()) continue;
    const auto set = [&](compress::TensorRole role, std::string& format) {
      if (const auto found = formats->second.find(role); found != formats->second.end())
        format = found->second;
    };
    set(compress::TensorRole::Weights, layer.weights);
    set(compress::TensorRole::Inputs, layer.data);
  }
  return compress::average_bits(layers);
}

const compress::LayerBits& PrecisionCosts::layer(const std::string& name) const {
  const auto found = std::ranges::find(layers_, name, &compress::LayerBits::layer);
  check(found != layers_.end(), "a layer of the model");
  return *found;
}

}  // namespace lathe::search
