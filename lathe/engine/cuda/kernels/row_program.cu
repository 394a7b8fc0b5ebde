// Chains of steps that go row by row, as one launch: a team of threads takes a row through a small
// program. It is a warp, or a block where rows are wide.
//
// A register is a row in shared memory, of which a thread has groups of four neighbours, so that
// threads see their own numbers alone and nothing waits. Whatever a row needs of memory is asked
// for at once: rows, and vectors that a block shares, by asynchronous copies, and of the numbers of
// a row, such as ids, lane i of a warp reads those of instruction i. Sums over rows are kept for
// each team, added up for each block in the order of its teams, and left in as many parts as there
// are blocks, which follows from the capacity.

#include "lathe/engine/cuda/kernels/dropout.cuh"
#include "lathe/engine/cuda/kernels/formats.cuh"
#include "lathe/engine/cuda/kernels/kernels.cuh"
#include "lathe/engine/cuda/kernels/maps.cuh"
#include "lathe/engine/cuda/kernels/tensor_core.cuh"

namespace lathe::engine::cuda {
namespace {

using Kind = RowInstruction::Kind;

constexpr int kMostWarps = 16;               // of a block of teams that are warps
constexpr int kMostTeam = 256;               // threads of a team that is a block
constexpr int kMostSharedBytes = 100 << 10;  // two blocks of a multiprocessor

__device__ int lane_of_thread() {
  return static_cast<int>(threadIdx.x) % kWarp;
}

struct WarpTeam {
  static __device__ int size() { return kWarp; }
  static __device__ int rank() { return lane_of_thread(); }
  static __device__ int number() { return static_cast<int>(threadIdx.x) / kWarp; }
  static __device__ int count() { return static_cast<int>(blockDim.x) / kWarp; }
  static __device__ void wait() { __syncwarp(); }
  template <typename T>
  static __device__ T sum(T value) {
    return join_warp(value, Add());
  }
};

struct BlockTeam {
  static __device__ int size() { return static_cast<int>(blockDim.x); }
  static __device__ int rank() { return static_cast<int>(threadIdx.x); }
  static __device__ int number() { return 0; }
  static __device__ int count() { return 1; }
  static __device__ void wait() { __syncthreads(); }
  template <typename T>
  static __device__ T sum(T value) {
    __shared__ T room[kWarp];
    return join_block(value, T(0), room, Add());
  }
};

struct Four {
  float v[4];
};
__device__ Four four_at(const float* x) {
  const float4 four = *reinterpret_cast<const float4*>(x);
  return {{four.x, four.y, four.z, four.w}};
}
template <typename Function>
__device__ void put_four(float* y, Function function) {
  *reinterpret_cast<float4*>(y) = make_float4(function(0), function(1), function(2), function(3));
}
__device__ void add_to(float* sums, const float (&more)[4]) {
  const Four old = four_at(sums);
  put_four(sums, [&](int j) { return old.v[j] + more[j]; });
}

// What a row has of single numbers; each lane holds those of the instruction of its number.
struct RowNumbers {
  std::int64_t id = 0;
  std::uint32_t position = 0;
};
__device__ RowNumbers numbers_of(const RowProgramArgs& program, std::int64_t row) {
  RowNumbers numbers;
  const int index = lane_of_thread();
  if (index >= program.count) return numbers;
  const RowInstruction& step = program.instructions[index];
  if (step.kind != Kind::Dropout && step.kind != Kind::LoadOfTable) return numbers;
  numbers.id = integer_at(step.ids, row);
  if (step.kind == Kind::Dropout)
    numbers.position = static_cast<std::uint32_t>(integer_at(step.positions, row));
  return numbers;
}

// The token number `index` of a sequence; -1: it has none.
__device__ std::int64_t token_of(const RowInstruction& step, std::int64_t sequence) {
  const std::int64_t begin = integer_at(step.ids, sequence);
  const std::int64_t end = integer_at(step.ids, sequence + 1);
  const std::int64_t token = (step.index < 0 ? end : begin) + step.index;
  return token < 0 || token < begin || token >= end ? -1 : token;
}

// The sequence whose token number `index` the row is; -1: none. Each warp looks for itself.
__device__ std::int64_t sequence_of(const RowInstruction& step, std::int64_t row) {
  const std::int64_t count = real_size(step.others);
  const int lane = lane_of_thread();
  for (std::int64_t first = 0; first < count; first += kWarp) {
    const bool is_it = first + lane < count && token_of(step, first + lane) == row;
    const unsigned found = __ballot_sync(kAllLanes, is_it);
    if (found != 0) return first + __ffs(static_cast<int>(found)) - 1;
  }
  return -1;
}

__device__ bool is_load(Kind kind) {
  return kind <= Kind::LoadForToken;
}

// A team's registers and sums, and the block's vectors.
struct Rows {
  float* registers;
  float* sums;
  float* vectors;
  int n;
  __device__ float* at(int number) const {
    if (number >= kFirstVector) return vectors + (number - kFirstVector) * n;
    return number < 0 ? nullptr : registers + number * n;
  }
};

struct Statistics {
  float mean, rate;  // rate: the reciprocal deviation
};

template <typename Team>
struct Interpreter {
  // The groups of four that a thread has.
  template <typename Visit>
  static __device__ void each_group(int n, Visit visit) {
#pragma unroll 1
    for (int i = Team::rank() * 4; i < n; i += Team::size() * 4) visit(i);
  }

