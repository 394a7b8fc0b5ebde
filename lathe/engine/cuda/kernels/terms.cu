// Formats whose numbers are plus or minus a mean magnitude of their row or tensor: binary and
// ternary ones, ours and MASE's. Means are added up in the order of codecs/sum_order.h, so that
// they have the bits of the CPU's.

#include "lathe/engine/cuda/kernels/kernels.cuh"
#include "lathe/engine/cuda/kernels/launch.cuh"
#include "lathe/numerics/codecs/float_bits.h"
#include "lathe/numerics/codecs/sum_order.h"

namespace lathe::engine::cuda {
namespace {

using numerics::SumOrder;

constexpr int kSums = SumOrder::kSums;
constexpr int kRuns = static_cast<int>(SumOrder::kChunk) / (kSums * SumOrder::kRun);  // of a chunk
constexpr int kChunkThreads = kRuns * kSums;
constexpr int kRowsOfGroup = kThreads / kSums;

__device__ bool is_finite(double value) {
  return value - value == 0;
}

__device__ float sign_term(float residual, float alpha) {
  return residual >= 0 ? alpha : -alpha;
}

// What a format knows of a run of values so far: phase after phase one more number.
struct Means {
  float alphas[kMostTermAlphas];
  float delta;
};
static_assert(2 * sizeof(Means) <= kTermHeader);

// What an element adds to the sum of a phase, and whether it counts.
struct Share {
  float magnitude = 0;
  bool counts = false;
};

__device__ Share share_of(const TermArgs& args, const Means& means, int phase, float x,
                          bool is_kept) {
  const float magnitude = numerics::float_of(numerics::bits_of(x) & ~numerics::kSignBit);
  const bool is_number = magnitude < numerics::float_of(numerics::kInfinityBits);
  switch (args.kind) {
    case TermArgs::Kind::Signs: {
      if (!is_kept) return {};
      float residual = x;
      for (int t = 0; t < phase; ++t) residual -= sign_term(residual, means.alphas[t]);
      const float rest = numerics::float_of(numerics::bits_of(residual) & ~numerics::kSignBit);
      // What is not finite counts, but for nothing.
      return {rest < numerics::float_of(numerics::kInfinityBits) ? rest : 0, true};
    }
    case TermArgs::Kind::Ternary:
      if (phase == 0) return {is_number ? magnitude : 0, true};
      if (!is_number || !(magnitude > means.delta)) return {};
      return {magnitude, true};
    case TermArgs::Kind::MasePositive:
    case TermArgs::Kind::MaseTernary:
      // Infinities count here, NaN does not.
      if (!(magnitude > (phase == 0 ? -1.0f : means.delta))) return {};
      return {magnitude, true};
  }
  return {};
}

// MASE's means are of magnitudes each added in double.
__device__ bool sums_one_by_one(const TermArgs& args) {
  return args.kind == TermArgs::Kind::MasePositive || args.kind == TermArgs::Kind::MaseTernary;
}

__device__ void finish_phase(const TermArgs& args, int phase, double sum, std::int64_t count,
                             Means& means) {
  const auto number = static_cast<double>(count);
  switch (args.kind) {
    case TermArgs::Kind::Signs:
      means.alphas[phase] = count == 0 ? 0 : static_cast<float>(sum / number);
      return;
    case TermArgs::Kind::Ternary:
      if (phase == 0)
        means.delta = static_cast<float>(args.threshold * (sum / number));
      else
        means.alphas[0] = count == 0 ? 0 : static_cast<float>(sum / number);
      return;
    case TermArgs::Kind::MasePositive:
      means.alphas[0] = static_cast<float>(sum / number);  // of nothing: NaN, as in MASE
      return;
    case TermArgs::Kind::MaseTernary:
      if (phase == 0) {
        means.delta = args.threshold * static_cast<float>(sum / number);
        means.alphas[0] = 1;
      } else {
        means.alphas[0] = static_cast<float>(sum / number);
      }
      return;
  }
}

__device__ float round_one(const TermArgs& args, const Means& means, float x) {
  if (!(x == x)) return x;
  switch (args.kind) {
    case TermArgs::Kind::Signs: {
      float sum = sign_term(x, means.alphas[0]);
      float residual = x - sum;
      for (int t = 1; t < args.terms; ++t) {
        const float term = sign_term(residual, means.alphas[t]);
        residual -= term;
        sum += term;
      }
      return sum;
    }
    case TermArgs::Kind::Ternary:
    case TermArgs::Kind::MaseTernary:
      return fabsf(x) > means.delta ? (x > 0 ? means.alphas[0] : -means.alphas[0]) : 0;
    case TermArgs::Kind::MasePositive:
      return x > 0 ? means.alphas[0] : 0 * means.alphas[0];
  }
  return x;
}

// The sixteen sums by halves, in each lane 0 of sixteen.
__device__ double add_halves(double sum) {
  for (int half = kSums / 2; half > 0; half /= 2)
    sum += __shfl_down_sync(kAllLanes, sum, half, kSums);
  return sum;
}

// The sums of a chunk that half a warp makes, each lane one of the sixteen.
template <typename At>
__device__ double lane_sum(const At& at, std::int64_t size, bool one_by_one) {
  const int lane = threadIdx.x % kSums;
  double sum = 0;
  std::int64_t i = lane;
  if (!one_by_one)
    for (; i - lane + kSums * SumOrder::kRun <= size; i += kSums * SumOrder::kRun) {
      float values[SumOrder::kRun];
      for (int step = 0; step < SumOrder::kRun; ++step) values[step] = at(i + step * kSums);
      float run = values[0];
      for (int step = 1; step < SumOrder::kRun; ++step) run += values[step];
      sum += static_cast<double>(run);
    }
  for (; i < size; i += kSums) sum += static_cast<double>(at(i));
  return sum;
}

template <typename At>
__device__ double chunk_sum(const At& at, std::int64_t size, bool one_by_one) {
  double sum = add_halves(lane_sum(at, size, one_by_one));
  sum = __shfl_sync(kAllLanes, sum, 0, kSums);
  if (__any_sync(kAllLanes, !one_by_one && !is_finite(sum))) {
    const double again = __shfl_sync(kAllLanes, add_halves(lane_sum(at, size, true)), 0, kSums);
    if (!is_finite(sum)) sum = again;
  }
  return sum;
}

// Half a warp takes a row through all phases.
__global__ void term_rows_kernel(TermArgs args) {
  const std::int64_t real = real_size(args.rows);
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kRowsOfGroup;
  const int lane = threadIdx.x % kSums;
  // Both halves of a warp go the same way.
  const int half = threadIdx.x / kSums % 2;
  for (std::int64_t pair =
           static_cast<std::int64_t>(blockIdx.x) * kRowsOfGroup + threadIdx.x / kWarp * 2;
       pair < args.rows.capacity; pair += stride) {
    const std::int64_t row = pair + half;
    const std::int64_t columns = row < real ? args.columns : 0;
    const float* const x = args.x + row * args.columns;
    const float* const mask = args.mask == nullptr ? nullptr : args.mask + row * args.columns;
    Means means{};
    if (args.is_unit) means.alphas[0] = 1;
    for (int phase = 0; phase < args.num_phases; ++phase) {
      double sums = 0, only = 0;  // of the chunks whose number is this lane's modulo 16
      for (std::int64_t chunk = 0; chunk * SumOrder::kChunk < args.columns; ++chunk) {
        const std::int64_t begin = chunk * SumOrder::kChunk;
        const std::int64_t rest = columns - begin;
        const auto at = [&](std::int64_t i) {
          return share_of(args, means, phase, x[begin + i], mask == nullptr || mask[begin + i] != 0)
              .magnitude;
        };
        only =
            chunk_sum(at, rest < SumOrder::kChunk ? rest : SumOrder::kChunk, sums_one_by_one(args));
        if (lane == chunk % kSums) sums += only;
      }
      const double sum = args.columns <= SumOrder::kChunk
                             ? only
                             : __shfl_sync(kAllLanes, add_halves(sums), 0, kSums);
      std::int64_t count = 0;
      for (std::int64_t i = lane; i < columns; i += kSums)
        count += share_of(args, means, phase, x[i], mask == nullptr || mask[i] != 0).counts ? 1 : 0;
      for (int distance = kSums / 2; distance > 0; distance /= 2)
        count += __shfl_xor_sync(kAllLanes, count, distance);
      finish_phase(args, phase, sum, count, means);
    }
    if (row >= args.rows.capacity) continue;
    float* const y = args.y + row * args.columns;
    for (std::int64_t i = lane; i < args.columns; i += kSums)
      y[i] = row < real ? round_one(args, means, x[i]) : 0;
  }
}

// For a scale of the whole tensor a block of threads sums a chunk, phase after phase a launch. What
// the phases before found is in scratch: their means, and the sums and counts of the last one.
struct Found {
  Means* means;
  double* sums;
  std::int64_t* counts;
};
__device__ Found found(const TermArgs& args) {
  return {reinterpret_cast<Means*>(args.scratch),
          reinterpret_cast<double*>(args.scratch + kTermHeader),
          reinterpret_cast<std::int64_t*>(args.scratch + kTermHeader) + 2 * args.num_chunks};
}

// The means as the phases before this one left them, for all threads of a block. What even and odd
// phases find lies in turn, so that no block overwrites what another still reads.
__device__ Means means_before(const TermArgs& args, int phase) {
  __shared__ double sums[1024];
  __shared__ Means means;
  __shared__ std::int64_t room[kWarp];
  const Found before = found(args);
  if (threadIdx.x == 0) means = phase > 1 ? before.means[(phase - 1) % 2] : Means{};
  __syncthreads();
  if (phase == 0) return means;
  const std::int64_t offset = (phase - 1) % 2 * args.num_chunks;
  std::int64_t count = 0;
  double sum = 0;
  for (std::int64_t begin = 0; begin < args.num_chunks; begin += 1024) {
    const std::int64_t rest = args.num_chunks - begin;
    const int size = static_cast<int>(rest < 1024 ? rest : 1024);
    for (int i = threadIdx.x; i < size; i += blockDim.x) {
      sums[i] = before.sums[offset + begin + i];
      count += before.counts[offset + begin + i];
    }
    __syncthreads();
    if (threadIdx.x < kSums)
      for (int i = threadIdx.x; i < size; i += kSums) sum += sums[i];
    __syncthreads();
  }
  count = join_block(count, std::int64_t{0}, room, Add());
  if (threadIdx.x < kWarp) {
    sum = add_halves(sum);
    if (threadIdx.x == 0) sums[0] = sum;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    finish_phase(args, phase - 1, sums[0], count, means);
    if (blockIdx.x == 0) before.means[phase % 2] = means;
  }
  __syncthreads();
  return means;
}

__global__ void __launch_bounds__(kChunkThreads) term_sums_kernel(TermArgs args, int phase) {
  __shared__ float runs[kRuns + SumOrder::kRun][kSums];
  __shared__ int room[kWarp];
  const Means means = means_before(args, phase);
  const std::int64_t all = args.rows.capacity * args.columns;
  const std::int64_t chunk = blockIdx.x;
  const std::int64_t begin = chunk * SumOrder::kChunk;
  const std::int64_t rest = all - begin;
  const int size = static_cast<int>(rest < SumOrder::kChunk ? rest : SumOrder::kChunk);
  const int lane = threadIdx.x % kSums, run = threadIdx.x / kSums;
  const int whole = size / (kSums * SumOrder::kRun);
  int count = 0;
  float values[SumOrder::kRun];
  for (int step = 0; step < SumOrder::kRun; ++step) {
    const int i = (run * SumOrder::kRun + step) * kSums + lane;
    Share share;
    if (i < size)
      share = share_of(args, means, phase, args.x[begin + i],
                       args.mask == nullptr || args.mask[begin + i] != 0);
    values[step] = share.magnitude;
    count += share.counts ? 1 : 0;
  }
  count = join_block(count, 0, room, Add());
  float sum_of_run = values[0];
  for (int step = 1; step < SumOrder::kRun; ++step) sum_of_run += values[step];
  if (run < whole) runs[run][lane] = sum_of_run;
  if (run == whole)
    for (int step = 0; step < SumOrder::kRun; ++step) runs[whole + step][lane] = values[step];
  if (run == 0 && whole == kRuns)
    for (int step = 0; step < SumOrder::kRun; ++step) runs[whole + step][lane] = 0;
  __syncthreads();
  if (threadIdx.x >= kWarp) return;
  double sum = 0;
  for (int i = 0; i < whole + SumOrder::kRun; ++i) sum += static_cast<double>(runs[i][lane]);
  sum = __shfl_sync(kAllLanes, add_halves(sum), 0);
  if (!is_finite(sum)) {
    const auto at = [&](std::int64_t i) {
      return share_of(args, means, phase, args.x[begin + i],
                      args.mask == nullptr || args.mask[begin + i] != 0)
          .magnitude;
    };
    sum = __shfl_sync(kAllLanes, add_halves(lane_sum(at, size, true)), 0);
  }
  if (threadIdx.x != 0) return;
  const Found now = found(args);
  const std::int64_t offset = phase % 2 * args.num_chunks;
  now.sums[offset + chunk] = sum;
  now.counts[offset + chunk] = count;
}

__global__ void term_round_kernel(TermArgs args) {
  const Means means = means_before(args, args.num_phases);
  const std::int64_t all = args.rows.capacity * args.columns;
  for (std::int64_t i = global_thread(); i < all; i += grid_stride())
    args.y[i] = round_one(args, means, args.x[i]);
}

}  // namespace

void quantize_terms(const TermArgs& args, Stream* stream) {
  const std::int64_t all = args.rows.capacity * args.columns;
  if (all == 0) return;
  const cudaStream_t on = stream_of(stream);
  if (!args.is_whole) {
    term_rows_kernel<<<blocks_for(args.rows.capacity, kRowsOfGroup), kThreads, 0, on>>>(args);
    return;
  }
  for (int phase = 0; phase < args.num_phases; ++phase)
    term_sums_kernel<<<static_cast<unsigned>(args.num_chunks), kChunkThreads, 0, on>>>(args, phase);
  term_round_kernel<<<blocks_for(all, kThreads * 4, 1024), kThreads, 0, on>>>(args);
}

}  // namespace lathe::engine::cuda
