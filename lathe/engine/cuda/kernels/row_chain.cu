// Rows through a chain of the form that layers have (arguments/row_chain.h): a warp has a row, or a
// piece of one where no number depends on the whole row, and keeps it in registers. Whatever else
// goes row by row is row_program.cu's.

#include "lathe/engine/cuda/kernels/dropout.cuh"
#include "lathe/engine/cuda/kernels/formats.cuh"
#include "lathe/engine/cuda/kernels/kernels.cuh"
#include "lathe/engine/cuda/kernels/maps.cuh"
#include "lathe/engine/cuda/kernels/tensor_core.cuh"

namespace lathe::engine::cuda {
namespace {

using Source = RowSource::Kind;
using Stage = RowChainArgs::Stage;

constexpr int kWarps = 8;
constexpr int kMostSums = 3;  // of a norm's gradient, and of what is left
// Groups of a piece, and of a row where the gradient of a scale is summed: only norms have more.
constexpr int kMostGroups = static_cast<int>(kWidestLearnedChain) / (kWarp * 4);

// A lane's numbers: groups of four neighbours, 128 apart.
template <int G>
struct Piece {
  float v[G][4];
};

template <int G, typename Visit>
__device__ void each_group(int begin, int n, Visit visit) {
#pragma unroll
  for (int g = 0; g < G; ++g) {
    const int column = begin + g * kWarp * 4 + static_cast<int>(threadIdx.x) % kWarp * 4;
    if (column < n) visit(g, column);
  }
}

template <int G, typename Function>
__device__ void change(Piece<G>& x, Function function) {
#pragma unroll
  for (int g = 0; g < G; ++g)
#pragma unroll
    for (int j = 0; j < 4; ++j) x.v[g][j] = function(x.v[g][j], g, j);
}

__device__ std::int64_t token_of(const RowSource& source, std::int64_t sequence) {
  const std::int64_t begin = integer_at(source.ids, sequence);
  const std::int64_t end = integer_at(source.ids, sequence + 1);
  const std::int64_t token = (source.index < 0 ? end : begin) + source.index;
  return token < 0 || token < begin || token >= end ? -1 : token;
}

// The row of memory that a source has for this row; -1: none.
__device__ std::int64_t row_of(const RowSource& source, std::int64_t row) {
  switch (source.kind) {
    case Source::Table: {
      const std::int64_t id = integer_at(source.ids, row);
      return id >= 0 && id < source.table_rows ? id : -1;
    }
    case Source::OfSequence: {
      const std::int64_t token = token_of(source, row);
      return token < real_size(source.others) ? token : -1;
    }
    case Source::ForToken: {
      const std::int64_t count = real_size(source.others);
      const int lane = static_cast<int>(threadIdx.x) % kWarp;
      for (std::int64_t first = 0; first < count; first += kWarp) {
        const bool is_it = first + lane < count && token_of(source, first + lane) == row;
        const unsigned found = __ballot_sync(kAllLanes, is_it);
        if (found != 0) return first + __ffs(static_cast<int>(found)) - 1;
      }
      return -1;
    }
    default:
      return row;
  }
}

template <int G>
__device__ Piece<G> load(const RowSource& source, std::int64_t row, int begin, int n) {
  Piece<G> piece = {};
  const std::int64_t from = row_of(source, row);
  if (from < 0) {
    if (source.kind == Source::ForToken) return piece;
    // NaN, so that no optimizer moves before the fault is seen.
    report(source.fault);
    change(piece, [](float, int, int) { return NAN; });
    return piece;
  }
  if (source.kind == Source::Half) {
    const std::uint16_t* const x = static_cast<const std::uint16_t*>(source.memory) + from * n;
    each_group<G>(begin, n, [&](int g, int column) {
      const uint2 four = *reinterpret_cast<const uint2*>(x + column);
      piece.v[g][0] = __uint_as_float(four.x << 16);
      piece.v[g][1] = __uint_as_float(four.x & 0xffff0000u);
      piece.v[g][2] = __uint_as_float(four.y << 16);
      piece.v[g][3] = __uint_as_float(four.y & 0xffff0000u);
    });
    return piece;
  }
  const float* const x = static_cast<const float*>(source.memory) + from * n;
  each_group<G>(begin, n, [&](int g, int column) {
    *reinterpret_cast<float4*>(piece.v[g]) = *reinterpret_cast<const float4*>(x + column);
  });
  if (source.kind == Source::Raw)
    change(piece, [](float value, int, int) { return round_to_bf16(value); });
  return piece;
}

template <int G>
__device__ Piece<G> vector(const float* x, int begin, int n) {
  Piece<G> piece = {};
  if (x == nullptr) return piece;
  each_group<G>(begin, n, [&](int g, int column) {
    *reinterpret_cast<float4*>(piece.v[g]) = *reinterpret_cast<const float4*>(x + column);
  });
  return piece;
}

template <int G>
__device__ void drop(const RowDropout& dropout, Piece<G>& x, std::int64_t row, int begin, int n) {
  const ops::DropoutStream stream = stream_of(dropout.random, dropout.site);
  const auto example = static_cast<std::uint32_t>(integer_at(dropout.examples, row));
  const auto position = static_cast<std::uint32_t>(integer_at(dropout.positions, row));
  each_group<G>(begin, n, [&](int g, int column) {
    const PhiloxCounter bits =
        ops::row_dropout_block(stream, example, position, static_cast<std::uint32_t>(column / 8));
    const std::uint32_t low = column % 8 == 0 ? bits[0] : bits[2];
    const std::uint32_t high = column % 8 == 0 ? bits[1] : bits[3];
    // A product, not a choice: what is not a number stays that where it is dropped too.
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const std::uint32_t own = (j < 2 ? low : high) >> (16 * (j % 2)) & 0xffffu;
      x.v[g][j] *= own < dropout.threshold ? 0.0f : dropout.scale;
    }
  });
}

// A warp's own sums in shared memory.
template <int G>
__device__ void add_to(float* sums, const Piece<G>& x, int begin, int n) {
  each_group<G>(begin, n, [&](int g, int column) {
    float4* const place = reinterpret_cast<float4*>(sums + column - begin);
    const float4 old = *place;
    *place =
        make_float4(old.x + x.v[g][0], old.y + x.v[g][1], old.z + x.v[g][2], old.w + x.v[g][3]);
  });
}

template <int G>
__device__ void leave(const RowResult& result, const Piece<G>& x, std::int64_t row, int begin,
                      int n, float* sums) {
  if (result.y != nullptr)
    each_group<G>(begin, n, [&](int g, int column) {
      *reinterpret_cast<float4*>(result.y + row * n + column) =
          *reinterpret_cast<const float4*>(x.v[g]);
    });
  if (result.half != nullptr)
    each_group<G>(begin, n, [&](int g, int column) {
      *reinterpret_cast<uint2*>(result.half + row * n + column) =
          make_uint2(to_bf16_pair(x.v[g][0], x.v[g][1]), to_bf16_pair(x.v[g][2], x.v[g][3]));
    });
  if (result.sums != nullptr && sums != nullptr) add_to(sums, x, begin, n);
}

struct Statistics {
  float mean, rate;  // rate: the reciprocal deviation
};

template <int G>
__device__ Statistics statistics_of(const Piece<G>& x, int n, float eps, bool is_rms) {
  const float count = static_cast<float>(n);
  float mean = 0, squares = 0;
  if (!is_rms) {
    float sum = 0;
    each_group<G>(0, n,
                  [&](int g, int) { sum += (x.v[g][0] + x.v[g][1]) + (x.v[g][2] + x.v[g][3]); });
    mean = join_warp(sum, Add()) / count;
  }
  each_group<G>(0, n, [&](int g, int) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float centred = x.v[g][j] - mean;
      squares = fmaf(centred, centred, squares);
    }
  });
  squares = join_warp(squares, Add()) / count;
  return {mean, 1.0f / sqrtf(squares + eps)};
}

