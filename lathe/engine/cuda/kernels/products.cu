// Products of matrices whose sizes a library's kernels are not made for: several at once, few rows,
// sums over many rows, and with what follows them. Large ones are cuBLASLt's (gemm.cu).
//
// A block of threads makes one tile of c, or with parts one range of its k. The order of all sums
// follows from the sizes alone.

#include "lathe/engine/cuda/kernels/kernels.cuh"
#include "lathe/engine/cuda/kernels/product_tile.cuh"

namespace lathe::engine::cuda {
namespace {

constexpr int kTile = kProductTile, kSmall = kSmallProductTile;

// Tiles of many results, and of few: there the threads share the depth, so that more blocks have
// something to do.
template <Precision P>
struct Tiles {
  static constexpr int kDepth = P == Precision::Bf16 ? 64 : 32;
  using Large = Tiling<P, kTile, kTile, kDepth, 3, TensorTile<P, kTile, kTile, 2, 2, kDepth>>;
  using Small = Tiling<P, kSmall, kSmall, 128, 2, TensorTile<P, kSmall, kSmall, 1, 1, 128, 4>>;
};
template <>
struct Tiles<Precision::Float32> {
  static constexpr Precision P = Precision::Float32;
  using Large = Tiling<P, kTile, kTile, 16, 4, FloatTile<kTile, kTile, 8, 4, 16>>;
  using Small = Tiling<P, kSmall, kSmall, 128, 2, FloatTile<kSmall, kSmall, 4, 4, 128, 8>>;
};

template <Precision P>
__global__ void __launch_bounds__(Tiles<P>::Large::kThreads, 4)
    products_kernel(const __grid_constant__ ProductArgs args) {
  using Large = typename Tiles<P>::Large;
  using Small = typename Tiles<P>::Small;
  static_assert(Large::kThreads == Small::kThreads);
  extern __shared__ float4 room[];
  const auto block_of_launch = static_cast<int>(blockIdx.x);
  int index = 0;
  while (index + 1 < args.count && args.first_blocks[index + 1] <= block_of_launch) ++index;
  const Product& product = args.products[index];
  const int block = block_of_launch - args.first_blocks[index];
  if (has_small_tiles(product)) {
    if (product.b_by_k)
      make_tile<Small, false, true>(product, block, room);
    else
      make_tile<Small, false, false>(product, block, room);
  } else if (product.a_by_k) {
    make_tile<Large, true, true>(product, block, room);
  } else if (product.b_by_k) {
    make_tile<Large, false, true>(product, block, room);
  } else {
    make_tile<Large, false, false>(product, block, room);
  }
}

template <Precision P>
void launch(const ProductArgs& args, cudaStream_t stream) {
  using Large = typename Tiles<P>::Large;
  using Small = typename Tiles<P>::Small;
  constexpr int kBytes = Large::kBytes;
  // Four blocks of large tiles find room on a multiprocessor; small ones must not change that.
  static_assert(Small::kBytes <= kBytes && 4 * (kBytes + 1024) <= 228 << 10);
  static const cudaError_t is_allowed =
      cudaFuncSetAttribute(products_kernel<P>, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  static_cast<void>(is_allowed);
  products_kernel<P>
      <<<static_cast<unsigned>(args.num_blocks), Large::kThreads, kBytes, stream>>>(args);
}

}  // namespace

void products(const ProductArgs& args, Stream* stream) {
  if (args.num_blocks == 0) return;
  switch (args.precision) {
    case Precision::Float32:
      return launch<Precision::Float32>(args, stream_of(stream));
    case Precision::Tf32:
      return launch<Precision::Tf32>(args, stream_of(stream));
    case Precision::Bf16:
      return launch<Precision::Bf16>(args, stream_of(stream));
  }
}

}  // namespace lathe::engine::cuda
