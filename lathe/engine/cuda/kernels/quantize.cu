// Tensors rounded to number formats, and the gradients of scales that are learned.

#include "lathe/engine/cuda/kernels/formats.cuh"
#include "lathe/engine/cuda/kernels/kernels.cuh"

namespace lathe::engine::cuda {
namespace {

constexpr int kBlocksOfGroup = kThreads / kWarp;

// A warp for each block of values, from `begin` on and below `end`.
__device__ void quantize_blocks(const QuantizeArgs& args, std::int64_t begin, std::int64_t end,
                                std::int64_t stride) {
  const std::int64_t real = real_size(args.rows);
  const std::int64_t blocks = (args.columns + args.block - 1) / args.block;
  for (std::int64_t index = begin; index < end; index += stride) {
    const std::int64_t row = index / blocks, first = (index - row * blocks) * args.block;
    const std::int64_t width =
        args.columns - first < args.block ? args.columns - first : args.block;
    const float* const x = args.x + row * args.columns + first;
    float* const y = args.y + row * args.columns + first;
    if (row >= real) {
      for (std::int64_t i = threadIdx.x % kWarp; i < width; i += kWarp) y[i] = 0;
      continue;
    }
    quantize_block(args, x, y, width, index);
  }
}

__device__ std::int64_t num_blocks(const QuantizeArgs& args) {
  return args.rows.capacity * ((args.columns + args.block - 1) / args.block);
}

__global__ void quantize_kernel(const __grid_constant__ QuantizeArgs args) {
  const std::int64_t warp =
      static_cast<std::int64_t>(blockIdx.x) * kBlocksOfGroup + threadIdx.x / kWarp;
  quantize_blocks(args, warp, num_blocks(args),
                  static_cast<std::int64_t>(gridDim.x) * kBlocksOfGroup);
}

__global__ void quantize_all_kernel(QuantizeAllArgs all) {
  // A copy, or every value that is written could be one of its fields.
  constexpr int kWords = sizeof(QuantizeArgs) / sizeof(std::uint32_t);
  __shared__ __align__(16) std::uint32_t words[kWords];
  const auto* const own =
      reinterpret_cast<const std::uint32_t*>(&of_this_block(all.tensors, all.count));
  for (int i = threadIdx.x; i < kWords; i += blockDim.x) words[i] = own[i];
  __syncthreads();
  const QuantizeArgs& args = *reinterpret_cast<const QuantizeArgs*>(words);
  const std::int64_t begin = (blockIdx.x - args.first_block) * kQuantizeBlock;
  const std::int64_t count = num_blocks(args);
  const std::int64_t end = begin + kQuantizeBlock < count ? begin + kQuantizeBlock : count;
  quantize_blocks(args, begin + threadIdx.x / kWarp, end, kBlocksOfGroup);
}

// A warp for each tile of several rows, whose number of rows is constant.
__global__ void quantize_tiles_kernel(const __grid_constant__ QuantizeArgs args) {
  const std::int64_t blocks = (args.columns + args.block - 1) / args.block;
  const std::int64_t all = (args.rows.capacity + args.block_rows - 1) / args.block_rows * blocks;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kBlocksOfGroup;
  const std::int64_t lane = threadIdx.x % kWarp;
  for (std::int64_t index =
           static_cast<std::int64_t>(blockIdx.x) * kBlocksOfGroup + threadIdx.x / kWarp;
       index < all; index += stride) {
    const std::int64_t row = index / blocks * args.block_rows;
    const std::int64_t column = index % blocks * args.block;
    const std::int64_t height = min(args.rows.capacity - row, args.block_rows);
    const std::int64_t width = min(args.columns - column, args.block);
    // A tile is small, and quotients of 64 bits are slow.
    const auto place = [&](std::int64_t i) {
      const auto at = static_cast<std::uint32_t>(i), wide = static_cast<std::uint32_t>(width);
      return (row + at / wide) * args.columns + column + at % wide;
    };
    const auto at = [&](std::int64_t i) { return args.x[place(i)]; };
    const ScalePart part = join_parts(args, scale_part(args, at, height * width, lane, kWarp));
    with_rounding(args, scale_from(args, part, index), [&](const auto& round) {
      for (std::int64_t i = lane; i < height * width; i += kWarp)
        args.y[place(i)] = round(args.x[place(i)]);
    });
  }
}

// The parts of a scale of the whole tensor, one for each block of threads.
__global__ void scale_parts_kernel(const __grid_constant__ QuantizeArgs args) {
  __shared__ ScalePart parts[kBlocksOfGroup];
  const std::int64_t count = args.rows.capacity * args.columns;
  const auto at = [&](std::int64_t i) { return args.x[i]; };
  const ScalePart part =
      join_parts(args, scale_part(args, at, count, global_thread(), grid_stride()));
  if (threadIdx.x % kWarp == 0) parts[threadIdx.x / kWarp] = part;
  __syncthreads();
  if (threadIdx.x >= kWarp) return;
  const ScalePart all =
      join_parts(args, threadIdx.x < kBlocksOfGroup ? parts[threadIdx.x] : ScalePart());
  if (threadIdx.x == 0) args.parts[blockIdx.x] = all;
}

// Every warp joins the parts for itself.
__global__ void quantize_whole_kernel(const __grid_constant__ QuantizeArgs args,
                                      std::int32_t num_parts) {
  ScalePart part;
  for (int i = threadIdx.x % kWarp; i < num_parts; i += kWarp) {
    const ScalePart other = args.parts[i];
    part.largest = Largest()(part.largest, other.largest);
    part.most = Most()(part.most, other.most);
    part.low = Least()(part.low, other.low);
    part.high = Most()(part.high, other.high);
  }
  const std::int64_t count = args.rows.capacity * args.columns;
  with_rounding(args, scale_from(args, join_parts(args, part), 0), [&](const auto& round) {
    for (std::int64_t i = global_thread(); i < count; i += grid_stride())
      args.y[i] = round(args.x[i]);
  });
}

// A warp makes dx of a block of values, and the sum that it adds to the gradient of its scale.
__device__ double differentiate_block(const LearnedStepArgs& args, std::int64_t index) {
  const std::int64_t blocks = (args.columns + args.block - 1) / args.block;
  const std::int64_t row = index / blocks, first = (index - row * blocks) * args.block;
  const std::int64_t width = args.columns - first < args.block ? args.columns - first : args.block;
  const std::int64_t at = row * args.columns + first;
  const int lane = threadIdx.x % kWarp;
  if (row >= real_size(args.rows)) {
    for (std::int64_t i = lane; i < width; i += kWarp) args.dx[at + i] = 0;
    return 0;
  }
  if (args.is_gate) {
    for (std::int64_t i = lane; i < width; i += kWarp) {
      const float x = args.x[at + i];
      args.dx[at + i] = x < args.low || x > args.high ? 0.0f : args.dy[at + i];
    }
    return 0;
  }
  const LearnedScale scale = learned_scale(args, args.has_one_scale ? 0 : index);
  double sum = 0;
  float dy[kAtOnce], x[kAtOnce], y[kAtOnce];
  through_line(
      width,
      [&](std::int64_t i, int j) {
        dy[j] = args.dy[at + i];
        x[j] = args.x[at + i];
        y[j] = args.y[at + i];
      },
      [&](std::int64_t i, int j) {
        const LearnedGradient gradient = differentiate(scale, dy[j], x[j], y[j]);
        args.dx[at + i] = gradient.dx;
        sum += gradient.dscale;
      });
  return join_warp(sum, Add()) / scale.scale;
}

__global__ void learned_step_kernel(LearnedStepArgs args) {
  const std::int64_t all = args.rows.capacity * ((args.columns + args.block - 1) / args.block);
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kBlocksOfGroup;
  for (std::int64_t index =
           static_cast<std::int64_t>(blockIdx.x) * kBlocksOfGroup + threadIdx.x / kWarp;
       index < all; index += stride) {
    const double sum = differentiate_block(args, index);
    if (threadIdx.x % kWarp == 0) args.parts[index] = sum;
  }
}

__global__ void learned_steps_kernel(LearnedStepsArgs all) {
  const LearnedStepArgs args = of_this_block(all.tensors, all.count);
  const std::int64_t count = args.rows.capacity * ((args.columns + args.block - 1) / args.block);
  const std::int64_t begin = (blockIdx.x - args.first_block) * kQuantizeBlock;
  const std::int64_t end = begin + kQuantizeBlock < count ? begin + kQuantizeBlock : count;
  for (std::int64_t index = begin + threadIdx.x / kWarp; index < end; index += kBlocksOfGroup) {
    const double sum = differentiate_block(args, index);
    if (threadIdx.x % kWarp == 0 && !args.is_gate)
      args.dscale[index] = static_cast<float>(sum * args.factor);
  }
}

__global__ void scale_gradient_kernel(LearnedStepArgs args, std::int64_t count) {
  for (std::int64_t i = global_thread(); i < count; i += grid_stride())
    args.dscale[i] = static_cast<float>(args.parts[i] * args.factor);
}

__global__ void one_scale_gradient_kernel(LearnedStepArgs args, std::int64_t count) {
  __shared__ double room[kWarp];
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < count; i += blockDim.x) sum += args.parts[i];
  sum = join_block(sum, 0.0, room, Add());
  if (threadIdx.x == 0) *args.dscale = static_cast<float>(sum * args.factor);
}

}  // namespace