  // to = function(a), and of a and b, for all numbers of a thread.
  template <typename Function>
  static __device__ void each_of(int n, const float* a, float* to, Function function) {
    each_group(n, [&](int i) {
      const Four x = four_at(a + i);
      put_four(to + i, [&](int j) { return function(x.v[j]); });
    });
  }
  template <typename Function>
  static __device__ void each_of(int n, const float* a, const float* b, float* to,
                                 Function function) {
    each_group(n, [&](int i) {
      const Four x = four_at(a + i), y = four_at(b + i);
      put_four(to + i, [&](int j) { return function(x.v[j], y.v[j]); });
    });
  }

  static __device__ void fill(float* to, int n, float value) {
    each_group(n, [&](int i) { put_four(to + i, [&](int) { return value; }); });
  }

  static __device__ Statistics statistics_of(const float* x, int n, float eps, bool is_rms) {
    const float count = static_cast<float>(n);
    float mean = 0;
    if (!is_rms) {
      float sum = 0;
      each_group(n, [&](int i) {
        const Four four = four_at(x + i);
        sum += (four.v[0] + four.v[1]) + (four.v[2] + four.v[3]);
      });
      mean = Team::sum(sum) / count;
    }
    float squares = 0;
    each_group(n, [&](int i) {
      const Four four = four_at(x + i);
      for (int j = 0; j < 4; ++j) {
        const float centred = four.v[j] - mean;
        squares = fmaf(centred, centred, squares);
      }
    });
    squares = Team::sum(squares) / count;
    return {mean, 1.0f / sqrtf(squares + eps)};
  }

  // Puts the copies of a row on their way.
  static __device__ void load(float* to, const void* memory, std::int64_t row, int n) {
    const float* const from = static_cast<const float*>(memory) + row * n;
    each_group(n, [&](int i) { copy_async(to + i, from + i); });
  }

  // The same of bfloat16, into the second half of a register. The thread that copies four numbers
  // is the one that widens them.
  static __device__ void load_half(float* to, const void* memory, std::int64_t row, int n) {
    const std::uint16_t* const from = static_cast<const std::uint16_t*>(memory) + row * n;
    each_group(n, [&](int i) {
      const auto place = static_cast<std::uint32_t>(
          __cvta_generic_to_shared(reinterpret_cast<std::uint16_t*>(to + n / 2) + i));
      asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(place), "l"(from + i)
                   : "memory");
    });
  }

