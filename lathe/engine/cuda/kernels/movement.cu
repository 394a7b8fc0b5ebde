// Whole rows moved between packed batches, tables and rows of zeros, and the small integers that
// packed batches are described by.

#include "lathe/engine/cuda/kernels/kernels.cuh"
#include "lathe/engine/cuda/kernels/launch.cuh"

namespace lathe::engine::cuda {
namespace {

// Rows are moved in words of 4 bytes where they are that long, else byte by byte.
template <typename Word>
__global__ void gather_kernel(GatherRowsArgs args) {
  const std::int64_t words = args.bytes / static_cast<std::int64_t>(sizeof(Word));
  const std::int64_t real = real_size(args.rows) * words, all = args.rows.capacity * words;
  const auto* const x = static_cast<const Word*>(args.x);
  for (std::int64_t i = global_thread(); i < all; i += grid_stride()) {
    Word value{};
    if (i < real) {
      const std::int64_t row = i / words, from = integer_at(args.indices, row);
      if (from < 0 || from >= args.x_rows)
        report(args.fault);
      else
        value = x[from * words + (i - row * words)];
    }
    static_cast<Word*>(args.y)[i] = value;
  }
}

// Forward, a row of y for each sequence; backward, y is zero before and gets a row of x for each.
template <typename Word>
__global__ void select_kernel(SelectArgs args) {
  const std::int64_t words = args.bytes / static_cast<std::int64_t>(sizeof(Word));
  const std::int64_t tokens = real_size(args.tokens), sequences = real_size(args.sequences);
  const std::int64_t all = args.sequences.capacity * words;
  const auto* const x = static_cast<const Word*>(args.x);
  auto* const y = static_cast<Word*>(args.y);
  for (std::int64_t i = global_thread(); i < all; i += grid_stride()) {
    const std::int64_t sequence = i / words, word = i - sequence * words;
    if (sequence >= sequences) {
      if (!args.is_gradient) y[i] = Word{};
      continue;
    }
    const std::int64_t begin = integer_at(args.offsets, sequence);
    const std::int64_t end = integer_at(args.offsets, sequence + 1);
    const std::int64_t token = (args.index < 0 ? end : begin) + args.index;
    if (token < 0 || token < begin || token >= end || token >= tokens) {
      report(args.fault);
      if (!args.is_gradient) y[i] = Word{};
      continue;
    }
    if (args.is_gradient)
      y[token * words + word] = x[i];
    else
      y[i] = x[token * words + word];
  }
}

template <typename Word>
__global__ void last_token_kernel(LastTokenArgs args) {
  const std::int64_t words = args.bytes / static_cast<std::int64_t>(sizeof(Word));
  const std::int64_t real = real_size(args.rows);
  const auto* const x = static_cast<const Word*>(args.x);
  auto* const y = static_cast<Word*>(args.y);
  for (std::int64_t row = blockIdx.x; row < args.rows.capacity; row += gridDim.x) {
    if (row >= real) {
      if (!args.is_gradient)
        for (std::int64_t i = threadIdx.x; i < words; i += blockDim.x) y[row * words + i] = Word{};
      continue;
    }
    std::int64_t last = args.length - 1;
    while (last > 0 && integer_at(args.mask, row * args.length + last) == 0) --last;
    const std::int64_t token = row * args.length + last;
    for (std::int64_t i = threadIdx.x; i < words; i += blockDim.x) {
      if (args.is_gradient)
        y[token * words + i] = x[row * words + i];
      else
        y[row * words + i] = x[token * words + i];
    }
  }
}

// The last sequence that does not begin after the token; empty ones come before it.
__device__ std::int64_t sequence_of(const IndexOperation& operation, std::int64_t sequences,
                                    std::int64_t token) {
  std::int64_t low = 0, high = sequences - 1;
  while (low < high) {
    const std::int64_t middle = (low + high + 1) / 2;
    if (integer_at(operation.offsets, middle) <= token)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

__device__ void check_offsets(const IndexOperation& operation, std::int64_t tokens,
                              std::int64_t sequences) {
  for (std::int64_t s = global_thread(); s < sequences; s += grid_stride()) {
    const std::int64_t begin = integer_at(operation.offsets, s);
    const std::int64_t end = integer_at(operation.offsets, s + 1);
    if (begin < 0 || end < begin || end > tokens || (s == 0 && begin != 0) ||
        (s == sequences - 1 && end != tokens))
      report(operation.fault);
  }
}

__device__ std::int64_t selected(const IndexOperation& operation, std::int64_t tokens,
                                 std::int64_t sequence) {
  const std::int64_t begin = integer_at(operation.offsets, sequence);
  const std::int64_t end = integer_at(operation.offsets, sequence + 1);
  const std::int64_t token = (operation.index < 0 ? end : begin) + operation.index;
  if (token >= 0 && token >= begin && token < end && token < tokens)
    return integer_at(operation.values, token);
  report(operation.fault);
  return 0;
}

__global__ void indices_kernel(const __grid_constant__ IndexArgs args) {
  using Kind = IndexOperation::Kind;
  const IndexOperation& operation = args.operations[blockIdx.y];
  const std::int64_t tokens = real_size(operation.tokens);
  const std::int64_t sequences = real_size(operation.sequences);
  if (operation.kind != Kind::Fill && operation.kind != Kind::Select)
    check_offsets(operation, tokens, sequences);
  const bool is_by_sequence = operation.kind == Kind::Select;
  const std::int64_t real = is_by_sequence ? sequences : tokens;
  const std::int64_t all =
      is_by_sequence ? operation.sequences.capacity : operation.tokens.capacity;
  for (std::int64_t i = global_thread(); i < all; i += grid_stride()) {
    if (operation.kind == Kind::Fill) {
      static_cast<std::uint32_t*>(operation.y)[i] = i < real ? operation.pattern : 0u;
      continue;
    }
    std::int64_t whole = 0;
    float share = 0;
    if (i < real && is_by_sequence) {
      whole = selected(operation, tokens, i);
    } else if (i < real && sequences > 0) {
      const std::int64_t sequence = sequence_of(operation, sequences, i);
      const std::int64_t begin = integer_at(operation.offsets, sequence);
      if (operation.kind == Kind::Position) whole = i - begin + operation.index;
      if (operation.kind == Kind::Example) whole = integer_at(operation.values, sequence);
      if (operation.kind == Kind::Share)
        share = static_cast<float>(
            1.0 / static_cast<double>(integer_at(operation.offsets, sequence + 1) - begin));
    }
    if (operation.kind == Kind::Share)
      static_cast<float*>(operation.y)[i] = share;
    else if (operation.is_wide)
      static_cast<std::int64_t*>(operation.y)[i] = whole;
    else
      static_cast<std::int32_t*>(operation.y)[i] = static_cast<std::int32_t>(whole);
  }
}

__global__ void positions_kernel(PositionsArgs args) {
  const std::int64_t real = real_size(args.count);
  for (std::int64_t i = global_thread(); i < args.count.capacity; i += grid_stride()) {
    const std::int64_t position = i < real ? i % args.length + args.first : 0;
    if (args.is_wide)
      static_cast<std::int64_t*>(args.y)[i] = position;
    else
      static_cast<std::int32_t*>(args.y)[i] = static_cast<std::int32_t>(position);
  }
}

}  // namespace

void gather_rows(const GatherRowsArgs& args, Stream* stream) {
  const std::int64_t bytes = args.rows.capacity * args.bytes;
  if (bytes == 0) return;
  if (args.bytes % 4 == 0)
    gather_kernel<std::uint32_t>
        <<<blocks_for(bytes / 4, kThreads), kThreads, 0, stream_of(stream)>>>(args);
  else
    gather_kernel<std::uint8_t>
        <<<blocks_for(bytes, kThreads), kThreads, 0, stream_of(stream)>>>(args);
}

void select(const SelectArgs& args, Stream* stream) {
  if (args.is_gradient)
    cudaMemsetAsync(args.y, 0, static_cast<std::size_t>(args.tokens.capacity * args.bytes),
                    stream_of(stream));
  const std::int64_t bytes = args.sequences.capacity * args.bytes;
  if (bytes == 0) return;
  if (args.bytes % 4 == 0)
    select_kernel<std::uint32_t>
        <<<blocks_for(bytes / 4, kThreads), kThreads, 0, stream_of(stream)>>>(args);
  else
    select_kernel<std::uint8_t>
        <<<blocks_for(bytes, kThreads), kThreads, 0, stream_of(stream)>>>(args);
}

void last_token(const LastTokenArgs& args, Stream* stream) {
  const std::int64_t tokens = args.rows.capacity * args.length;
  if (args.is_gradient && tokens * args.bytes > 0)
    cudaMemsetAsync(args.y, 0, static_cast<std::size_t>(tokens * args.bytes), stream_of(stream));
  if (tokens * args.bytes == 0) return;
  const unsigned blocks = blocks_for(args.rows.capacity, 1, 1 << 16);
  if (args.bytes % 4 == 0)
    last_token_kernel<std::uint32_t><<<blocks, 128, 0, stream_of(stream)>>>(args);
  else
    last_token_kernel<std::uint8_t><<<blocks, 128, 0, stream_of(stream)>>>(args);
}

void indices(const IndexArgs& args, Stream* stream) {
  std::int64_t most = 0;
  for (int i = 0; i < args.count; ++i) {
    const IndexOperation& operation = args.operations[i];
    for (const std::int64_t size : {operation.tokens.capacity, operation.sequences.capacity})
      if (size > most) most = size;
  }
  if (most == 0) return;
  const dim3 grid(blocks_for(most, kThreads), static_cast<unsigned>(args.count));
  indices_kernel<<<grid, kThreads, 0, stream_of(stream)>>>(args);
}

void positions(const PositionsArgs& args, Stream* stream) {
  if (args.count.capacity == 0 || args.length == 0) return;
  positions_kernel<<<blocks_for(args.count.capacity, kThreads), kThreads, 0, stream_of(stream)>>>(
      args);
}

}  // namespace lathe::engine::cuda
