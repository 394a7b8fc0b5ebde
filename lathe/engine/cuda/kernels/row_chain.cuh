#pragma once

// Rows through a chain of the form that layers have (arguments/row_chain.h): a team of lanes has a
// row, or a piece of one where no number depends on the whole row, eight neighbours a lane, all in
// registers. What a row needs from memory is asked for at once; sums over rows stay in registers
// until a block's last row. Whatever else goes row by row is row_program.cu's.

#include "lathe/engine/cuda/kernels/formats.cuh"
#include "lathe/engine/cuda/kernels/maps.cuh"
#include "lathe/engine/cuda/kernels/row_pieces.cuh"

namespace lathe::engine::cuda::row_chains {

using Stage = RowChainArgs::Stage;

/// How a chain's kernel is made: lanes of a team, the stage, and whether it is to know more than
/// rows of memory, their sum, dropout and the stage.
template <int Lanes, Stage S, bool IsGeneral>
struct Kind {
  static constexpr int kLanes = Lanes;
  static constexpr Stage kStage = S;
  static constexpr bool kIsGeneral = IsGeneral;
  static constexpr bool kIsNorm = S == Stage::Normalize || S == Stage::NormalizeGradient;
  static constexpr bool kHasOperand = S == Stage::NormalizeGradient || S == Stage::MapGradient;
  static constexpr int kWidth = Lanes * 8;
  static constexpr int kThreads = Lanes == 96 ? 192 : 256;
  static constexpr int kTeams = kThreads / Lanes;
  static constexpr int kSums = S == Stage::NormalizeGradient ? 3 : can_sum(S) ? 1 : 0;
  static constexpr int kLeastBlocks = kSums == 3 || IsGeneral ? 2 : 3;
};

struct Statistics {
  float mean, rate;  // rate: the reciprocal deviation
};

template <typename T>
__device__ Statistics statistics_of(const Eight& x, bool is_there, int n, float eps, bool is_rms) {
  const float count = static_cast<float>(n);
  float mean[1] = {0}, squares[1] = {0};
  if (!is_rms) {
    mean[0] = ((x.v[0] + x.v[1]) + (x.v[2] + x.v[3])) + ((x.v[4] + x.v[5]) + (x.v[6] + x.v[7]));
    T::join(mean);
    mean[0] /= count;
  }
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const float centred = is_there ? x.v[j] - mean[0] : 0.0f;
    squares[0] = fmaf(centred, centred, squares[0]);
  }
  T::join(squares);
  return {mean[0], 1.0f / sqrtf(squares[0] / count + eps)};
}

template <typename T>
__device__ void normalize(const RowChainArgs& args, Eight& x, const Eight& gamma, const Eight& beta,
                          bool is_there, int n) {
  const Statistics s = statistics_of<T>(x, is_there, n, args.eps, args.is_rms);
  change(x, [&](float value, int j) {
    const float scaled = (value - s.mean) * s.rate;
    return args.beta == nullptr ? scaled * gamma.v[j] : fmaf(scaled, gamma.v[j], beta.v[j]);
  });
}

template <typename T>
__device__ void normalize_gradient(const RowChainArgs& args, Eight& dy, Eight x, const Eight& gamma,
                                   bool is_there, int n, const Results& results, Eight (&sums)[3]) {
  const Statistics s = statistics_of<T>(x, is_there, n, args.eps, args.is_rms);
  const float count = static_cast<float>(n);
  change(x, [&](float value, int) { return is_there ? (value - s.mean) * s.rate : 0.0f; });
  float means[2] = {0, 0};
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const float product = dy.v[j] * gamma.v[j];
    means[0] += product;
    means[1] = fmaf(product, x.v[j], means[1]);
  }
  T::join(means);
  const float mean_g = args.is_rms ? 0.0f : means[0] / count, mean_gh = means[1] / count;
  Eight products = dy;
  change(products, [&](float value, int j) { return value * x.v[j]; });
  results.add(sums[1], products);
  results.add(sums[2], dy);
  change(dy, [&](float value, int j) {
    return s.rate * (value * gamma.v[j] - mean_g - x.v[j] * mean_gh);
  });
}

