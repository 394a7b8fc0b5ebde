#include "lathe/engine/cuda/cuda_products.h"

#include <algorithm>

#include "lathe/engine/cuda/cuda_library.h"

namespace lathe::engine {
namespace {

// By cuBLASLt, which counts columns first: a row-major [m, n] is its [n, m].
void multiply_by_library(const CudaCall& call, const CudaProducts::Entry& entry) {
  const cuda::Product& product = entry.product;
  const std::int64_t m = product.m.capacity, n = product.n, k = product.k.capacity;
  float* const c = product.c != nullptr ? product.c : product.y;
  // Nobody but products and row programs may round a result by himself.
  const bool is_bf16 = call.precision == cuda::Precision::Bf16;
  const bool a_is_copied = is_bf16 && product.a_as == cuda::Number::F32;
  const bool b_is_copied = is_bf16 && product.b_as == cuda::Number::F32;
  const bool rounds = is_bf16 && product.is_rounded && !entry.is_rounded_later;
  const bool is_followed = rounds || product.map != cuda::Map::Identity ||
                           product.residual != nullptr ||
                           (product.bias != nullptr && !entry.may_leave_bias);
  if (k == 0) {
    check_cuda(call.kernels.device.fill(c, 0, m * n * 4, call.stream));
  } else {
    check_cuda(call.kernels.gemm(call.gemm,
                                 {.transpose_a = !product.b_by_k,
                                  .transpose_b = product.a_by_k,
                                  .m = n,
                                  .n = m,
                                  .k = k,
                                  .a = b_is_copied ? entry.b_half : product.b,
                                  .b = a_is_copied ? entry.a_half : product.a,
                                  .c = c,
                                  .lda = product.b_by_k ? n : k,
                                  .ldb = product.a_by_k ? m : k,
                                  .ldc = n,
                                  .bias = is_followed ? nullptr : product.bias,
                                  .precision = call.precision},
                                 call.stream));
    if (!is_followed) return;
  }
  if (!is_followed && product.bias == nullptr) return;
  call.kernels.epilogue({.y = c,
                         .bias = product.bias,
                         .residual = product.residual,
                         .map = product.map,
                         .n = n,
                         .rows = product.m,
                         .is_rounded = is_bf16 && product.is_rounded},
                        call.stream);
}

bool is_for_library(const CudaProducts::Entry& entry) {
  const cuda::Product& product = entry.product;
  const std::int64_t rows = product.a_by_k ? product.k.capacity : product.m.capacity;
  return entry.is_large && rows > cuda::kFewRows;
}

}  // namespace

CudaProducts::Entry& CudaProducts::maker_of(int slot) {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.c == slot; });
  check(found != entries_.end(), "a product that makes what its follower reads");
  return *found;
}

CudaProducts::Entry& CudaProducts::reader_of(int slot) {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.a == slot && entry.product.a_by_k;
  });
  check(found != entries_.end(), "a product that reads what is summed beside it");
  return *found;
}

void CudaProducts::launch(const CudaCall& call) const {
  std::vector<cuda::Product> own;
  for (const Entry& entry : entries_) {
    if (is_for_library(entry))
      multiply_by_library(call, entry);
    else
      own.push_back(entry.product);
  }
  // Blocks start in order: the longest first, so that none of them is left for the end.
  const auto depth = [](const cuda::Product& product) {
    return product.k.capacity / product.parts;
  };
  std::stable_sort(own.begin(), own.end(),
                   [&](const cuda::Product& one, const cuda::Product& other) {
                     return depth(one) > depth(other);
                   });
  cuda::ProductArgs args;
  args.precision = call.precision;
  const auto flush = [&] {
    call.kernels.products(args, call.stream);
    args.count = 0;
    args.num_blocks = 0;
  };
  for (const cuda::Product& one : own) {
    if (args.count == cuda::kMostProducts) flush();
    cuda::Product& product = args.products[args.count++];
    product = one;
    product.first_block = args.num_blocks;
    args.num_blocks += cuda::product_blocks(product);
  }
  flush();
}

}  // namespace lathe::engine
