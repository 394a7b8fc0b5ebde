// Dropout of rows with the bits that ops/dropout_mask.h defines, and rotary positions.

#include "lathe/engine/cuda/kernels/dropout.cuh"
#include "lathe/engine/cuda/kernels/kernels.cuh"

namespace lathe::engine::cuda {
namespace {

constexpr int kBlock = 8;  // features that one block of random bits decides

__global__ void dropout_kernel(DropoutArgs args) {
  const std::int64_t blocks = (args.n + kBlock - 1) / kBlock;
  const std::int64_t real = real_size(args.rows), all = args.rows.capacity * blocks;
  const ops::DropoutStream stream = stream_of(args.random, args.site);
  for (std::int64_t i = global_thread(); i < all; i += grid_stride()) {
    const std::int64_t row = i / blocks, block = i - row * blocks;
    const std::int64_t first = block * kBlock;
    const int width = static_cast<int>(args.n - first < kBlock ? args.n - first : kBlock);
    const float* const x = args.x + row * args.n + first;
    float* const y = args.y + row * args.n + first;
    if (row >= real) {
      for (int c = 0; c < width; ++c) y[c] = 0;
      continue;
    }
    const PhiloxCounter bits =
        ops::row_dropout_block(stream, static_cast<std::uint32_t>(integer_at(args.examples, row)),
                               static_cast<std::uint32_t>(integer_at(args.positions, row)),
                               static_cast<std::uint32_t>(block));
    // A product, not a choice: what is not a number stays that where it is dropped too.
    for (int c = 0; c < width; ++c)
      y[c] = x[c] * (ops::dropout_bits(bits, static_cast<std::uint32_t>(c)) < args.threshold
                         ? 0.0f
                         : args.scale);
  }
}

// Angles reach thousands of radians, where a float keeps no fraction worth having.
__global__ void rope_kernel(RopeArgs args) {
  const std::int64_t real = real_size(args.rows), pairs = args.heads * args.half;
  const std::int64_t all = args.rows.capacity * pairs;
  for (std::int64_t index = global_thread(); index < all; index += grid_stride()) {
    const std::int64_t row = index / pairs, pair = index - row * pairs;
    const std::int64_t head = pair / args.half, i = pair - head * args.half;
    const std::int64_t first = row * 2 * pairs + head * 2 * args.half;
    const std::int64_t a_place = first + (args.is_interleaved ? 2 * i : i);
    const std::int64_t b_place = first + (args.is_interleaved ? 2 * i + 1 : i + args.half);
    if (row >= real) {
      args.y[a_place] = args.y[b_place] = 0;
      continue;
    }
    const double frequency = args.scaling.apply(
        pow(args.theta, -2.0 * static_cast<double>(i) / static_cast<double>(2 * args.half)));
    double sine = 0, cosine = 0;
    sincos(args.direction * static_cast<double>(integer_at(args.positions, row)) * frequency, &sine,
           &cosine);
    const double a = args.x[a_place], b = args.x[b_place];
    args.y[a_place] = static_cast<float>(a * cosine - b * sine);
    args.y[b_place] = static_cast<float>(a * sine + b * cosine);
  }
}

}  // namespace

void dropout(const DropoutArgs& args, Stream* stream) {
  const std::int64_t blocks = args.rows.capacity * ((args.n + kBlock - 1) / kBlock);
  if (blocks == 0) return;
  dropout_kernel<<<blocks_for(blocks, kThreads), kThreads, 0, stream_of(stream)>>>(args);
}

void rope(const RopeArgs& args, Stream* stream) {
  const std::int64_t pairs = args.rows.capacity * args.heads * args.half;
  if (pairs == 0) return;
  rope_kernel<<<blocks_for(pairs, kThreads), kThreads, 0, stream_of(stream)>>>(args);
}

}  // namespace lathe::engine::cuda
