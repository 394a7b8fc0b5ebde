// Products of bfloat16 and norms of a few rows, one after another: a cluster of blocks does each
// and meets before the next, which takes a third of what another launch does.
//
// There is one tile of 16 rows, or few, so a product is cut by its columns and its depth: four
// warps have eight columns, a quarter of the depth each. Operands go from memory to registers in
// the order in which a lane has eight neighbours; code and waits are as short as they can be.

#include "lathe/engine/cuda/arguments/few_rows.h"
#include "lathe/engine/cuda/kernels/kernels.cuh"
#include "lathe/engine/cuda/kernels/product_epilogue.cuh"

namespace lathe::engine::cuda {
namespace {

constexpr int kBlocks = 16, kThreadsOfBlock = 512;
constexpr int kShares = 4, kTeam = kShares * kWarp;  // threads that share a product's columns
constexpr int kTeams = kThreadsOfBlock / kTeam;
constexpr int kColumns = 8, kRows = 16;
constexpr int kRun = 32;      // of the depth: what four lanes have of a row
constexpr int kGroups = 4;    // of a norm's row, 128 numbers each
constexpr int kMostRuns = 4;  // that are under way at once

// What other blocks wrote is read from where they wrote it.
__device__ uint4 read_eight(const std::uint16_t* from) {
  return __ldcg(reinterpret_cast<const uint4*>(from));
}

__device__ void meet_team(int team) {
  asm volatile("bar.sync %0, %1;" ::"r"(team + 1), "n"(kTeam) : "memory");
}

__device__ void meet_cluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

// A share of a tile's sums: those of rows g and g + 8, columns 2 c and 2 c + 1.
__device__ void add_share(const Product& product, std::int64_t row, int column, int share,
                          float (&sums)[4]) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp, g = lane / 4, c = lane % 4;
  const auto depth = static_cast<int>(product.k.capacity), n = static_cast<int>(product.n);
  const std::int64_t last = product.m.capacity - 1;
  const std::int64_t low = min(row + g, last), high = min(row + g + 8, last);
  const auto* const a = static_cast<const std::uint16_t*>(product.a) + c * 8;
  const auto* const b = static_cast<const std::uint16_t*>(product.b) +
                        std::int64_t{min(column + g, n - 1)} * depth + c * 8;
  const int end = depth / kShares * (share + 1);
#pragma unroll 1
  for (int k = depth / kShares * share; k < end; k += kMostRuns * kRun) {
    uint4 left[kMostRuns][2] = {}, right[kMostRuns] = {};
#pragma unroll
    for (int run = 0; run < kMostRuns; ++run) {
      const int at = k + run * kRun;
      if (at >= end) break;
      right[run] = *reinterpret_cast<const uint4*>(b + at);
      left[run][0] = read_eight(a + low * depth + at);
      left[run][1] = read_eight(a + high * depth + at);
    }
#pragma unroll
    for (int run = 0; run < kMostRuns; ++run) {
      const uint4 &one = left[run][0], &other = left[run][1], &weight = right[run];
      const std::uint32_t first[4] = {one.x, other.x, one.y, other.y};
      const std::uint32_t second[4] = {one.z, other.z, one.w, other.w};
      const std::uint32_t pairs[4] = {weight.x, weight.y, weight.z, weight.w};
      multiply_bf16(sums, first, pairs);
      multiply_bf16(sums, second, pairs + 2);
    }
  }
}

__device__ void multiply(const Product& product, int block,
                         float (*room)[kShares][kRows][kColumns]) {
  const int team = static_cast<int>(threadIdx.x) / kTeam;
  const int thread = static_cast<int>(threadIdx.x) % kTeam, share = thread / kWarp;
  const int lane = thread % kWarp, g = lane / 4, c = lane % 4;
  const auto n = static_cast<int>(product.n);
  const int across = (n + kColumns - 1) / kColumns;
  const int down = static_cast<int>((product.m.capacity + kRows - 1) / kRows);
  const std::int64_t real = real_size(product.m);
#pragma unroll 1
  for (int tile = block * kTeams + team; tile < across * down; tile += kBlocks * kTeams) {
    const std::int64_t row = std::int64_t{tile / across} * kRows;
    const int column = tile % across * kColumns;
    float bias = 0;
    const int own_column = column + thread % kColumns;
    if (product.bias != nullptr && own_column < n)
      bias = product.bias_as == Number::BF16
                 ? __uint_as_float(
                       std::uint32_t{static_cast<const std::uint16_t*>(product.bias)[own_column]}
                       << 16)
                 : round_to_bf16(static_cast<const float*>(product.bias)[own_column]);
    float sums[4] = {};
    add_share(product, row, column, share, sums);
    float(&own)[kRows][kColumns] = room[team][share];
    *reinterpret_cast<float2*>(&own[g][c * 2]) = make_float2(sums[0], sums[1]);
    *reinterpret_cast<float2*>(&own[g + 8][c * 2]) = make_float2(sums[2], sums[3]);
    meet_team(team);
    // A thread has one result.
    const int own_row = thread / kColumns;
    float sum = 0;
#pragma unroll
    for (int other = 0; other < kShares; ++other)
      sum += room[team][other][own_row][thread % kColumns];
    meet_team(team);
    if (row + own_row >= product.m.capacity || own_column >= n) continue;
    float result = round_to_bf16(sum + bias), y = result;
    if (product.y != nullptr || product.y_half != nullptr)
      y = product.map == Map::GeluErf ? apply(Map::GeluErf, result, 0)
                                      : mapped(product.map, result);
    if (row + own_row >= real) result = y = 0;
    const std::int64_t place = (row + own_row) * n + own_column;
    if (product.c != nullptr) product.c[place] = result;
    if (product.y != nullptr) product.y[place] = y;
    if (product.c_half != nullptr) product.c_half[place] = bf16_bits(result);
    if (product.y_half != nullptr) product.y_half[place] = bf16_bits(y);
  }
}

using Row = float[kGroups][4];
__device__ void leave(const RowResult& result, const Row& x, std::int64_t place, int n) {
#pragma unroll
  for (int group = 0; group < kGroups; ++group) {
    const int column = (group * kWarp + static_cast<int>(threadIdx.x) % kWarp) * 4;
    if (column >= n) break;
    if (result.y != nullptr) put_four(result.y + place + column, x[group], 4, true);
    if (result.half != nullptr) put_four(result.half + place + column, x[group], 4, true);
  }
}

// A warp has a row.
__device__ void normalize(const FewRowsNorm& norm, int block) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const auto n = static_cast<int>(norm.n);
  const std::int64_t row = std::int64_t{block} + kBlocks * (static_cast<int>(threadIdx.x) / kWarp);
  if (row >= norm.rows.capacity) return;
  const std::int64_t place = row * n;
  Row x = {};
  if (row >= real_size(norm.rows)) {
    leave(norm.sum, x, place, n);
    leave(norm.result, x, place, n);
    return;
  }
  const auto each = [&](auto visit) {
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
      const int column = (group * kWarp + lane) * 4;
      if (column < n) visit(x[group], column);
    }
  };
