// Chains of steps that go row by row, as one launch: a warp takes a row through a small program.
//
// A register is a row in shared memory, of which a lane has every 32nd group of four neighbours, so
// that lanes see their own numbers alone and nothing waits; all loads of a row are on their way
// together. Sums over rows are kept for each warp, added up for each block in the order of its
// warps, and left in as many parts as there are blocks, which follows from the capacity.

#include "lathe/engine/cuda/kernels/dropout.cuh"
#include "lathe/engine/cuda/kernels/formats.cuh"
#include "lathe/engine/cuda/kernels/kernels.cuh"
#include "lathe/engine/cuda/kernels/maps.cuh"
#include "lathe/engine/cuda/kernels/tensor_core.cuh"

namespace lathe::engine::cuda {
namespace {

using Kind = RowInstruction::Kind;

constexpr int kMostWarps = 16;
constexpr int kMostSharedBytes = 100 << 10;  // two blocks of a multiprocessor

// The groups of four that a lane has.
template <typename Visit>
__device__ void each_group(std::int64_t n, Visit visit) {
  for (int i = threadIdx.x % kWarp * 4; i < n; i += kWarp * 4) visit(i);
}

__device__ float4 four_at(const float* x) {
  return *reinterpret_cast<const float4*>(x);
}

template <typename Function>
__device__ void put_four(float* y, Function function) {
  *reinterpret_cast<float4*>(y) = make_float4(function(0), function(1), function(2), function(3));
}

struct Statistics {
  float mean, rate;  // rate: the reciprocal deviation
};

__device__ Statistics statistics_of(const float* x, std::int64_t n, float eps, bool is_rms) {
  const float count = static_cast<float>(n);
  float mean = 0;
  if (!is_rms) {
    float sum = 0;
    each_group(n, [&](int i) {
      const float4 four = four_at(x + i);
      sum += (four.x + four.y) + (four.z + four.w);
    });
    mean = join_warp(sum, Add()) / count;
  }
  float squares = 0;
  each_group(n, [&](int i) {
    for (int j = 0; j < 4; ++j) {
      const float centred = x[i + j] - mean;
      squares = fmaf(centred, centred, squares);
    }
  });
  squares = join_warp(squares, Add()) / count;
  return {mean, 1.0f / sqrtf(squares + eps)};
}

// The token number `index` of a sequence; -1: it has none.
__device__ std::int64_t token_of(const RowInstruction& step, std::int64_t sequence) {
  const std::int64_t begin = integer_at(step.ids, sequence);
  const std::int64_t end = integer_at(step.ids, sequence + 1);
  const std::int64_t token = (step.index < 0 ? end : begin) + step.index;
  return token < 0 || token < begin || token >= end ? -1 : token;
}

// The sequence whose token number `index` the row is; -1: none.
__device__ std::int64_t sequence_of(const RowInstruction& step, std::int64_t row) {
  const std::int64_t count = real_size(step.others);
  const int lane = threadIdx.x % kWarp;
  for (std::int64_t first = 0; first < count; first += kWarp) {
    const bool is_it = first + lane < count && token_of(step, first + lane) == row;
    const unsigned found = __ballot_sync(kAllLanes, is_it);
    if (found != 0) return first + __ffs(static_cast<int>(found)) - 1;
  }
  return -1;
}

__device__ void fill(float* to, std::int64_t n, float value) {
  each_group(n, [&](int i) { put_four(to + i, [&](int) { return value; }); });
}

// Puts the copies of a row on their way.
__device__ void load(float* to, const float* from, std::int64_t n) {
  each_group(n, [&](int i) { copy_async(to + i, from + i); });
}

__device__ void normalize_gradient(const RowInstruction& step, std::int64_t n, const float* dy,
                                   const float* x, float* dx, float* gamma_sums, float* beta_sums) {
  const Statistics s = statistics_of(x, n, step.low, step.is_rms);
  const float count = static_cast<float>(n);
  float sum_g = 0, sum_gh = 0;
  each_group(n, [&](int i) {
    for (int j = 0; j < 4; ++j) {
      const float g = dy[i + j] * step.memory[i + j];
      sum_g += g;
      sum_gh = fmaf(g, (x[i + j] - s.mean) * s.rate, sum_gh);
    }
  });
  const float mean_g = step.is_rms ? 0.0f : join_warp(sum_g, Add()) / count;
  const float mean_gh = join_warp(sum_gh, Add()) / count;
  each_group(n, [&](int i) {
    const float4 gradient = four_at(dy + i);
    const float out[4] = {gradient.x, gradient.y, gradient.z, gradient.w};
    put_four(dx + i, [&](int j) {
      const float h = (x[i + j] - s.mean) * s.rate;
      gamma_sums[i + j] += out[j] * h;
      if (beta_sums != nullptr) beta_sums[i + j] += out[j];
      return s.rate * (out[j] * step.memory[i + j] - mean_g - h * mean_gh);
    });
  });
}

__device__ void drop(const RowInstruction& step, std::int64_t n, std::int64_t row, const float* a,
                     float* to) {
  const ops::DropoutStream stream = stream_of(step.random, step.site);
  const auto example = static_cast<std::uint32_t>(integer_at(step.ids, row));
  const auto position = static_cast<std::uint32_t>(integer_at(step.positions, row));
  each_group(n, [&](int i) {
    const PhiloxCounter bits =
        ops::row_dropout_block(stream, example, position, static_cast<std::uint32_t>(i / 8));
    // A product, not a choice: what is not a number stays that where it is dropped too.
    put_four(to + i, [&](int j) {
      const auto feature = static_cast<std::uint32_t>(i % 8 + j);
      return a[i + j] * (ops::dropout_bits(bits, feature) < step.threshold ? 0.0f : step.scale);
    });
  });
}

__device__ void embed(const RowInstruction& step, std::int64_t n, std::int64_t row, const float* a,
                      float* to) {
  const std::int64_t id = integer_at(step.ids, row);
  const bool is_inside = id >= 0 && id < step.table_rows;
  if (!is_inside) report(step.fault);
  const float* const from = step.memory + (is_inside ? id * n : 0);
  each_group(n, [&](int i) {
    const float4 four = four_at(from + i);
    const float values[4] = {four.x, four.y, four.z, four.w};
    // An id outside its table gives NaN, so that no optimizer moves before the fault is seen.
    put_four(to + i, [&](int j) {
      const float value = is_inside ? values[j] : NAN;
      return a == nullptr ? value : a[i + j] + value;
    });
  });
}

__device__ void store_half(void* result, std::int64_t place, std::int64_t n, const float* a) {
  each_group(n, [&](int i) {
    const uint2 four = make_uint2(to_bf16_pair(a[i], a[i + 1]), to_bf16_pair(a[i + 2], a[i + 3]));
    *reinterpret_cast<uint2*>(static_cast<std::uint16_t*>(result) + place + i) = four;
  });
}

// One instruction; `registers` are the warp's, `sums` where its own sums begin.
__device__ void run(const RowProgramArgs& program, const QuantizeArgs* formats,
                    const RowInstruction& step, std::int64_t row, float* registers, float* sums) {
  const std::int64_t n = program.n;
  const auto at = [&](int index) { return index < 0 ? nullptr : registers + index * n; };
  float* const to = at(step.to);
  const float* const a = at(step.a);
  const float* const b = at(step.b);
  switch (step.kind) {
    case Kind::Load:
      return load(to, step.memory + row * n, n);
    case Kind::LoadOfSequence: {
      const std::int64_t token = token_of(step, row);
      if (token >= 0 && token < real_size(step.others)) return load(to, step.memory + token * n, n);
      report(step.fault);
      return fill(to, n, NAN);
    }
    case Kind::LoadForToken: {
      const std::int64_t sequence = sequence_of(step, row);
      return sequence >= 0 ? load(to, step.memory + sequence * n, n) : fill(to, n, 0);
    }
    case Kind::Embed:
      return embed(step, n, row, a, to);
    case Kind::Store:
      each_group(n, [&](int i) {
        *reinterpret_cast<float4*>(static_cast<float*>(step.result) + row * n + i) = four_at(a + i);
      });
      return;
    case Kind::StoreHalf:
      return store_half(step.result, row * n, n, a);
    case Kind::Round:
      each_group(n,
                 [&](int i) { put_four(to + i, [&](int j) { return round_to_bf16(a[i + j]); }); });
      return;
    case Kind::AddVector:
      each_group(n, [&](int i) {
        const float4 four = four_at(step.memory + i);
        const float values[4] = {four.x, four.y, four.z, four.w};
        put_four(to + i, [&](int j) { return a[i + j] + values[j]; });
      });
      return;
    case Kind::Map:
      each_group(n, [&](int i) {
        for (int j = 0; j < 4; ++j) to[i + j] = apply(step.map, a[i + j], step.slope);
      });
      return;
    case Kind::MapGradient:
      each_group(n, [&](int i) {
        for (int j = 0; j < 4; ++j)
          to[i + j] = a[i + j] * derivative(step.map, b[i + j], step.slope);
      });
      return;
    case Kind::Pair:
      if (step.pair == Pair::Add) {
        each_group(n, [&](int i) { put_four(to + i, [&](int j) { return a[i + j] + b[i + j]; }); });
        return;
      }
      each_group(n, [&](int i) {
        for (int j = 0; j < 4; ++j) to[i + j] = apply(step.pair, a[i + j], b[i + j]);
      });
      return;
    case Kind::Gate:
      each_group(n, [&](int i) {
        put_four(to + i, [&](int j) {
          return b[i + j] < step.low || b[i + j] > step.high ? 0.0f : a[i + j];
        });
      });
      return;
    case Kind::Dropout:
      return drop(step, n, row, a, to);
    case Kind::Normalize: {
      const Statistics s = statistics_of(a, n, step.low, step.is_rms);
      each_group(n, [&](int i) {
        put_four(to + i, [&](int j) {
          const float scaled = (a[i + j] - s.mean) * s.rate, gamma = step.memory[i + j];
          return step.second == nullptr ? scaled * gamma : fmaf(scaled, gamma, step.second[i + j]);
        });
      });
      return;
    }
    case Kind::NormalizeGradient: {
      float* const gamma_sums = sums + step.sum * n;
      return normalize_gradient(step, n, a, b, to, gamma_sums,
                                step.more_sums == nullptr ? nullptr : gamma_sums + n);
    }
    case Kind::Sum:
      each_group(n, [&](int i) {
        for (int j = 0; j < 4; ++j) sums[step.sum * n + i + j] += a[i + j];
      });
      return;
    case Kind::Quantize: {
      const QuantizeArgs& format = formats[step.format];
      const std::int64_t blocks = (n + format.block - 1) / format.block;
      __syncwarp();
      for (std::int64_t block = 0; block < blocks; ++block) {
        const std::int64_t first = block * format.block;
        const std::int64_t width = n - first < format.block ? n - first : format.block;
        quantize_block(format, a + first, to + first, width, row * blocks + block);
      }
      __syncwarp();
      return;
    }
  }
}

// A block's sums over its rows, in the order of its warps.
__device__ void leave_sums(const RowProgramArgs& program, const float* sums, int warps) {
  __syncthreads();
  const std::int64_t n = program.n;
  const auto leave = [&](int index, float* parts) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
      float sum = 0;
      for (int warp = 0; warp < warps; ++warp)
        sum += sums[(warp * program.num_sums + index) * n + i];
      parts[blockIdx.x * n + i] = sum;
    }
  };
  for (int index = 0; index < program.count; ++index) {
    const RowInstruction& step = program.instructions[index];
    if (step.sums != nullptr) leave(step.sum, step.sums);
    if (step.more_sums != nullptr) leave(step.sum + 1, step.more_sums);
  }
}

