#pragma once

#include "lathe/engine/cuda/cuda_convolution.h"

namespace lathe::engine {

/// A value that no run changes.
bool is_settled(const Graph& graph, Value value);
bool has_operand(const Graph& graph, NodeId id, std::size_t operand);

/// The filters of one convolution of a node, as products read them: with the factors of the batch
/// norm behind it, where it has one.
class CudaFilters {
 public:
  /// Which operands of the node they are made of; of the norm, the first of four.
  struct Operands {
    std::size_t x = 0, weight = 1, bias = 2, norm = 4;
  };
  CudaFilters(const Graph& graph, NodeId id, CudaConvolution convolution, Operands operands,
              double eps, bool x_is_last);

  const CudaConvolution& convolution() const { return convolution_; }
  bool is_grouped() const { return convolution_.groups > 1; }
  bool has_bias() const { return has_bias_; }
  bool has_norm() const { return has_norm_; }
  /// Whether they are made of states that no run changes.
  bool is_settled() const { return is_settled_; }
  /// Channels of the pixels that they are multiplied with, padded.
  std::int64_t pixel_channels(cuda::Precision precision) const;
  /// Elements of one of them, padded, and bytes of each element.
  std::int64_t depth(cuda::Precision precision) const;
  std::int64_t element_bytes(cuda::Precision precision) const;

  /// Images of up to four channels under windows that go two pixels at a time: two neighbours are
  /// one pixel of eight channels, which halves what is multiplied for padding.
  bool has_pairs(cuda::Precision precision) const;
  std::int32_t pairs_before() const;
  std::int32_t num_pairs() const;

  /// Makes them, `pitch` elements from one to the next, and their bias where `bias` is not null:
  /// added to what is there or not.
  void make(const CudaCall& call, std::byte* to, std::int64_t pitch, float* bias, bool adds) const;
  /// What a convolution by them goes through.
  cuda::ConvolutionSource source(const CudaCall& call, const CudaImages& x,
                                 const CudaPixels& pixels) const;

 private:
  std::int32_t shift() const;
  std::int64_t filter_channels(cuda::Precision precision) const;

  CudaConvolution convolution_;
  Operands operands_;
  double eps_;
  Size width_;  // of x
  bool has_bias_ = false, has_norm_ = false, is_settled_ = false;
};

}  // namespace lathe::engine