/// The gradient of a format, and what a lane adds to that of its scale.
__device__ inline double unround(const RowChainArgs& args, Eight& dy, const Eight& x,
                                 const Eight& y, const LearnedScale& scale) {
  if (args.is_gate) {
    change(dy, [&](float value, int j) {
      return x.v[j] < args.low || x.v[j] > args.high ? 0.0f : value;
    });
    return 0;
  }
  double sum = 0;
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const LearnedGradient gradient = differentiate(scale, dy.v[j], x.v[j], y.v[j]);
    dy.v[j] = gradient.dx;
    sum += gradient.dscale;
  }
  return sum;
}

// The maps that a chain may have (is_chain_map).
template <Map M>
struct KnownMap {
  static constexpr Map kMap = M;
};
template <typename Body>
__device__ void with_map(Map map, const Body& body) {
  switch (map) {
    case Map::GeluErf:
      return body(KnownMap<Map::GeluErf>());
    case Map::Tanh:
      return body(KnownMap<Map::Tanh>());
    default:
      return body(KnownMap<Map::Relu>());
  }
}

/// What a team knows of all its rows.
struct Common {
  Eight gamma, beta;
  ops::DropoutStream stream;
  LearnedScale scale;
  BlockScale format_scale;
  int column, n;
};

/// All that a row needs from memory.
struct RowInputs {
  Place first, middle, last;
  Fetched sources[kMostRowSources], operand, rounded_x, rounded_y;
};
template <typename K>
__device__ RowInputs ask_for(const RowChainArgs& args, const Common& common, std::int64_t row,
                             std::int64_t real_row) {
  RowInputs inputs;
  inputs.first = place_of(args.first_dropout, row);
  inputs.middle = place_of(args.sum_dropout, row);
  inputs.last = place_of(args.last_dropout, row);
  const auto of = [&](const RowSource& source) {
    return fetch<K>(source, row, real_row, common.column, common.n);
  };
#pragma unroll
  for (int i = 0; i < kMostRowSources; ++i)
    if (i < args.num_sources) inputs.sources[i] = of(args.sources[i]);
  if constexpr (K::kHasOperand) inputs.operand = of(args.operand);
  if (K::kIsGeneral && args.num_rounded > 0) {
    inputs.rounded_x = of(args.rounded_x);
    if (!args.is_gate) inputs.rounded_y = of(args.rounded_y);
  }
  return inputs;
}

/// The one scale of a chain's format (is_chain_format).
__device__ inline BlockScale chain_scale(const QuantizeArgs& format) {
  if (format.rule == ScaleBy::Constant) return {};
  if (format.rule == ScaleBy::Given)
    return {format.scales[0], 0, format.zeros == nullptr ? 0 : llrintf(format.zeros[0])};
  const float scale = nearest_power_of_two(format.scales[0]);
  return {scale, 1 / scale, 0};
}

