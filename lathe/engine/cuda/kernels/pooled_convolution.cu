// A convolution of few planes with the pool behind it, as residual networks begin: the result of
// the convolution, four times as large as what is left of it, never leaves the multiprocessor.
//
// A block makes 7 x 14 pixels of the pool from 15 x 29 of the convolution. It brings the pixels
// under their windows into shared memory once, four channels of bfloat16 each, so that the eight
// pixels of a row of taps are 64 bytes in a row: the rows of the product are read there, where they
// overlap. Groups of four warps multiply two lines of 32 places at a time.

#include "lathe/engine/cuda/arguments/pooling.h"
#include "lathe/engine/cuda/kernels/convolution_results.cuh"
#include "lathe/engine/cuda/kernels/convolution_tile.cuh"
#include "lathe/engine/cuda/kernels/early_launch.cuh"
#include "lathe/engine/cuda/kernels/kernels.cuh"

namespace lathe::engine::cuda {
namespace {

constexpr int kPoolLines = 7, kPoolPlaces = 14;
constexpr int kLines = 2 * kPoolLines + 1, kPlaces = 32;  // the last three places are not read
constexpr int kBlockThreads = 256, kGroups = kBlockThreads / 128;
constexpr int kPatchLines = 2 * (kLines - 1) + kMostPooledRows;
constexpr int kPatchPixels = 2 * (kPlaces - 1) + 2 * kPooledPairs;
constexpr int kPixelBytes = 8, kPatchPitch = kPatchPixels * kPixelBytes;
constexpr int kSteps = 2 * kMostPooledRows;  // of 32 bytes of depth
constexpr int kFilterChunks = kSteps * 2;
constexpr int kSlabBytes = kPooledColumns * kDepthBytes;
constexpr int kFilterBytes = (kFilterChunks + 7) / 8 * kSlabBytes;
constexpr int kMiddleBytes = kLines * kPlaces * kPooledColumns * 2;
constexpr int kAlignment = 1024;
constexpr int kRoomBytes = kFilterBytes + kMiddleBytes + kPatchLines * kPatchPitch + kAlignment;

using Products = TileProducts<Precision::Bf16, kPooledColumns>;

/// sums += 64 rows of 32 bytes, in registers, by as many columns.
__device__ void add_rows(Accumulator (&s)[8], const Fragment& left, std::uint64_t right) {
#define LATHE_FOUR(n) "+f"(s[n][0]), "+f"(s[n][1]), "+f"(s[n][2]), "+f"(s[n][3])
  asm volatile(
      "{.reg .pred p; setp.eq.b32 p, 0, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "{%32, %33, %34, %35}, %36, p, 1, 1, 0;}"
      : LATHE_FOUR(0), LATHE_FOUR(1), LATHE_FOUR(2), LATHE_FOUR(3), LATHE_FOUR(4), LATHE_FOUR(5),
        LATHE_FOUR(6), LATHE_FOUR(7)
      : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right));
#undef LATHE_FOUR
}

__global__ void __launch_bounds__(kBlockThreads, 2)
    pooled_convolution_kernel(const __grid_constant__ PooledConvolutionArgs args) {
  extern __shared__ std::byte shared_room[];
  std::byte* const filters =
      shared_room + (kAlignment - shared_address(shared_room) % kAlignment) % kAlignment;
  std::byte* const middle = filters + kFilterBytes;
  std::byte* const patch = middle + kMiddleBytes;
  const int across = (args.y_width + kPoolPlaces - 1) / kPoolPlaces;
  const int down = (args.y_height + kPoolLines - 1) / kPoolLines;
  int block = static_cast<int>(blockIdx.x);
  const int first_place = block % across * kPoolPlaces;
  block /= across;
  const int first_line = block % down * kPoolLines, image = block / down;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kWarp, warp = thread / kWarp;
  const int depth_chunks = args.rows_of_taps * 4;  // a row of taps has 64 bytes
  const int filter_pitch = (depth_chunks + 7) / 8 * kDepthBytes;

  for (int i = thread; i < kPooledColumns * kFilterChunks; i += kBlockThreads) {
    const int column = i / kFilterChunks, chunk = i % kFilterChunks;
    const bool is_there = chunk < depth_chunks;
    copy_async(filters + chunk / 8 * kSlabBytes + place_of_chunk(column, chunk % 8),
               static_cast<const std::byte*>(args.filters) + column * filter_pitch +
                   (is_there ? chunk * kChunkBytes : 0),
               is_there);
  }
  commit_copies();
  let_next_begin();
  wait_for_previous();

  // The first line and place of the convolution, and the pixel that their window begins with.
  const int middle_line = 2 * first_line + args.pool_top;
  const int middle_place = 2 * first_place + args.pool_left;
  const int top = 2 * middle_line + args.top, left = 2 * middle_place + args.left;
  const std::int64_t plane = std::int64_t{args.height} * args.width;
  const float* const planes = args.x + image * args.channels * plane;
  // Several are asked for before the first is left.
  constexpr int kAtOnce = 5;
#pragma unroll 1
  for (int from = thread; from < kPatchLines * kPatchPixels; from += kAtOnce * kBlockThreads) {
    float numbers[kAtOnce][4];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int at = from + i * kBlockThreads, line = at / kPatchPixels;
      const int row = top + line, column = left + at - line * kPatchPixels;
      const bool is_inside = row >= 0 && row < args.height && column >= 0 && column < args.width;
      const float* const pixel = planes + (is_inside ? row * args.width + column : 0);
#pragma unroll
      for (int channel = 0; channel < 4; ++channel)
        numbers[i][channel] =
            is_inside && channel < args.channels ? __ldg(pixel + channel * plane) : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int at = from + i * kBlockThreads;
      if (at < kPatchLines * kPatchPixels)
        *reinterpret_cast<uint2*>(patch + at * kPixelBytes) = make_uint2(
            to_bf16_pair(numbers[i][0], numbers[i][1]), to_bf16_pair(numbers[i][2], numbers[i][3]));
    }
  }
  wait_for_copies<0>();
  Products::publish();
  __syncthreads();

  float2 biases[8];