template <int G>
__device__ void normalize(const RowChainArgs& args, Piece<G>& x, int n) {
  const Piece<G> gamma = vector<G>(args.gamma, 0, n), beta = vector<G>(args.beta, 0, n);
  const Statistics s = statistics_of(x, n, args.eps, args.is_rms);
  change(x, [&](float value, int g, int j) {
    const float scaled = (value - s.mean) * s.rate;
    return args.beta == nullptr ? scaled * gamma.v[g][j]
                                : fmaf(scaled, gamma.v[g][j], beta.v[g][j]);
  });
}

template <int G>
__device__ void normalize_gradient(const RowChainArgs& args, Piece<G>& dy, Piece<G> x, int n,
                                   float* gamma_sums, float* beta_sums) {
  const Piece<G> gamma = vector<G>(args.gamma, 0, n);
  const Statistics s = statistics_of(x, n, args.eps, args.is_rms);
  const float count = static_cast<float>(n);
  change(x, [&](float value, int, int) { return (value - s.mean) * s.rate; });
  float sum_g = 0, sum_gh = 0;
  each_group<G>(0, n, [&](int g, int) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float product = dy.v[g][j] * gamma.v[g][j];
      sum_g += product;
      sum_gh = fmaf(product, x.v[g][j], sum_gh);
    }
  });
  const float mean_g = args.is_rms ? 0.0f : join_warp(sum_g, Add()) / count;
  const float mean_gh = join_warp(sum_gh, Add()) / count;
  if (beta_sums != nullptr) add_to(beta_sums, dy, 0, n);
  Piece<G> products = dy;
  change(products, [&](float value, int g, int j) { return value * x.v[g][j]; });
  if (gamma_sums != nullptr) add_to(gamma_sums, products, 0, n);
  change(dy, [&](float value, int g, int j) {
    return s.rate * (value * gamma.v[g][j] - mean_g - x.v[g][j] * mean_gh);
  });
}

