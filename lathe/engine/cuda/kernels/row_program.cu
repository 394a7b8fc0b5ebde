// Chains of steps that go row by row, as one launch: a team of threads takes a row through a small
// program. It is some lanes of a warp, so that a warp reads an instruction for several rows. Chains
// of the form that layers have are row_chain.cu's, which is faster.
//
// A register is a row in shared memory, of which a thread has groups of four neighbours, so that
// threads see their own numbers alone and nothing waits. Whatever a row needs of memory is asked
// for at once: rows, and vectors that a block shares, by asynchronous copies, and single numbers,
// such as ids, by one lane each. All lanes of a warp do the same; where a team has no row, it does
// that of the last one again and leaves nothing. Sums over rows are kept for each team, added up
// for each block in the order of its teams, and left in as many parts as there are blocks, which
// follows from the capacity.

#include "lathe/engine/cuda/kernels/row_instructions.cuh"

namespace lathe::engine::cuda {
namespace {

constexpr int kMostThreads = 512;
constexpr int kMostSharedBytes = 100 << 10;  // two blocks of a multiprocessor

template <int kLanes>
struct LaneTeam {
  static __device__ int size() { return kLanes; }
  static __device__ int rank() { return static_cast<int>(threadIdx.x) % kLanes; }
  static __device__ int number() { return static_cast<int>(threadIdx.x) / kLanes; }
  static __device__ int count() { return static_cast<int>(blockDim.x) / kLanes; }
  static __device__ int teams_of_warp() { return kWarp / kLanes; }
  static __device__ void wait() { __syncwarp(); }
  template <typename T>
  static __device__ T sum(T value) {
#pragma unroll
    for (int distance = kLanes / 2; distance > 0; distance /= 2)
      value += __shfl_xor_sync(kAllLanes, value, distance);
    return value;
  }
  // The value of a lane of the team.
  template <typename T>
  static __device__ T of_lane(T value, int lane) {
    return __shfl_sync(kAllLanes, value, lane, kLanes);
  }
  // The first lane of the team for which it holds; -1: for none.
  static __device__ int first_lane(bool holds) {
    constexpr unsigned kMask = kLanes == kWarp ? kAllLanes : (1u << kLanes % kWarp) - 1;
    const int shift = static_cast<int>(threadIdx.x) % kWarp / kLanes * kLanes;
    return __ffs(static_cast<int>(__ballot_sync(kAllLanes, holds) >> shift & kMask)) - 1;
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
    if (step.kind == Kind::LearnedStep) {
      if (threadIdx.x != 0) continue;
      double total = 0;
      for (int team = 0; team < teams; ++team)
        total += *reinterpret_cast<const double*>(sums + (team * program.num_sums + step.sum) * n);
      step.sums[blockIdx.x] = static_cast<float>(total * program.learned_steps[step.format].factor);
      continue;
    }
    if (step.sums != nullptr) leave(step.sum, step.sums);
    if (step.more_sums != nullptr) leave(step.sum + 1, step.more_sums);
  }
}

template <typename Team>
__global__ void __launch_bounds__(kMostThreads, 2)
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
  const int stride = program.num_registers * n;
  Rows rows{0, false, registers + team * stride, sums + team * program.num_sums * n, vectors,
            n, stride};
  for (int v = 0; v < program.num_vectors; ++v)
    for (int i = static_cast<int>(threadIdx.x) * 4; i < n; i += static_cast<int>(blockDim.x) * 4)
      copy_async(vectors + v * n + i, program.vectors[v] + i);
  Steps::fill(rows.sums, program.num_sums * n, 0);
  const int lane = static_cast<int>(threadIdx.x) % (Team::size() < kWarp ? Team::size() : kWarp);
  const int numbered = lane < kMostNumbered ? program.numbered[lane] : -1;
  // Rows of all teams of a block at once, as far as there are any.
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * teams; first < extent.capacity;
       first += static_cast<std::int64_t>(gridDim.x) * teams) {
    rows.row = first + team;
    rows.is_real = rows.row < real;
    if (rows.row >= real && rows.row < extent.capacity) Steps::clear_row(program, rows.row);
    if (first >= real) continue;
    if (!rows.is_real) rows.row = real - 1;
    RowNumbers numbers;
    if (numbered >= 0) numbers = numbers_of(program.instructions[numbered], rows.row);
    __syncwarp();
    Team::wait();  // a thread's copies may lie where others were reading
    for (int i = 0; i < program.num_loads; ++i)
      Steps::start_load(program.instructions[i], numbers, rows);
    commit_copies();
    wait_for_copies<0>();
    __syncthreads();  // of the vectors, other threads' shares have come, too
    for (int i = program.num_loads; i < program.count; ++i)
      Steps::run(program, program.instructions[i], numbers, stream, rows);
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

template <int kLanes>
void launch_teams(const RowProgramArgs& args, const RowProgramArgs* on_device, Stream* stream) {
  const std::int64_t capacity = args.rows.capacity;
  const std::int64_t bytes_of_team = (args.num_registers + args.num_sums) * args.n * 4;
  int teams = args.num_sums > 0 ? 16 : 64 / kLanes;
  if (teams * kLanes < kWarp) teams = kWarp / kLanes;
  while (teams * kLanes > kWarp && teams * bytes_of_team > kMostSharedBytes) teams /= 2;
  const std::int64_t blocks =
      args.num_sums > 0 ? row_parts(capacity, args.n) : blocks_for(capacity, teams, 4096);
  launch<LaneTeam<kLanes>>(args, on_device, blocks, teams * kLanes, teams, stream);
}

}  // namespace

void row_program(const RowProgramArgs& args, const RowProgramArgs* on_device, Stream* stream) {
  if (args.rows.capacity == 0 || args.n == 0) return;
  if (args.n <= 128) return launch_teams<8>(args, on_device, stream);
  if (args.n <= 256) return launch_teams<16>(args, on_device, stream);
  launch_teams<32>(args, on_device, stream);
}

}  // namespace lathe::engine::cuda
