// Attention of a few short sequences in bfloat16, where waiting is all there is: a block has 16
// queries of one head, and its warps take 32 keys each in turn, with a softmax of their own, until
// they are joined.
//
// Code that runs once comes from memory as data do, so there is as little of it as there can be.

#include "lathe/engine/cuda/kernels/attention.cuh"
#include "lathe/engine/cuda/kernels/tensor_core.cuh"

namespace lathe::engine::cuda {
namespace {

constexpr int kQueries = 16, kKeys = 32, kWarps = 4, kHeadSize = 64;
constexpr int kPitch = kHeadSize + 8;      // of values: what a matrix is read from is in all banks
constexpr int kSumsPitch = kHeadSize + 4;  // of the warps' sums

// Four matrices of 8 x 8, each transposed, whose rows' addresses the lanes give.
__device__ void read_transposed(std::uint32_t (&to)[4], const void* row) {
  const auto place = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(place)
               : "memory");
}

// Which scores are of masked keys, and of none at all: bit 4 n + i for number i of run n.
struct Edge {
  std::uint32_t masked = 0, beyond = 0;
};
__device__ Edge edge_of(const AttentionShape& shape, const Place& place, int query, int key) {
  Edge edge;
#pragma unroll 1
  for (int bit = 0; bit < kKeys / 2; ++bit) {
    const int own = key + bit / 4 * 8 + bit % 2;
    if (own >= place.lk)
      edge.beyond |= 1u << bit;
    else if (is_masked(shape, place, query + bit / 2 % 2 * 8, own))
      edge.masked |= 1u << bit;
  }
  return edge;
}

__global__ void __launch_bounds__(kWarps* kWarp) short_kernel(AttentionArgs args) {
  __shared__ __align__(16) __nv_bfloat16 values[kWarps][kKeys][kPitch];
  __shared__ float sums[kWarps][kQueries][kSumsPitch];
  __shared__ float most[kWarps][kQueries], total[kWarps][kQueries];
  const AttentionShape& shape = args.shape;
  auto* const y = static_cast<__nv_bfloat16*>(args.y);
  const std::int64_t width = static_cast<std::int64_t>(shape.heads) * kHeadSize;
  const Place place = find_place(shape, static_cast<int>(blockIdx.x), false, kQueries);
  if (place.sequence < 0) return clear_rows(y, shape.queries, width, width);
  const int head = static_cast<int>(blockIdx.y);
  const HeadPlace at = head_place(shape, place, head);
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp, g = lane / 4, c = lane % 4;
  const int seen = keys_seen(shape, place, place.begin + kQueries);

  // Elements of a row are multiplied in an order in which a lane has eight neighbours.
  uint4 q[2][2];
  const auto* const queries = static_cast<const __nv_bfloat16*>(shape.q) + at.q;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int query = min(place.begin + g + half * 8, place.lq - 1);
    const __nv_bfloat16* const row = queries + query * at.q_stride + c * 8;
    q[half][0] = *reinterpret_cast<const uint4*>(row);
    q[half][1] = *reinterpret_cast<const uint4*>(row + kHeadSize / 2);
  }
  const auto* const k = static_cast<const __nv_bfloat16*>(shape.k) + at.k;
  const auto* const v = static_cast<const __nv_bfloat16*>(shape.v) + at.k;
  const float scale = shape.scale * kLog2E;
  float highest[2] = {-INFINITY, -INFINITY}, all[2] = {}, out[kHeadSize / 8][4] = {};
#pragma unroll 1
  for (int begin = warp * kKeys; begin < seen; begin += kWarps * kKeys) {
    __syncwarp();  // the values before are read
#pragma unroll
    for (int i = 0; i < kKeys / 4; ++i) {
      const int row = i * 4 + lane / 8, column = lane % 8 * 8;
      const bool is_there = begin + row < place.lk;
      copy_ahead(&values[warp][row][column],
                 is_there ? v + (begin + row) * at.k_stride + column : v, is_there);
    }
    close_copies();
    float score[kKeys / 8][4] = {};
    uint4 key[kKeys / 8][2];
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
      const int own = min(begin + n * 8 + g, place.lk - 1);
      const __nv_bfloat16* const row = k + own * at.k_stride + c * 8;
      key[n][0] = *reinterpret_cast<const uint4*>(row);
      key[n][1] = *reinterpret_cast<const uint4*>(row + kHeadSize / 2);
    }
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
      for (int part = 0; part < 2; ++part) {
        const uint4 &low = q[0][part], &high = q[1][part], &right = key[n][part];
        const std::uint32_t first[4] = {low.x, high.x, low.y, high.y};
        const std::uint32_t second[4] = {low.z, high.z, low.w, high.w};
        const std::uint32_t pairs[4] = {right.x, right.y, right.z, right.w};
        multiply_bf16(score[n], first, pairs);
        multiply_bf16(score[n], second, pairs + 2);
      }
    Edge edge;
    if (!is_plain(shape, place, place.begin, begin, kKeys))
      edge = edge_of(shape, place, place.begin + g, begin + c * 2);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float now = -INFINITY;
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          score[n][i] *= scale;
          if ((edge.masked >> (4 * n + i) & 1u) != 0) score[n][i] = kMasked;
          if ((edge.beyond >> (4 * n + i) & 1u) != 0) score[n][i] = -INFINITY;
          now = fmaxf(now, score[n][i]);
        }
      now = fmaxf(now, __shfl_xor_sync(kAllLanes, now, 1));
      now = fmaxf(now, __shfl_xor_sync(kAllLanes, now, 2));
      now = fmaxf(highest[half], now);
      const float shrink = power_of_two(highest[half] - now);
      highest[half] = now;
      all[half] *= shrink;