// The gradient of a format, and what a lane adds to that of its scale.
template <int G>
__device__ double unround(const RowChainArgs& args, Piece<G>& dy, std::int64_t row, int begin,
                          int n) {
  const Piece<G> x = load<G>(args.rounded_x, row, begin, n);
  if (args.is_gate) {
    change(dy, [&](float value, int g, int j) {
      return x.v[g][j] < args.low || x.v[g][j] > args.high ? 0.0f : value;
    });
    return 0;
  }
  double sum = 0;
  if constexpr (G <= kMostGroups) {
    const Piece<G> y = load<G>(args.rounded_y, row, begin, n);
    const LearnedScale scale = learned_scale(args.learned, 0);
    each_group<G>(begin, n, [&](int g, int) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const LearnedGradient gradient =
            differentiate(args.learned, scale, dy.v[g][j], x.v[g][j], y.v[g][j]);
        dy.v[g][j] = gradient.dx;
        sum += gradient.dscale;
      }
    });
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

// A row is real, or zeros are left of it.
template <int G>
__device__ void clear(const RowChainArgs& args, std::int64_t row, int begin, int n) {
  const Piece<G> zeros = {};
  for (const RowResult* result :
       {&args.unrounded, &args.sum, &args.staged, &args.dropped, &args.rounded})
    leave(*result, zeros, row, begin, n, nullptr);
}

template <int G>
__device__ void run(const RowChainArgs& args, std::int64_t row, int begin, int n, float* sums,
                    int width, double& step_sum) {
  Piece<G> operand = {};
  if (args.stage == Stage::NormalizeGradient || args.stage == Stage::MapGradient)
    operand = load<G>(args.operand, row, begin, n);
  Piece<G> x = load<G>(args.sources[0], row, begin, n);
  if (args.first_dropout.is_there) drop(args.first_dropout, x, row, begin, n);
  float* const own = sums + 2 * width;
#pragma unroll
  for (int i = 1; i <= kMostRowSources; ++i) {
    if (i == args.num_rounded) {
      step_sum += unround(args, x, row, begin, n);
      leave(args.unrounded, x, row, begin, n, own);
    }
    if (i >= args.num_sources) break;
    const Piece<G> other = load<G>(args.sources[i], row, begin, n);
    change(x, [&](float value, int g, int j) { return value + other.v[g][j]; });
  }
  leave(args.sum, x, row, begin, n, own);
  if (args.sum_dropout.is_there) drop(args.sum_dropout, x, row, begin, n);
  switch (args.stage) {
    case Stage::None:
      break;
    case Stage::Normalize:
      normalize(args, x, n);
      break;
    case Stage::NormalizeGradient:
      normalize_gradient(args, x, operand, n, args.gamma_sums == nullptr ? nullptr : sums,
                         args.beta_sums == nullptr ? nullptr : sums + width);
      break;
    case Stage::Map:
      if constexpr (G <= kMostGroups)
        with_map(args.map, [&](auto map) {
          change(x, [&](float value, int, int) { return apply(decltype(map)::kMap, value, 0); });
        });
      break;
    case Stage::MapGradient:
      if constexpr (G <= kMostGroups)
        with_map(args.map, [&](auto map) {
          change(x, [&](float value, int g, int j) {
            return value * derivative(decltype(map)::kMap, operand.v[g][j], 0);
          });
        });
      break;
  }
  leave(args.staged, x, row, begin, n, own);
  if (args.last_dropout.is_there) {
    drop(args.last_dropout, x, row, begin, n);
    leave(args.dropped, x, row, begin, n, own);
  }
  if (args.has_format) {
    const WholeRounding rounding(args.format, scale_from(args.format, {}, 0));
    change(x, [&](float value, int, int) { return rounding(value); });
    leave(args.rounded, x, row, begin, n, own);
  }
}