#pragma unroll
  for (int n = 0; n < 8; ++n)
    biases[n] = args.bias == nullptr
                    ? make_float2(0, 0)
                    : __ldg(reinterpret_cast<const float2*>(args.bias) + n * 4 + lane % 4);
#pragma unroll 1
  for (int tile = warp / 4; tile < (kLines + 1) / 2; tile += kGroups) {
    const int own = warp % 4;  // of the group: half a line
    const int line = tile * 2 + own / 2, first = own % 2 * 16;
    // A line beyond the last is multiplied with the others of its group, and not kept.
    const int from_line = line < kLines ? line : kLines - 1;
    const std::byte* const window = patch + from_line * 2 * kPatchPitch +
                                    (2 * (first + lane % 16) + lane / 16 * 2) * kPixelBytes;
    Accumulator sums[8];
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) sums[n][i] = 0;
    Fragment rows[kSteps];
#pragma unroll
    for (int step = 0; step < kSteps; ++step)
      load_matrices(window + step / 2 * kPatchPitch + step % 2 * 4 * kPixelBytes, rows[step]);
#pragma unroll
    for (int step = 0; step < kSteps; ++step)
#pragma unroll
      for (int i = 0; i < 4; ++i) asm volatile("" : "+r"(rows[step][i])::"memory");
    pin(sums);
    if constexpr (Products::kIsGroup) {
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
      for (int step = 0; step < kSteps; ++step)
        add_rows(sums, rows[step],
                 describe(filters + step / 4 * kSlabBytes) + static_cast<unsigned>(step % 4 * 2));
      asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    }
    Products::Held nothing = {};
    Products::await<0>(nothing);
    pin(sums);
    if (line >= kLines) continue;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int place = first + lane / 4 + half * 8, at = line * kPlaces + place;
      const int y = middle_line + line, x = middle_place + place;
      const bool is_inside = y >= 0 && y < args.middle_height && x >= 0 && x < args.middle_width;
#pragma unroll
      for (int n = 0; n < 8; ++n) {
        const float one = sums[n][2 * half] + biases[n].x;
        const float other = sums[n][2 * half + 1] + biases[n].y;
        // Nothing is smaller than what lies outside.
        const std::uint32_t pair =
            is_inside ? to_bf16_pair(apply_map(args.map, one), apply_map(args.map, other))
                      : 0xff80ff80u;
        *reinterpret_cast<std::uint32_t*>(middle + place_of_chunk(at, n) + lane % 4 * 4) = pair;
      }
    }
  }
  __syncthreads();

  for (int i = thread; i < kPoolLines * kPoolPlaces * 8; i += kBlockThreads) {
    const int eight = i % 8, pixel = i / 8, line = pixel / kPoolPlaces, place = pixel % kPoolPlaces;
    if (first_line + line >= args.y_height || first_place + place >= args.y_width) continue;
    uint4 result = *reinterpret_cast<const uint4*>(
        middle + place_of_chunk(2 * line * kPlaces + 2 * place, eight));
    auto* const held = reinterpret_cast<__nv_bfloat162*>(&result);
#pragma unroll
    for (int tap = 1; tap < 9; ++tap) {
      const int at = (2 * line + tap / 3) * kPlaces + 2 * place + tap % 3;
      const uint4 next = *reinterpret_cast<const uint4*>(middle + place_of_chunk(at, eight));
      const auto* const seen = reinterpret_cast<const __nv_bfloat162*>(&next);
#pragma unroll
      for (int pair = 0; pair < 4; ++pair) held[pair] = __hmax2_nan(held[pair], seen[pair]);
    }
    const std::int64_t to =
        ((std::int64_t{image} * args.y_height + first_line + line) * args.y_width + first_place +
         place) *
            kPooledColumns +
        eight * 8;
    if (args.y_half != nullptr) *reinterpret_cast<uint4*>(args.y_half + to) = result;
    if (args.y == nullptr) continue;
#pragma unroll
    for (int pair = 0; pair < 4; ++pair)
      *reinterpret_cast<float2*>(args.y + to + pair * 2) = __bfloat1622float2(held[pair]);
  }
}

}  // namespace

bool pooled_convolution(const PooledConvolutionArgs& args, Stream* stream) {
  static const bool is_hopper = device_attribute(cudaDevAttrComputeCapabilityMajor) == 9;
  if (!is_hopper) return false;
  const std::int64_t blocks = std::int64_t{args.count} *
                              ((args.y_height + kPoolLines - 1) / kPoolLines) *
                              ((args.y_width + kPoolPlaces - 1) / kPoolPlaces);
  if (blocks != 0)
    launch_early(args.may_begin_early, pooled_convolution_kernel,
                 dim3(static_cast<unsigned>(blocks)), kBlockThreads, kRoomBytes, stream, args);
  return true;
}

}  // namespace lathe::engine::cuda
