#pragma once

#include <optional>

#include "lathe/engine/cuda/arguments/row_products.h"
#include "lathe/engine/cuda/kernel_table.h"

namespace lathe::engine {

/// x . weight^T with a packed weight, however many rows x has. Few are multiplied with the codes
/// themselves; for many the weight is decoded into scratch, and cuBLASLt multiplies.
///
/// The precision is that of the activations and of the result: codes and scales enter the products
/// of few rows as they are, and a decoded weight as `--precision` has it.
struct CudaPackedLinear {
  std::optional<cuda::PackedCode> code;  ///< none: the weight is always decoded
  bool encodes = false;                  ///< activations become MXINT8: any number of rows
  std::int64_t n = 0, k = 0;

  /// Room for any precision and for any rows up to `capacity`.
  std::int64_t scratch_bytes(std::int64_t capacity) const;
  /// The same of a single row; nullopt where there are more or the codes are no whole numbers.
  std::optional<cuda::RowProductsArgs> row_product(const cuda::PackedLinearArgs& args) const;
  /// `args` has the operands, the rows and the precision; the rest is filled in here.
  void launch(const cuda::KernelTable& kernels, cuda::Gemm* gemm, cuda::PackedLinearArgs args,
              cuda::Stream* stream) const;

 private:
  bool reads_codes(std::int64_t capacity) const;
  void decode_and_multiply(const cuda::KernelTable& kernels, cuda::Gemm* gemm,
                           const cuda::PackedLinearArgs& args, cuda::Stream* stream) const;
};

}  // namespace lathe::engine