  // Floats of a round of threads end where the next round's halves begin, at most; within a round
  // all are read before one is written.
  static __device__ void widen(float* to, const float* a, int n) {
    const auto* const halves = reinterpret_cast<const std::uint16_t*>(a + n / 2);
#pragma unroll 1
    for (int first = 0; first < n; first += Team::size() * 4) {
      const int i = first + Team::rank() * 4;
      uint2 four = make_uint2(0, 0);
      if (i < n) four = *reinterpret_cast<const uint2*>(halves + i);
      Team::wait();
      if (i >= n) continue;
      const std::uint32_t bits[4] = {four.x << 16, four.x & 0xffff0000u, four.y << 16,
                                     four.y & 0xffff0000u};
      put_four(to + i, [&](int j) { return __uint_as_float(bits[j]); });
    }
  }

  static __device__ void start_load(const RowInstruction& step, std::int64_t id, std::int64_t row,
                                    const Rows& rows) {
    const int n = rows.n;
    float* const to = rows.at(step.to);
    switch (step.kind) {
      case Kind::Load:
        return load(to, step.memory, row, n);
      case Kind::LoadHalf:
        return load_half(to, step.memory, row, n);
      case Kind::LoadOfTable:
        if (id >= 0 && id < step.table_rows) return load(to, step.memory, id, n);
        // NaN, so that no optimizer moves before the fault is seen.
        report(step.fault);
        return fill(to, n, NAN);
      case Kind::LoadOfSequence: {
        const std::int64_t token = token_of(step, row);
        if (token >= 0 && token < real_size(step.others)) return load(to, step.memory, token, n);
        report(step.fault);
        return fill(to, n, NAN);
      }
      default: {
        const std::int64_t sequence = sequence_of(step, row);
        return sequence >= 0 ? load(to, step.memory, sequence, n) : fill(to, n, 0);
      }
    }
  }

  static __device__ void normalize(const RowInstruction& step, int n, const float* a,
                                   const float* gamma, const float* beta, float* to) {
    const Statistics s = statistics_of(a, n, step.low, step.is_rms);
    each_group(n, [&](int i) {
      const Four x = four_at(a + i), scale = four_at(gamma + i);
      const Four shift = beta == nullptr ? Four() : four_at(beta + i);
      put_four(to + i, [&](int j) {
        const float scaled = (x.v[j] - s.mean) * s.rate;
        return beta == nullptr ? scaled * scale.v[j] : fmaf(scaled, scale.v[j], shift.v[j]);
      });
    });
  }

  static __device__ void normalize_gradient(const RowInstruction& step, int n, const float* dy,
                                            const float* x, const float* gamma, float* dx,
                                            float* gamma_sums, float* beta_sums) {
    const Statistics s = statistics_of(x, n, step.low, step.is_rms);
    const float count = static_cast<float>(n);
    float sum_g = 0, sum_gh = 0;
    each_group(n, [&](int i) {
      const Four out = four_at(dy + i), in = four_at(x + i), scale = four_at(gamma + i);
      for (int j = 0; j < 4; ++j) {
        const float g = out.v[j] * scale.v[j];
        sum_g += g;
        sum_gh = fmaf(g, (in.v[j] - s.mean) * s.rate, sum_gh);
      }
    });
    const float mean_g = step.is_rms ? 0.0f : Team::sum(sum_g) / count;
    const float mean_gh = Team::sum(sum_gh) / count;
    each_group(n, [&](int i) {
      const Four out = four_at(dy + i), in = four_at(x + i), scale = four_at(gamma + i);
      float products[4], gradient[4];
      for (int j = 0; j < 4; ++j) {
        const float h = (in.v[j] - s.mean) * s.rate;
        products[j] = out.v[j] * h;
        gradient[j] = s.rate * (out.v[j] * scale.v[j] - mean_g - h * mean_gh);
      }
      add_to(gamma_sums + i, products);
      if (beta_sums != nullptr) add_to(beta_sums + i, out.v);
      put_four(dx + i, [&](int j) { return gradient[j]; });
    });
  }

