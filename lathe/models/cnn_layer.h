#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace lathe::models {

/// One layer of a convolutional network as its name writes it.
struct CnnLayer {
  enum class Kind {
    Convolution,  ///< "c16k3s1p1", with ReLU behind it
    Residual,     ///< "r16k3s1": two convolutions and what they read beside them
    MaxPool,      ///< "m2"
    AveragePool,  ///< "a2"; "a" takes the whole image
    Linear,       ///< "120", with ReLU behind it unless it is the last
  };
  Kind kind = Kind::Linear;
  std::int64_t size = 0;  ///< channels or features given, or the window's side; 0: the whole image
  std::int64_t kernel = 1, stride = 1, padding = 0;

  bool operator==(const CnnLayer&) const = default;
};

/// Reads "c6k5,m2,120,10"; fails on the first layer that is none.
std::vector<CnnLayer> parse_cnn_layers(std::string_view text);

}  // namespace lathe::models