void quantize(const QuantizeArgs& args, Stream* stream) {
  if (args.rows.capacity == 0 || args.columns == 0) return;
  const std::int64_t blocks = args.rows.capacity * ((args.columns + args.block - 1) / args.block);
  const cudaStream_t on = stream_of(stream);
  if (args.block_rows == 0) {
    const std::int64_t count = args.rows.capacity * args.columns;
    const unsigned num_parts = blocks_for(count, kThreads * 8, kScaleParts);
    scale_parts_kernel<<<num_parts, kThreads, 0, on>>>(args);
    quantize_whole_kernel<<<blocks_for(count, kThreads * 4, 1024), kThreads, 0, on>>>(
        args, static_cast<std::int32_t>(num_parts));
  } else if (args.block_rows > 1) {
    quantize_tiles_kernel<<<blocks_for(blocks, kBlocksOfGroup), kThreads, 0, on>>>(args);
  } else {
    quantize_kernel<<<blocks_for(blocks, kBlocksOfGroup), kThreads, 0, on>>>(args);
  }
}

void quantize_all(const QuantizeAllArgs& args, Stream* stream) {
  if (args.num_blocks == 0) return;
  quantize_all_kernel<<<static_cast<unsigned>(args.num_blocks), kThreads, 0, stream_of(stream)>>>(
      args);
}

void learned_steps(const LearnedStepsArgs& args, Stream* stream) {
  if (args.num_blocks == 0) return;
  learned_steps_kernel<<<static_cast<unsigned>(args.num_blocks), kThreads, 0, stream_of(stream)>>>(
      args);
}

void learned_step(const LearnedStepArgs& args, Stream* stream) {
  if (args.columns == 0) return;
  const std::int64_t blocks = args.rows.capacity * ((args.columns + args.block - 1) / args.block);
  const cudaStream_t on = stream_of(stream);
  if (blocks != 0)
    learned_step_kernel<<<blocks_for(blocks, kBlocksOfGroup), kThreads, 0, on>>>(args);
  if (args.has_one_scale)
    one_scale_gradient_kernel<<<1, 1024, 0, on>>>(args, blocks);
  else if (blocks != 0)
    scale_gradient_kernel<<<blocks_for(blocks, kThreads), kThreads, 0, on>>>(args, blocks);
}

}  // namespace lathe::engine::cuda