template <typename K>
__device__ void run(const RowChainArgs& args, const Common& common, const RowInputs& inputs,
                    std::int64_t row, bool is_real, Eight (&sums)[3], double& step_sum) {
  using T = Team<K::kLanes, K::kThreads>;
  const int column = common.column, n = common.n;
  const bool is_there = column < n;
  const Results results{row * n + column, is_real && is_there, K::kSums > 0 ? &sums[0] : nullptr};
  Eight x = numbers_of(args.sources[0], inputs.sources[0]);
  if (args.first_dropout.is_there) drop(args.first_dropout, common.stream, inputs.first, x, column);
#pragma unroll
  for (int i = 1; i <= kMostRowSources; ++i) {
    if (K::kIsGeneral && i == args.num_rounded) {
      step_sum += results.is_left
                      ? unround(args, x, numbers_of(args.rounded_x, inputs.rounded_x),
                                numbers_of(args.rounded_y, inputs.rounded_y), common.scale)
                      : 0.0;
      results.leave(args.unrounded, x);
    }
    if (i >= kMostRowSources || i >= args.num_sources) break;
    const Eight other = numbers_of(args.sources[i], inputs.sources[i]);
    change(x, [&](float value, int j) { return value + other.v[j]; });
  }
  results.leave(args.sum, x);
  if (args.sum_dropout.is_there) drop(args.sum_dropout, common.stream, inputs.middle, x, column);
  if constexpr (K::kStage == Stage::Normalize)
    normalize<T>(args, x, common.gamma, common.beta, is_there, n);
  if constexpr (K::kStage == Stage::NormalizeGradient)
    normalize_gradient<T>(args, x, numbers_of(args.operand, inputs.operand), common.gamma, is_there,
                          n, results, sums);
  if constexpr (K::kStage == Stage::Map)
    with_map(args.map, [&](auto map) {
      change(x, [&](float value, int) { return apply(decltype(map)::kMap, value, 0); });
    });
  if constexpr (K::kStage == Stage::MapGradient) {
    const Eight at = numbers_of(args.operand, inputs.operand);
    with_map(args.map, [&](auto map) {
      change(x, [&](float value, int j) {
        return value * derivative(decltype(map)::kMap, at.v[j], 0);
      });
    });
  }
  if constexpr (K::kStage != Stage::None) results.leave(args.staged, x);
  if (args.last_dropout.is_there) {
    drop(args.last_dropout, common.stream, inputs.last, x, column);
    results.leave(args.dropped, x);
  }
  if (K::kIsGeneral && args.has_format) {
    const WholeRounding rounding(args.format, common.format_scale);
    change(x, [&](float value, int) { return rounding(value); });
    results.leave(args.rounded, x);
  }
}

/// The sums of a block, in the order of its teams.
template <typename K>
__device__ void leave_sums(const RowChainArgs& args, const Eight (&sums)[3], int begin) {
  __shared__ __align__(16) float room[K::kTeams][K::kSums][K::kWidth];
  const int team = static_cast<int>(threadIdx.x) / K::kLanes;
  const int rank = static_cast<int>(threadIdx.x) % K::kLanes;
#pragma unroll
  for (int s = 0; s < K::kSums; ++s)
#pragma unroll
    for (int j = 0; j < 8; j += 4)
      *reinterpret_cast<float4*>(&room[team][s][rank * 8 + j]) =
          *reinterpret_cast<const float4*>(sums[s].v + j);
  __syncthreads();
  float* left = nullptr;
  for (const RowResult* result :
       {&args.unrounded, &args.sum, &args.staged, &args.dropped, &args.rounded})
    if (result->sums != nullptr) left = result->sums;
  float* const parts[3] = {left, args.gamma_sums, args.beta_sums};
  const int n = static_cast<int>(args.n);
#pragma unroll
  for (int s = 0; s < K::kSums; ++s) {
    if (parts[s] == nullptr) continue;
    for (int i = threadIdx.x; i < K::kWidth && begin + i < n; i += K::kThreads) {
      float sum = 0;
#pragma unroll
      for (int t = 0; t < K::kTeams; ++t) sum += room[t][s][i];
      parts[s][static_cast<std::int64_t>(blockIdx.x) * n + begin + i] = sum;
    }
  }
}

/// Zeros in a row beyond the real ones; not inlined, because few rows are.
static __device__ __noinline__ void leave_zeros(const RowChainArgs& args, std::int64_t place) {
  const Results zeros{place, true, nullptr};
  for (const RowResult* result :
       {&args.unrounded, &args.sum, &args.staged, &args.dropped, &args.rounded})
    zeros.leave(*result, {});
}