#pragma unroll
      for (int n = 0; n < kHeadSize / 8; ++n) {
        out[n][2 * half] *= shrink;
        out[n][2 * half + 1] *= shrink;
      }
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          score[n][i] = power_of_two(score[n][i] - now);
          all[half] += score[n][i];
        }
    }
    await_copies<0>();
    __syncwarp();
#pragma unroll
    for (int step = 0; step < kKeys / 16; ++step) {
      const float(&low)[4] = score[2 * step], (&high)[4] = score[2 * step + 1];
      const std::uint32_t weights[4] = {to_bf16_pair(low[0], low[1]), to_bf16_pair(low[2], low[3]),
                                        to_bf16_pair(high[0], high[1]),
                                        to_bf16_pair(high[2], high[3])};
#pragma unroll
      for (int n = 0; n < kHeadSize / 8; n += 2) {
        std::uint32_t four[4];
        read_transposed(four, &values[warp][step * 16 + lane % 16][(n + lane / 16) * 8]);
        multiply_bf16(out[n], weights, four);
        multiply_bf16(out[n + 1], weights, four + 2);
      }
    }
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    all[half] += __shfl_xor_sync(kAllLanes, all[half], 1);
    all[half] += __shfl_xor_sync(kAllLanes, all[half], 2);
    const int row = g + half * 8;
    if (c == 0) {
      most[warp][row] = highest[half];
      total[warp][row] = all[half];
    }
#pragma unroll
    for (int n = 0; n < kHeadSize / 8; ++n)
      *reinterpret_cast<float2*>(&sums[warp][row][n * 8 + c * 2]) =
          make_float2(out[n][2 * half], out[n][2 * half + 1]);
  }
  __syncthreads();
  // Of a row, a thread has eight elements.
  const int row = static_cast<int>(threadIdx.x) / 8, column = static_cast<int>(threadIdx.x) % 8 * 8;
  const int query = place.begin + row;
  float highest_of_row = -INFINITY, total_of_row = 0, element[8] = {};
  for (int w = 0; w < kWarps; ++w) highest_of_row = fmaxf(highest_of_row, most[w][row]);
#pragma unroll 1
  for (int w = 0; w < kWarps && w * kKeys < seen; ++w) {  // those that have seen a key
    const float factor = power_of_two(most[w][row] - highest_of_row);
    total_of_row = fmaf(total[w][row], factor, total_of_row);
#pragma unroll
    for (int e = 0; e < 8; ++e) element[e] = fmaf(sums[w][row][column + e], factor, element[e]);
  }
  const float inverse = inverse_of(total_of_row);
  if (query < place.lq) {
    *reinterpret_cast<uint4*>(y + at.y + query * at.y_stride + column) =
        make_uint4(to_bf16_pair(element[0] * inverse, element[1] * inverse),
                   to_bf16_pair(element[2] * inverse, element[3] * inverse),
                   to_bf16_pair(element[4] * inverse, element[5] * inverse),
                   to_bf16_pair(element[6] * inverse, element[7] * inverse));
    if (column == 0 && args.statistics != nullptr) {
      float* const numbers = args.statistics + statistics_place(shape, place, head, query);
      numbers[0] = highest_of_row;
      numbers[1] = inverse;
    }
  }
  clear_rows(y, shape.queries, width, width);
}

}  // namespace

bool try_attend_short(const AttentionArgs& args, cudaStream_t on) {
  constexpr std::int64_t kMostKeys = 512, kMostBlocks = 264, kFewSequences = 8;
  const AttentionShape& shape = args.shape;
  const std::int64_t keys = shape.keys.capacity, sequences = shape.sequences.capacity;
  // A bucket of eight may hold a single one.
  const std::int64_t length = sequences <= kFewSequences ? keys : keys / sequences;
  const dim3 grid(most_tiles(shape, false, kQueries), static_cast<unsigned>(shape.heads));
  if (shape.elements != Number::BF16 || shape.d != kHeadSize || shape.threshold != 0 ||
      shape.q_stride % 8 != 0 || shape.k_stride % 8 != 0 || length > kMostKeys ||
      grid.x * grid.y > kMostBlocks)
    return false;
  short_kernel<<<grid, kWarps * kWarp, 0, on>>>(args);
  return true;
}

}  // namespace lathe::engine::cuda