  static __device__ void drop(const RowInstruction& step, int n, const ops::DropoutStream& stream,
                              std::uint32_t example, std::uint32_t position, const float* a,
                              float* to) {
    each_group(n, [&](int i) {
      const PhiloxCounter bits =
          ops::row_dropout_block(stream, example, position, static_cast<std::uint32_t>(i / 8));
      const Four x = four_at(a + i);
      const std::uint32_t two[2] = {i % 8 == 0 ? bits[0] : bits[2], i % 8 == 0 ? bits[1] : bits[3]};
      // A product, not a choice: what is not a number stays that where it is dropped too.
      put_four(to + i, [&](int j) {
        const std::uint32_t own = two[j / 2] >> (16 * (j % 2)) & 0xffffu;
        return x.v[j] * (own < step.threshold ? 0.0f : step.scale);
      });
    });
  }

  // What is rare and long is called, so that the other instructions need not leave it registers.
  static __device__ __noinline__ void quantize(const QuantizeArgs& format, int n, std::int64_t row,
                                               const float* a, float* to) {
    const bool has_one_scale = format.rule == ScaleBy::Constant ||
                               (format.has_one_scale && (format.rule == ScaleBy::Given ||
                                                         format.rule == ScaleBy::GivenPowerOfTwo));
    if (has_one_scale) {
      with_rounding(format, scale_from(format, {}, 0),
                    [&](const auto& round) { each_of(n, a, to, round); });
      return;
    }
    const std::int64_t blocks = (n + format.block - 1) / format.block;
    Team::wait();
    for (std::int64_t block = Team::rank() / kWarp; block < blocks; block += Team::size() / kWarp) {
      const std::int64_t first = block * format.block;
      const std::int64_t width = n - first < format.block ? n - first : format.block;
      quantize_block(format, a + first, to + first, width, row * blocks + block);
    }
    Team::wait();
  }
  static __device__ __noinline__ void map_row(const RowInstruction& step, int n, const float* a,
                                              float* to) {
    if (step.map == Map::GeluErf)
      return each_of(n, a, to, [](float x) { return apply(Map::GeluErf, x, 0); });
    each_of(n, a, to, [&](float x) { return apply(step.map, x, step.slope); });
  }
  static __device__ __noinline__ void differentiate_row(const RowInstruction& step, int n,
                                                        const float* dy, const float* x,
                                                        float* to) {
    if (step.map == Map::GeluErf)
      return each_of(n, dy, x, to,
                     [](float out, float in) { return out * derivative(Map::GeluErf, in, 0); });
    each_of(n, dy, x, to,
            [&](float out, float in) { return out * derivative(step.map, in, step.slope); });
  }
  static __device__ __noinline__ void pair_rows(const RowInstruction& step, int n, const float* a,
                                                const float* b, float* to) {
    each_of(n, a, b, to, [&](float x, float y) { return apply(step.pair, x, y); });
  }

  static __device__ void store(void* result, std::int64_t row, int n, const float* a) {
    float* const y = static_cast<float*>(result) + row * n;
    each_group(n, [&](int i) {
      *reinterpret_cast<float4*>(y + i) = *reinterpret_cast<const float4*>(a + i);
    });
  }
  static __device__ void store_half(void* result, std::int64_t row, int n, const float* a) {
    std::uint16_t* const y = static_cast<std::uint16_t*>(result) + row * n;
    each_group(n, [&](int i) {
      const Four x = four_at(a + i);
      *reinterpret_cast<uint2*>(y + i) =
          make_uint2(to_bf16_pair(x.v[0], x.v[1]), to_bf16_pair(x.v[2], x.v[3]));
    });
  }

