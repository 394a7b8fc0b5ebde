#include "lathe/engine/cuda/cuda_packed_linear.h"

#include <algorithm>

#include "lathe/engine/cuda/cuda_library.h"

namespace lathe::engine {

bool CudaPackedLinear::reads_codes(std::int64_t capacity) const {
  return code && (encodes || capacity <= cuda::kMostPackedRows);
}

std::int64_t CudaPackedLinear::scratch_bytes(std::int64_t capacity) const {
  // A batch may be smaller than the largest: room for both ways.
  std::int64_t few = code ? capacity : 0;
  if (!encodes) few = std::min(few, cuda::kMostPackedRows);
  cuda::PackedLinearArgs args;
  args.k = k;
  args.encodes = encodes;
  args.rows.capacity = few;
  const std::int64_t decoded = reads_codes(capacity) ? 0 : n * k * 4 + capacity * k * 2;
  return std::max(cuda::packed_linear_scratch(args), decoded);
}

std::optional<cuda::RowProductsArgs> CudaPackedLinear::row_product(
    const cuda::PackedLinearArgs& args) const {
  const cuda::PackedScales scales = cuda::scales_of(args.weight);
  const bool is_whole = code == cuda::PackedCode::Int8 || code == cuda::PackedCode::Int4;
  if (args.rows.capacity != 1 || !is_whole || encodes || scales.from == nullptr || scales.is_one ||
      scales.to_power_of_two)
    return std::nullopt;
  cuda::RowProductsArgs result;
  result.input.sources[0] = args.x;
  result.code = code == cuda::PackedCode::Int8 ? cuda::RowCode::Int8 : cuda::RowCode::Int4;
  result.are_exponents = scales.are_exponents;
  result.group_bits = scales.group_bits;
  result.step = scales.step;
  result.count = 1;
  result.products[0] = {.weight = args.weight.codes,
                        .row_bytes = args.weight.row_bytes,
                        .scales = scales.from,
                        .scales_of_row = scales.of_output,
                        .bias = args.bias,
                        .residual = args.residual,
                        .map = args.map,
                        .n = n,
                        .y = args.y};
  result.k = k;
  result.precision = args.precision;
  result.may_begin_early = args.may_begin_early;
  result.rows = args.rows;
  return result;
}

void CudaPackedLinear::launch(const cuda::KernelTable& kernels, cuda::Gemm* gemm,
                              cuda::PackedLinearArgs args, cuda::Stream* stream) const {
  args.n = n;
  args.k = k;
  args.encodes = encodes;
  if (!reads_codes(args.rows.capacity)) return decode_and_multiply(kernels, gemm, args, stream);
  args.code = *code;
  const std::optional<cuda::RowProductsArgs> row = row_product(args);
  if (row && kernels.row_products(*row, stream)) return;
  kernels.packed_linear(args, stream);
}

void CudaPackedLinear::decode_and_multiply(const cuda::KernelTable& kernels, cuda::Gemm* gemm,
                                           const cuda::PackedLinearArgs& args,
                                           cuda::Stream* stream) const {
  const bool is_bf16 = args.precision == cuda::Precision::Bf16;
  const std::int64_t rows = args.rows.capacity;
  cuda::DecodeArgs decode;
  decode.packed = args.weight;
  decode.to = is_bf16 ? cuda::Number::BF16 : cuda::Number::F32;
  decode.y = args.scratch;
  decode.rows.capacity = n;
  kernels.decode(decode, stream);
  const void* x = args.x;
  if (is_bf16) {
    std::byte* const halves = args.scratch + n * k * 2;
    kernels.cast({.from = cuda::Number::F32,
                  .to = cuda::Number::BF16,
                  .x = args.x,
                  .y = halves,
                  .count = {.capacity = rows * k}},
                 stream);
    x = halves;
  }
  check_cuda(kernels.gemm(gemm,
                          {.transpose_a = true,
                           .m = n,
                           .n = rows,
                           .k = k,
                           .a = args.scratch,
                           .b = x,
                           .c = args.y,
                           .lda = k,
                           .ldb = k,
                           .ldc = n,
                           .precision = args.precision},
                          stream));
  kernels.epilogue({.x = args.y,
                    .y = args.y,
                    .bias = args.bias,
                    .residual = args.residual,
                    .map = args.map,
                    .n = n,
                    .rows = args.rows,
                    .is_rounded = is_bf16},
                   stream);
}

}  // namespace lathe::engine