#pragma unroll 1
  for (int i = 0; i < norm.num_sources; ++i)
    each([&](float(&four)[4], int column) {
      if (norm.sources[i].is_half) {
        const auto* const from = static_cast<const std::uint16_t*>(norm.sources[i].x);
        const uint2 pairs = __ldcg(reinterpret_cast<const uint2*>(from + place + column));
        four[0] += __uint_as_float(pairs.x << 16);
        four[1] += __uint_as_float(pairs.x & 0xffff0000u);
        four[2] += __uint_as_float(pairs.y << 16);
        four[3] += __uint_as_float(pairs.y & 0xffff0000u);
      } else {
        const auto* const from = static_cast<const float*>(norm.sources[i].x);
        const float4 numbers = __ldcg(reinterpret_cast<const float4*>(from + place + column));
        four[0] += numbers.x;
        four[1] += numbers.y;
        four[2] += numbers.z;
        four[3] += numbers.w;
      }
    });
  leave(norm.sum, x, place, n);
  const float count = static_cast<float>(n);
  float mean = 0, squares = 0;
  if (!norm.is_rms) {
    each([&](float(&four)[4], int) { mean += (four[0] + four[1]) + (four[2] + four[3]); });
    mean = join_warp(mean, Add()) / count;
  }
  each([&](float(&four)[4], int) {
#pragma unroll
    for (float& value : four) {
      value -= mean;
      squares = fmaf(value, value, squares);
    }
  });
  const float rate = 1.0f / sqrtf(join_warp(squares, Add()) / count + norm.eps);
  each([&](float(&four)[4], int column) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float scaled = four[j] * rate, gamma = norm.gamma[column + j];
      four[j] = norm.beta == nullptr ? scaled * gamma : fmaf(scaled, gamma, norm.beta[column + j]);
    }
  });
  leave(norm.result, x, place, n);
}

__global__ void __launch_bounds__(kThreadsOfBlock) few_rows_kernel(FewRowsArgs args) {
  __shared__ __align__(16) FewRowsStage stages[kMostStages];
  __shared__ float room[kTeams][kShares][kRows][kColumns];
  const auto words = static_cast<int>(args.count * sizeof(FewRowsStage) / sizeof(std::uint64_t));
  for (int i = static_cast<int>(threadIdx.x); i < words; i += kThreadsOfBlock)
    reinterpret_cast<std::uint64_t*>(stages)[i] =
        reinterpret_cast<const std::uint64_t*>(args.stages)[i];
  __syncthreads();
  const auto block = static_cast<int>(blockIdx.x);
#pragma unroll 1
  for (int i = 0; i < args.count; ++i) {
    if (stages[i].is_product)
      multiply(stages[i].product, block, room);
    else
      normalize(stages[i].norm, block);
    if (i + 1 < args.count) meet_cluster();
  }
}
static_assert(kMostFewRows <= kBlocks * (kThreadsOfBlock / kWarp));
static_assert(kMostFewColumns == kGroups * kWarp * 4 && kFewDepth == kShares * kRun);

bool has_clusters() {
  static const bool has = [] {
    int device = 0, major = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    return major == 9 &&  // where the code that meets is compiled
           cudaFuncSetAttribute(few_rows_kernel, cudaFuncAttributeNonPortableClusterSizeAllowed,
                                1) == cudaSuccess;
  }();
  return has;
}

}  // namespace

bool few_rows(const FewRowsArgs& args, Stream* stream) {
  if (!has_clusters()) return false;
  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = kBlocks;
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(kBlocks);
  config.blockDim = dim3(kThreadsOfBlock);
  config.stream = stream_of(stream);
  config.attrs = &cluster;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, few_rows_kernel, args);
  return true;
}

}  // namespace lathe::engine::cuda
