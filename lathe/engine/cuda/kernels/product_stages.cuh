#pragma once

// How the operands of a product come into shared memory: tiles of one range of k after another, in
// a ring of stages, some ahead of the one that is multiplied.

#include "lathe/engine/cuda/kernels/product_epilogue.cuh"

namespace lathe::engine::cuda {

/// What a precision's stages hold: bfloat16 for its own products, else float.
template <Precision P>
struct StageElement {
  using Type = float;
};
template <>
struct StageElement<Precision::Bf16> {
  using Type = std::uint16_t;
};

/// How an operand lies in a stage: as in memory, so that copies need no thread's help. Lines are
/// apart by a size that spreads what a warp reads over all banks.
template <typename Element, bool IsByK, int Tile, int Depth, int Padding>
struct Stage {
  static constexpr int kPitch = (IsByK ? Tile : Depth) + Padding;
  static constexpr int kElements = IsByK ? Depth * kPitch : Tile * kPitch;
  static __device__ int place(int outer, int k) {
    return IsByK ? k * kPitch + outer : outer * kPitch + k;
  }
};

/// Sixteen bytes of a stage from numbers of the other width or from where they do not begin on 16
/// bytes; those that are not there are zeros.
static __device__ void copy_by_hand(float* to, const void* from, bool is_half, int there,
                                    bool is_whole) {
  *reinterpret_cast<float4*>(to) =
      is_half ? four_halves(static_cast<const std::uint16_t*>(from), there, is_whole)
              : four_floats(static_cast<const float*>(from), there, is_whole);
}
static __device__ void copy_by_hand(std::uint16_t* to, const void* from, bool is_half, int there,
                                    bool is_whole) {
  float4 low, high;
  if (is_half) {
    const auto* const x = static_cast<const std::uint16_t*>(from);
    low = four_halves(x, there, is_whole);
    high = four_halves(x + 4, there - 4, is_whole);
  } else {
    const auto* const x = static_cast<const float*>(from);
    low = four_floats(x, there > 4 ? 4 : there, is_whole);
    high = four_floats(x + 4, there - 4, is_whole);
  }
  *reinterpret_cast<uint4*>(to) =
      make_uint4(to_bf16_pair(low.x, low.y), to_bf16_pair(low.z, low.w),
                 to_bf16_pair(high.x, high.y), to_bf16_pair(high.z, high.w));
}

static __device__ std::uint32_t shared_address(const void* place) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(place));
}

/// Copies one operand's tile: each thread has some groups of 16 bytes of every stage.
template <typename Element, bool IsByK, int Tile, int Depth, int Padding, int Threads>
class StageCopies {
 public:
  using Layout = Stage<Element, IsByK, Tile, Depth, Padding>;
  static constexpr int kGroup = 16 / sizeof(Element);

  /// From `outer` on up to `end`, and from `k` on.
  __device__ StageCopies(const void* x, Number as, std::int64_t stride, std::int64_t outer,
                         std::int64_t end, std::int64_t k)
      : is_half_(as == Number::BF16),
        is_whole_(stride % kGroup == 0),
        is_direct_(is_half_ == (sizeof(Element) == 2) && is_whole_) {
    const std::int64_t left = end - outer;
    left_ = static_cast<int>(left < 0 ? 0 : left > Tile ? Tile : left);
    const int bytes = is_half_ ? 2 : 4;
    const std::int64_t at = IsByK ? (k + first_k()) * stride + outer + first_outer()
                                  : (outer + first_outer()) * stride + k + first_k();
    from_ = static_cast<const char*>(x) + at * bytes;
    pass_ = static_cast<int>(kPass * stride) * bytes;
    step_ = static_cast<int>(IsByK ? Depth * stride : Depth) * bytes;
  }

  /// The next stage, of which `rest` is left along k.
  __device__ void next(Element* stage, int rest) {
    const char* from = from_;
    if (is_direct_ && left_ == Tile && rest >= Depth) {  // most stages: nothing to ask
      const std::uint32_t to = shared_address(stage + Layout::place(first_outer(), first_k()));
#pragma unroll
      for (int i = 0; i < kCount; ++i, from += pass_)
        copy_async(to + i * kPass * Layout::kPitch * static_cast<int>(sizeof(Element)), from, 16);
    } else {
#pragma unroll 1
      for (int i = 0; i < kCount; ++i, from += pass_) {
        const int outer = first_outer() + (IsByK ? 0 : i * kPass);
        const int k = first_k() + (IsByK ? i * kPass : 0);
        const int across = left_ - outer, along = rest - k;
        int there = IsByK ? across : along;
        there = across <= 0 || along <= 0 ? 0 : there > kGroup ? kGroup : there;
        Element* const to = stage + Layout::place(outer, k);
        if (is_direct_ && there != 0)
          copy_async(shared_address(to), from, there * static_cast<int>(sizeof(Element)));
        else
          copy_by_hand(to, from, is_half_, there, is_whole_);
      }
    }
    from_ += step_;
  }

 private:
  static constexpr int kLine = (IsByK ? Tile : Depth) / kGroup;  // groups
  static constexpr int kPass = Threads / kLine;                  // lines that all threads copy
  static constexpr int kCount = (IsByK ? Depth : Tile) / kPass;
  static_assert(Threads % kLine == 0 && (IsByK ? Depth : Tile) % kPass == 0);
  // Where this thread's first group begins.
  static __device__ int first_outer() {
    return IsByK ? threadIdx.x % kLine * kGroup : threadIdx.x / kLine;
  }
  static __device__ int first_k() {
    return IsByK ? threadIdx.x / kLine : threadIdx.x % kLine * kGroup;
  }
  const char* from_;
  int pass_, step_;  // bytes from one group to this thread's next, and from one stage to the next
  int left_;
  bool is_half_, is_whole_, is_direct_;
};

}  // namespace lathe::engine::cuda