  // Any other instruction than a load, number `index`.
  static __device__ void run(const RowProgramArgs& program, int index, const RowNumbers& numbers,
                             const ops::DropoutStream& stream, std::int64_t row, const Rows& rows) {
    const RowInstruction& step = program.instructions[index];
    const int n = rows.n;
    float* const to = rows.at(step.to);
    const float* const a = rows.at(step.a);
    const float* const b = rows.at(step.b);
    const float* const c = rows.at(step.c);
    float* const sums = rows.sums + step.sum * n;
    switch (step.kind) {
      case Kind::Widen:
        return widen(to, a, n);
      case Kind::Store:
        return store(step.result, row, n, a);
      case Kind::StoreHalf:
        return store_half(step.result, row, n, a);
      case Kind::Round:
        return each_of(n, a, to, [](float x) { return round_to_bf16(x); });
      case Kind::Map:
        return map_row(step, n, a, to);
      case Kind::MapGradient:
        return differentiate_row(step, n, a, b, to);
      case Kind::Pair:
        if (step.pair == Pair::Add)
          return each_of(n, a, b, to, [](float x, float y) { return x + y; });
        return pair_rows(step, n, a, b, to);
      case Kind::Gate:
        return each_of(n, a, b, to, [&](float dy, float x) {
          return x < step.low || x > step.high ? 0.0f : dy;
        });
      case Kind::Dropout: {
        const auto example = static_cast<std::uint32_t>(__shfl_sync(kAllLanes, numbers.id, index));
        const std::uint32_t position = __shfl_sync(kAllLanes, numbers.position, index);
        const ops::DropoutStream own{stream.seed, stream.step, step.site};
        return drop(step, n, own, example, position, a, to);
      }
      case Kind::Normalize:
        return normalize(step, n, a, b, c, to);
      case Kind::NormalizeGradient:
        return normalize_gradient(step, n, a, b, c, to, sums,
                                  step.more_sums == nullptr ? nullptr : sums + n);
      case Kind::Sum:
        return each_group(n, [&](int i) { add_to(sums + i, four_at(a + i).v); });
      case Kind::Quantize:
        return quantize(program.formats[step.format], n, row, a, to);
      default:
        return;
    }
  }

  // Zeros where a row is not real.
  static __device__ void clear_row(const RowProgramArgs& program, std::int64_t row) {
    const int n = static_cast<int>(program.n);
    for (int index = 0; index < program.count; ++index) {
      const RowInstruction& step = program.instructions[index];
      if (step.kind == Kind::Store) fill(static_cast<float*>(step.result) + row * n, n, 0);
      if (step.kind == Kind::StoreHalf)
        each_group(n, [&](int i) {
          *reinterpret_cast<uint2*>(static_cast<std::uint16_t*>(step.result) + row * n + i) =
              make_uint2(0, 0);
        });
    }
  }
};

// A block's sums over its rows, in the order of its teams.
__device__ void leave_sums(const RowProgramArgs& program, const float* sums, int teams) {
  __syncthreads();
  const std::int64_t n = program.n;
  const auto leave = [&](int index, float* parts) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
      float sum = 0;
      for (int team = 0; team < teams; ++team)
        sum += sums[(team * program.num_sums + index) * n + i];
      parts[blockIdx.x * n + i] = sum;
    }
  };
  for (int index = 0; index < program.count; ++index) {
    const RowInstruction& step = program.instructions[index];
    if (step.sums != nullptr) leave(step.sum, step.sums);
    if (step.more_sums != nullptr) leave(step.sum + 1, step.more_sums);
  }
}