template <typename K>
__global__ void __launch_bounds__(K::kThreads, K::kLeastBlocks)
    row_chain_kernel(const __grid_constant__ RowChainArgs args) {
  using T = Team<K::kLanes, K::kThreads>;
  const int n = static_cast<int>(args.n), begin = static_cast<int>(blockIdx.y) * K::kWidth;
  const std::int64_t real = real_size(args.rows);
  Common common;
  common.n = n;
  common.column = begin + T::rank() * 8;
  if constexpr (K::kIsNorm) common.gamma = vector(args.gamma, common.column, n);
  if constexpr (K::kStage == Stage::Normalize) common.beta = vector(args.beta, common.column, n);
  // A chain has one source of random numbers.
  for (const RowDropout* dropout : {&args.first_dropout, &args.sum_dropout, &args.last_dropout})
    if (dropout->is_there) common.stream = stream_of(dropout->random, 0);
  if (K::kIsGeneral && args.num_rounded > 0 && !args.is_gate)
    common.scale = learned_scale(args.learned, 0);
  if (K::kIsGeneral && args.has_format) common.format_scale = chain_scale(args.format);
  Eight sums[3] = {};
  double step_sum = 0;
  // All teams of a block go on together. Where one has no real row, it does what is there, which is
  // finite or not, and leaves zeros: a row is asked for before the number of real ones is known.
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * K::kTeams;
       first < args.rows.capacity; first += static_cast<std::int64_t>(gridDim.x) * K::kTeams) {
    const std::int64_t own = first + T::number();
    const std::int64_t row = own < args.rows.capacity ? own : args.rows.capacity - 1;
    const RowInputs inputs = ask_for<K>(args, common, row, row < real ? row : real - 1);
    if (own >= real && own < args.rows.capacity && common.column < n)
      leave_zeros(args, own * n + common.column);
    if (first >= real) continue;
    run<K>(args, common, inputs, row, own < real, sums, step_sum);
  }
  if (K::kIsGeneral && args.learned_sums != nullptr) {
    __shared__ double steps[kWarp];
    step_sum = join_block(step_sum, 0.0, steps, Add());
    if (threadIdx.x == 0)
      args.learned_sums[blockIdx.x] =
          static_cast<float>(step_sum / common.scale.scale * args.learned.factor);
  }
  if constexpr (K::kSums > 0) leave_sums<K>(args, sums, begin);
}

/// Launches the kernel of a kind; `blocks`: as many as sums are left in parts, else 0.
template <int Lanes, Stage S>
void launch(const RowChainArgs& args, bool is_general, std::int64_t blocks, cudaStream_t stream) {
  const auto with = [&](auto kernel, auto kind) {
    using K = decltype(kind);
    const auto pieces = static_cast<unsigned>((args.n + K::kWidth - 1) / K::kWidth);
    const auto rows = static_cast<unsigned>(
        blocks > 0 ? blocks : blocks_for(args.rows.capacity, K::kTeams, 1 << 30));
    kernel<<<dim3(rows, pieces), K::kThreads, 0, stream>>>(args);
  };
  if (is_general)
    with(row_chain_kernel<Kind<Lanes, S, true>>, Kind<Lanes, S, true>());
  else
    with(row_chain_kernel<Kind<Lanes, S, false>>, Kind<Lanes, S, false>());
}

/// The same with as many lanes as whole rows need.
template <Stage S>
void launch_rows(const RowChainArgs& args, bool is_general, std::int64_t blocks,
                 cudaStream_t stream) {
  if (args.n <= 128) return launch<16, S>(args, is_general, blocks, stream);
  if (args.n <= 256) return launch<32, S>(args, is_general, blocks, stream);
  if (args.n <= 512) return launch<64, S>(args, is_general, blocks, stream);
  if (args.n <= 768) return launch<96, S>(args, is_general, blocks, stream);
  launch<128, S>(args, is_general, blocks, stream);
}
/// The same where pieces will do, unless a scale's gradient is to be left by blocks of whole rows.
template <Stage S>
void launch_pieces(const RowChainArgs& args, bool is_general, std::int64_t blocks,
                   cudaStream_t stream) {
  if (args.n <= 128) return launch<16, S>(args, is_general, blocks, stream);
  if (args.n <= 256 || args.learned_sums == nullptr)
    return launch<32, S>(args, is_general, blocks, stream);
  launch<64, S>(args, is_general, blocks, stream);
}

}  // namespace lathe::engine::cuda::row_chains
