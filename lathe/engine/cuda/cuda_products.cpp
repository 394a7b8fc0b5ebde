#include "lathe/engine/cuda/cuda_products.h"

#include <algorithm>

#include "lathe/engine/cuda/cuda_library.h"

namespace lathe::engine {
namespace {

// By cuBLASLt, which counts columns first: a row-major [m, n] is its [n, m]. It rounds results to
// bfloat16 by itself where it adds nothing to them; else sums are float, and what follows is done
// by a launch of our own.
void multiply_by_library(const CudaCall& call, const CudaProducts::Entry& entry) {
  const cuda::Product& product = entry.product;
  const std::int64_t m = product.m.capacity, n = product.n, k = product.k.capacity;
  const bool is_bf16 = call.precision == cuda::Precision::Bf16 && product.is_rounded;
  const bool has_follower = product.map != cuda::Map::Identity || product.residual != nullptr;
  float* const y = has_follower ? product.y : product.c;
  std::uint16_t* const y_half = has_follower ? product.y_half : product.c_half;
  const bool is_half =
      is_bf16 && y_half != nullptr && !has_follower && product.bias == nullptr && k > 0;
  const bool is_followed = !is_half && (has_follower || (is_bf16 && !entry.is_rounded_later) ||
                                        (product.bias != nullptr && !entry.may_leave_bias));
  float* const sums = y != nullptr ? y : entry.sums;
  if (k == 0)
    check_cuda(call.kernels.device.fill(sums, 0, m * n * 4, call.stream));
  else
    check_cuda(call.kernels.gemm(call.gemm,
                                 {.transpose_a = !product.b_by_k,
                                  .transpose_b = product.a_by_k,
                                  .m = n,
                                  .n = m,
                                  .k = k,
                                  .a = product.b,
                                  .b = product.a,
                                  .c = is_half ? static_cast<void*>(y_half) : sums,
                                  .c_as = is_half ? cuda::Number::BF16 : cuda::Number::F32,
                                  .lda = product.b_by_k ? n : k,
                                  .ldb = product.a_by_k ? m : k,
                                  .ldc = n,
                                  .bias = is_followed ? nullptr : product.bias,
                                  .precision = call.precision},
                                 call.stream));
  if (is_half && y != nullptr)
    call.kernels.cast({.from = cuda::Number::BF16,
                       .to = cuda::Number::F32,
                       .x = y_half,
                       .y = y,
                       .count = {.capacity = m * n}},
                      call.stream);
  if (is_followed || (k == 0 && product.bias != nullptr))
    call.kernels.epilogue({.x = sums,
                           .y = y,
                           .y_half = y_half,
                           .bias = product.bias,
                           .residual = product.residual,
                           .map = product.map,
                           .n = n,
                           .rows = product.m,
                           .is_rounded = is_bf16},
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
    args.products[args.count] = one;
    args.first_blocks[args.count++] = args.num_blocks;
    args.num_blocks += static_cast<std::int32_t>(cuda::product_blocks(one));
  }
  flush();
}

}  // namespace lathe::engine