template <typename Team>
__global__ void __launch_bounds__(kMostWarps* kWarp, 2)
    row_program_kernel(const RowProgramArgs* on_device, int program_bytes, Extent extent,
                       const std::int32_t* random) {
  using Steps = Interpreter<Team>;
  extern __shared__ float4 room[];
  const std::int64_t real = real_size(extent);
  const ops::DropoutStream stream = random == nullptr ? ops::DropoutStream() : stream_of(random, 0);
  for (int i = threadIdx.x; i < program_bytes / 16; i += blockDim.x)
    room[i] = reinterpret_cast<const float4*>(on_device)[i];
  __syncthreads();
  const RowProgramArgs& program = *reinterpret_cast<const RowProgramArgs*>(room);
  const int n = static_cast<int>(program.n), team = Team::number(), teams = Team::count();
  float* const vectors = reinterpret_cast<float*>(room) + program_bytes / 4;
  float* const registers = vectors + program.num_vectors * n;
  float* const sums = registers + teams * program.num_registers * n;
  const Rows rows{registers + team * program.num_registers * n, sums + team * program.num_sums * n,
                  vectors, n};
  for (int v = 0; v < program.num_vectors; ++v)
    for (int i = static_cast<int>(threadIdx.x) * 4; i < n; i += static_cast<int>(blockDim.x) * 4)
      copy_async(vectors + v * n + i, program.vectors[v] + i);
  Steps::fill(rows.sums, program.num_sums * n, 0);
  int num_loads = 0;
  while (num_loads < program.count && is_load(program.instructions[num_loads].kind)) ++num_loads;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * teams;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * teams + team;
  for (std::int64_t row = first;; row += stride) {
    RowNumbers numbers;
    if (row < real) {
      Team::wait();  // a thread's copies may lie where others were reading
      numbers = numbers_of(program, row);
      for (int i = 0; i < num_loads; ++i)
        Steps::start_load(program.instructions[i], __shfl_sync(kAllLanes, numbers.id, i), row,
                          rows);
    }
    commit_copies();
    wait_for_copies<0>();
    if (row == first) __syncthreads();  // of the vectors, other threads' shares have come, too
    if (row >= extent.capacity) break;
    if (row >= real) {
      Steps::clear_row(program, row);
      continue;
    }
    for (int i = num_loads; i < program.count; ++i)
      Steps::run(program, i, numbers, stream, row, rows);
  }
  if (program.num_sums > 0) leave_sums(program, sums, teams);
}

// What a program takes in shared memory, in front of vectors and registers: as far as it goes.
std::int64_t bytes_of(const RowProgramArgs& program) {
  const std::int64_t bytes = static_cast<std::int64_t>(offsetof(RowProgramArgs, instructions)) +
                             program.count * static_cast<std::int64_t>(sizeof(RowInstruction));
  return (bytes + 15) / 16 * 16;
}

// Where random numbers come from: a program has one such source.
const std::int32_t* random_of(const RowProgramArgs& args) {
  for (int i = 0; i < args.count; ++i)
    if (args.instructions[i].kind == Kind::Dropout) return args.instructions[i].random;
  return nullptr;
}

template <typename Team>
void launch(const RowProgramArgs& args, const RowProgramArgs* on_device, std::int64_t blocks,
            int threads, std::int64_t teams, Stream* stream) {
  const auto program_bytes = static_cast<int>(bytes_of(args));
  const auto bytes = static_cast<int>(
      program_bytes +
      (args.num_vectors + teams * (args.num_registers + args.num_sums)) * args.n * 4);
  if (bytes > 48 << 10)
    cudaFuncSetAttribute(row_program_kernel<Team>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         bytes);
  row_program_kernel<Team>
      <<<static_cast<unsigned>(blocks), static_cast<unsigned>(threads), bytes, stream_of(stream)>>>(
          on_device, program_bytes, args.rows, random_of(args));
}

}  // namespace

void row_program(const RowProgramArgs& args, const RowProgramArgs* on_device, Stream* stream) {
  const std::int64_t capacity = args.rows.capacity;
  if (capacity == 0 || args.n == 0) return;
  const std::int64_t parts = row_parts(capacity, args.n);
  if (args.n >= kWideRow) {
    const std::int64_t groups = (args.n / 4 + kWarp - 1) / kWarp * kWarp;
    const auto threads = static_cast<int>(groups < kMostTeam ? groups : kMostTeam);
    const std::int64_t blocks = args.num_sums > 0 ? parts : blocks_for(capacity, 1, 2112);
    return launch<BlockTeam>(args, on_device, blocks, threads, 1, stream);
  }
  const std::int64_t bytes_of_warp = (args.num_registers + args.num_sums) * args.n * 4;
  int warps = kMostWarps;
  while (warps > 1 && warps * bytes_of_warp > kMostSharedBytes) warps /= 2;
  while (args.num_sums == 0 && warps > 4 && capacity < warps * 264) warps /= 2;
  const std::int64_t blocks = args.num_sums > 0 ? parts : blocks_for(capacity, warps, 2048);
  launch<WarpTeam>(args, on_device, blocks, warps * kWarp, warps, stream);
}

}  // namespace lathe::engine::cuda
