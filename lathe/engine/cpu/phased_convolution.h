#pragma once

#include "lathe/engine/cpu/convolution.h"

namespace lathe::engine {

/// A convolution of windows `stride` pixels apart as one of windows one pixel apart.
///
/// Pixels of the image with its padding whose rows and columns have the same quotients by the
/// strides lie together, as one pixel that has the channels of all of them; remainders that no tap
/// sees are left out. A window of 3 x 3 two pixels apart is then one of 2 x 2 on an image of half
/// the sides and four times the channels, with zeros in 7 of its 16 taps, and one of 1 x 1 sees
/// every other pixel. Whatever multiplies such windows needs to know nothing of strides.
class PhasedConvolution {
 public:
  /// Windows more than a pixel apart, of images whose channels lie side by side, in one group.
  static bool suits(const Convolution& convolution);

  explicit PhasedConvolution(const Convolution& convolution);
  const Convolution& convolution() const { return phased_; }

  /// The weight [O,C,kh,kw] of this one for that one, and back, which leaves its zeros out.
  std::vector<float> put_weight(const float* weight) const;
  void take_weight(const float* phased, float* weight) const;
  /// One image for that convolution, and back; what no window sees comes back as 0.
  void put_image(const float* x, float* phased) const;
  void take_image(const float* phased, float* x) const;

 private:
  /// Goes through the taps of all filters: `visit(place, phased place)`.
  template <typename Visit>
  void over_weights(const Visit& visit) const;
  /// Goes through pixels of a line that lie together in both, with those outside of the image:
  /// `visit(place, phased place, floats outside before, inside, and outside behind)`.
  template <typename Visit>
  void over_pixels(const Visit& visit) const;

  Convolution given_, phased_;
  std::int64_t phases_[2];  // of rows and columns, those that a tap sees
};

}  // namespace lathe::engine