// `width`: the columns that a block has, all of them where a number depends on the whole row.
template <int G>
__global__ void __launch_bounds__(kWarps* kWarp, G == 1 ? 4 : 2)
    row_chain_kernel(const __grid_constant__ RowChainArgs args, int width, bool has_sums) {
  extern __shared__ __align__(16) float room[];
  const int warp = static_cast<int>(threadIdx.x) / kWarp, n = static_cast<int>(args.n);
  const int begin = static_cast<int>(blockIdx.y) * width;
  const std::int64_t real = real_size(args.rows);
  float* const sums = room + warp * kMostSums * width;
  if (has_sums)
    for (int i = static_cast<int>(threadIdx.x) % kWarp; i < kMostSums * width; i += kWarp)
      sums[i] = 0;
  __syncwarp();
  double step_sum = 0;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kWarps + warp;
       row < args.rows.capacity; row += static_cast<std::int64_t>(gridDim.x) * kWarps) {
    if (row < real)
      run<G>(args, row, begin, n, sums, width, step_sum);
    else
      clear<G>(args, row, begin, n);
  }
  if (args.learned_sums != nullptr) {
    __shared__ double steps[kWarp];
    step_sum = join_block(step_sum, 0.0, steps, Add());
    if (threadIdx.x == 0)
      args.learned_sums[blockIdx.x] = static_cast<float>(step_sum * args.learned.factor);
  }
  if (!has_sums) return;
  __syncthreads();
  const float* left = nullptr;
  for (const RowResult* result :
       {&args.unrounded, &args.sum, &args.staged, &args.dropped, &args.rounded})
    if (result->sums != nullptr) left = result->sums;
  const float* const parts[kMostSums] = {args.gamma_sums, args.beta_sums, left};
  // In the order of the warps.
  for (int s = 0; s < kMostSums; ++s) {
    if (parts[s] == nullptr) continue;
    for (int i = threadIdx.x; i < width && begin + i < n; i += blockDim.x) {
      float sum = 0;
      for (int w = 0; w < kWarps; ++w) sum += room[(w * kMostSums + s) * width + i];
      const_cast<float*>(parts[s])[static_cast<std::int64_t>(blockIdx.x) * n + begin + i] = sum;
    }
  }
}

template <int G>
void launch(const RowChainArgs& args, std::int64_t blocks, bool is_whole, bool has_sums,
            cudaStream_t stream) {
  const int piece = G * kWarp * 4;
  const int width = is_whole ? static_cast<int>(args.n) : piece;
  const auto pieces = static_cast<unsigned>((args.n + width - 1) / width);
  const int bytes = has_sums ? kWarps * kMostSums * width * 4 : 0;
  // Beside what the kernel has by itself.
  constexpr int kUnasked = (48 << 10) - kWarp * static_cast<int>(sizeof(double));
  if (bytes > kUnasked)
    cudaFuncSetAttribute(row_chain_kernel<G>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  row_chain_kernel<G>
      <<<dim3(static_cast<unsigned>(blocks), pieces), kWarps * kWarp, bytes, stream>>>(args, width,
                                                                                       has_sums);
}

}  // namespace

void row_chain(const RowChainArgs& args, Stream* stream) {
  const std::int64_t capacity = args.rows.capacity;
  if (capacity == 0 || args.n == 0) return;
  bool has_sums = args.gamma_sums != nullptr || args.beta_sums != nullptr;
  for (const RowResult* result :
       {&args.unrounded, &args.sum, &args.staged, &args.dropped, &args.rounded})
    has_sums = has_sums || result->sums != nullptr;
  // A scale's gradient is left by blocks that have whole rows, too.
  const bool is_whole = args.stage == Stage::Normalize || args.stage == Stage::NormalizeGradient ||
                        args.learned_sums != nullptr;
  const std::int64_t blocks = has_sums || args.learned_sums != nullptr
                                  ? row_parts(capacity, args.n)
                                  : blocks_for(capacity, kWarps, 1 << 30);
  const cudaStream_t on = stream_of(stream);
  std::int64_t groups = (args.n + kWarp * 4 - 1) / (kWarp * 4);
  if (!is_whole && groups > kMostGroups) groups = kMostGroups;
  if (groups <= 1) return launch<1>(args, blocks, is_whole, has_sums, on);
  if (groups <= 2) return launch<2>(args, blocks, is_whole, has_sums, on);
  if (groups <= 4) return launch<4>(args, blocks, is_whole, has_sums, on);
  if (groups <= 6) return launch<6>(args, blocks, is_whole, has_sums, on);
  launch<8>(args, blocks, is_whole, has_sums, on);
}

}  // namespace lathe::engine::cuda