// What a program takes in shared memory, in front of the registers: as far as it goes.
std::int64_t bytes_of(const RowProgramArgs& program) {
  const std::int64_t bytes = static_cast<std::int64_t>(offsetof(RowProgramArgs, instructions)) +
                             program.count * static_cast<std::int64_t>(sizeof(RowInstruction));
  return (bytes + 15) / 16 * 16;
}

__global__ void __launch_bounds__(kMostWarps* kWarp)
    row_program_kernel(const RowProgramArgs* on_device, int program_bytes) {
  extern __shared__ float4 room[];
  const int warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp;
  for (int i = threadIdx.x; i < program_bytes / 16; i += blockDim.x)
    room[i] = reinterpret_cast<const float4*>(on_device)[i];
  __syncthreads();
  const RowProgramArgs& program = *reinterpret_cast<const RowProgramArgs*>(room);
  const std::int64_t n = program.n, real = real_size(program.rows);
  float* const shared = reinterpret_cast<float*>(room) + program_bytes / 4;
  float* const registers = shared + warp * program.num_registers * n;
  float* const all_sums = shared + warps * program.num_registers * n;
  float* const sums = all_sums + warp * program.num_sums * n;
  fill(sums, program.num_sums * n, 0);
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * warps;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * warps + warp;
       row < program.rows.capacity; row += stride) {
    bool is_waiting = false;
    for (int index = 0; index < program.count; ++index) {
      const RowInstruction& step = program.instructions[index];
      const bool loads = step.kind == Kind::Load || step.kind == Kind::LoadOfSequence ||
                         step.kind == Kind::LoadForToken;
      if (row >= real) {
        if (step.kind == Kind::Store) fill(static_cast<float*>(step.result) + row * n, n, 0);
        if (step.kind == Kind::StoreHalf)
          each_group(n, [&](int i) {
            *reinterpret_cast<uint2*>(static_cast<std::uint16_t*>(step.result) + row * n + i) =
                make_uint2(0, 0);
          });
        continue;
      }
      if (is_waiting && !loads) {
        commit_copies();
        wait_for_copies<0>();
        is_waiting = false;
      }
      run(program, on_device->formats, step, row, registers, sums);
      is_waiting = is_waiting || loads;
    }
  }
  if (program.num_sums > 0) leave_sums(program, all_sums, warps);
}

}  // namespace

void row_program(const RowProgramArgs& args, const RowProgramArgs* on_device, Stream* stream) {
  if (args.rows.capacity == 0 || args.n == 0) return;
  const std::int64_t bytes_of_warp = (args.num_registers + args.num_sums) * args.n * 4;
  int warps = kMostWarps;
  while (warps > 1 && warps * bytes_of_warp > kMostSharedBytes) warps /= 2;
  while (args.num_sums == 0 && warps > 4 && args.rows.capacity < warps * 264) warps /= 2;
  const std::int64_t blocks = args.num_sums > 0 ? row_parts(args.rows.capacity)
                                                : blocks_for(args.rows.capacity, warps, 2048);
  const auto program_bytes = static_cast<int>(bytes_of(args));
  const auto bytes = static_cast<int>(program_bytes + warps * bytes_of_warp);
  if (bytes > 48 << 10)
    cudaFuncSetAttribute(row_program_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  row_program_kernel<<<static_cast<unsigned>(blocks), static_cast<unsigned>(warps * kWarp), bytes,
                       stream_of(stream)>>>(on_device, program_bytes);
}

}  // namespace lathe::engine::cuda
