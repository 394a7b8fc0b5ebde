#include "lathe/engine/cuda/cuda_products.h"

#include <algorithm>
#include <span>

#include "lathe/engine/cuda/cuda_library.h"

namespace lathe::engine {
namespace {

using Entries = std::span<const CudaProducts::Entry>;

bool has_follower(const cuda::Product& product) {
  return product.map != cuda::Map::Identity;
}

// Where the library leaves a rounded result: where it is read, or where its follower reads it.
void* room_for_halves(const CudaProducts::Entry& entry) {
  if (entry.product.c_half != nullptr) return entry.product.c_half;
  return has_follower(entry.product) ? entry.sums : nullptr;
}

std::int64_t bytes_between(const void* from, const void* to) {
  return reinterpret_cast<std::intptr_t>(to) - reinterpret_cast<std::intptr_t>(from);
}

// Bytes from each entry's operand or result to the next one's: all are as far from each other.
std::int64_t bytes_between(Entries entries, const void* (*field)(const cuda::Product&)) {
  if (entries.size() == 1) return 0;
  return bytes_between(field(entries[0].product), field(entries[1].product));
}
const void* a_of(const cuda::Product& product) {
  return product.a;
}
const void* b_of(const cuda::Product& product) {
  return product.b;
}
const void* c_of(const cuda::Product& product) {
  return product.c != nullptr ? static_cast<const void*>(product.c) : product.c_half;
}
const void* bias_of(const cuda::Product& product) {
  return product.bias;
}

// TF32 has no way across the rows of a tile, so the library's fast kernels want k beside each other
// in both operands, and are nearly as fast with one. Where neither is so, as in sums over rows, the
// narrower one is turned around, or the one that all entries share.
void turn_operand(const CudaCall& call, Entries entries, cuda::GemmArgs& args) {
  const CudaProducts::Entry& entry = entries.front();
  const cuda::Product& product = entry.product;
  if (call.precision != cuda::Precision::Tf32 || !product.a_by_k || !product.b_by_k ||
      entry.turned == nullptr)
    return;
  const bool is_one = entries.size() == 1;
  const std::int64_t m = product.m.capacity, n = product.n, k = product.k.capacity;
  const bool can_turn_a = m <= n && (is_one || args.stride_b == 0);
  const bool can_turn_b = n <= m && (is_one || args.stride_a == 0);
  if (!can_turn_a && !can_turn_b) return;
  call.kernels.transpose({.x = static_cast<const float*>(can_turn_b ? product.b : product.a),
                          .y = entry.turned,
                          .rows = k,
                          .columns = can_turn_b ? n : m},
                         call.stream);
  if (can_turn_b) {  // the library's first operand
    args.a = entry.turned;
    args.transpose_a = true;
    args.lda = k;
  } else {
    args.b = entry.turned;
    args.transpose_b = false;
    args.ldb = k;
  }
}

// By cuBLASLt, which counts columns first: a row-major [m, n] is its [n, m]. With Bf16 it adds the
// bias and rounds by itself where there is room for bfloat16; what else follows is done by a launch
// of our own. Several entries are the batches of one call.
void multiply_by_library(const CudaCall& call, Entries entries) {
  const CudaProducts::Entry& entry = entries.front();
  const cuda::Product& product = entry.product;
  const std::int64_t m = product.m.capacity, n = product.n, k = product.k.capacity;
  const bool is_bf16 = call.precision == cuda::Precision::Bf16 && product.is_rounded;
  const bool is_mapped = has_follower(product);
  float* const y = is_mapped ? product.y : product.c;
  std::uint16_t* const y_half = is_mapped ? product.y_half : product.c_half;
  void* const half = room_for_halves(entry);
  const bool is_half = is_bf16 && half != nullptr;
  const bool is_followed =
      is_mapped || (is_bf16 && !is_half) || (product.bias != nullptr && !entry.may_leave_bias);
  const bool adds_bias = is_half || !is_followed;  // the library
  void* const sums = is_half ? half : y != nullptr ? y : entry.sums;
  const cuda::Number sums_as = is_half ? cuda::Number::BF16 : cuda::Number::F32;
  cuda::GemmArgs args{.transpose_a = !product.b_by_k,
                      .transpose_b = product.a_by_k,
                      .m = n,
                      .n = m,
                      .k = k,
                      .a = product.b,
                      .b = product.a,
                      .c = sums,
                      .c_as = sums_as,
                      .lda = product.b_by_k ? n : k,
                      .ldb = product.a_by_k ? m : k,
                      .ldc = n,
                      .bias = adds_bias ? product.bias : nullptr,
                      .precision = call.precision};
  const std::int64_t operand_bytes = product.a_as == cuda::Number::BF16 ? 2 : 4;
  const std::int64_t result_bytes = is_half ? 2 : 4;
  args.batches = static_cast<std::int64_t>(entries.size());
  args.stride_a = bytes_between(entries, b_of) / operand_bytes;
  args.stride_b = bytes_between(entries, a_of) / operand_bytes;
  args.stride_c = bytes_between(entries, c_of) / result_bytes;
  args.stride_bias = bytes_between(entries, bias_of) / result_bytes;
  turn_operand(call, entries, args);
  check_cuda(call.kernels.gemm(call.gemm, args, call.stream));
  if (is_followed)
    call.kernels.epilogue({.x = sums,
                           .x_as = sums_as,
                           .y = y,
                           .y_half = y_half,
                           .bias = adds_bias ? nullptr : product.bias,
                           .bias_as = product.bias_as,
                           .map = product.map,
                           .n = n,
                           .rows = product.m,
                           .is_rounded = is_bf16},
                          call.stream);
  else if (is_half && y != nullptr)
    call.kernels.cast({.from = cuda::Number::BF16,
                       .to = cuda::Number::F32,
                       .x = y_half,
                       .y = y,
                       .count = {.capacity = m * n}},
                      call.stream);
}

// Whether the library is the faster one even for a small weight, as measured: its products of
// bfloat16 are, and what follows them is worth a launch of its own where there is much of it.
bool suits_library(cuda::Precision precision, const CudaProducts::Entry& entry) {
  const cuda::Product& product = entry.product;
  constexpr std::int64_t kPlain = std::int64_t{1} << 14, kFollowed = std::int64_t{1} << 18;
  const bool are_halves = product.a_as == cuda::Number::BF16 &&
                          product.b_as == cuda::Number::BF16 &&
                          (product.bias == nullptr || product.bias_as == cuda::Number::BF16);
  const bool is_plain = !has_follower(product);
  const std::int64_t results = product.m.capacity * product.n;
  return precision == cuda::Precision::Bf16 && product.is_rounded && are_halves &&
         product.before == nullptr && product.n % 8 == 0 && product.k.capacity % 8 == 0 &&
         room_for_halves(entry) != nullptr && (is_plain || product.c == nullptr) &&
         results >= (is_plain ? kPlain : kFollowed);
}

bool is_for_library(cuda::Precision precision, const CudaProducts::Entry& entry) {
  const cuda::Product& product = entry.product;
  const std::int64_t rows = product.a_by_k ? product.k.capacity : product.m.capacity;
  return rows > cuda::kFewRows && (entry.is_large || suits_library(precision, entry));
}

// Whether nothing is to be done after the library, so that a product may be a batch.
bool is_all(cuda::Precision precision, const CudaProducts::Entry& entry) {
  const cuda::Product& product = entry.product;
  const bool is_rounded = precision == cuda::Precision::Bf16 && product.is_rounded;
  return !has_follower(product) && product.before == nullptr && product.sums == nullptr &&
         (product.c == nullptr) != (product.c_half == nullptr) &&
         (product.c_half != nullptr || !is_rounded) &&
         (product.bias == nullptr || entry.may_leave_bias);
}

// Whether a product can be one more batch: of the same sizes, with operands, biases and results as
// far from the last one's as those are from each other.
bool continues(cuda::Precision precision, Entries entries, const CudaProducts::Entry& next) {
  const cuda::Product& first = entries.front().product;
  const cuda::Product& product = next.product;
  const bool is_alike = product.a_by_k == first.a_by_k && product.b_by_k == first.b_by_k &&
                        product.a_as == first.a_as && product.b_as == first.b_as &&
                        product.m.capacity == first.m.capacity && product.n == first.n &&
                        product.k.capacity == first.k.capacity &&
                        product.is_rounded == first.is_rounded &&
                        (product.c == nullptr) == (first.c == nullptr) &&
                        (product.bias == nullptr) == (first.bias == nullptr);
  if (!is_alike || !is_all(precision, entries.front()) || !is_all(precision, next)) return false;
  const auto is_next = [&](const void* (*field)(const cuda::Product&), std::int64_t least) {
    const std::int64_t step = bytes_between(field(entries.back().product), field(product));
    return step >= least && (entries.size() == 1 || step == bytes_between(entries, field));
  };
  return is_next(a_of, 0) && is_next(b_of, 0) && is_next(c_of, 1) && is_next(bias_of, 0);
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

std::optional<std::vector<cuda::Product>> CudaProducts::all_own(cuda::Precision precision) const {
  std::vector<cuda::Product> own;
  for (const Entry& entry : entries_) {
    if (is_for_library(precision, entry)) return std::nullopt;
    own.push_back(entry.product);
  }
  return own;
}

void CudaProducts::launch(const CudaCall& call) const {
  std::vector<cuda::Product> own;
  std::vector<Entry> large;
  for (const Entry& entry : entries_)
    if (is_for_library(call.precision, entry))
      large.push_back(entry);
    else
      own.push_back(entry.product);
  std::stable_sort(large.begin(), large.end(), [](const Entry& one, const Entry& other) {
    return std::pair(one.product.a, one.product.b) < std::pair(other.product.a, other.product.b);
  });
  std::vector<std::vector<Entry>> batches;
  for (const Entry& entry : large) {
    const auto found = std::find_if(
        batches.begin(), batches.end(),
        [&](const std::vector<Entry>& batch) { return continues(call.precision, batch, entry); });
    if (found == batches.end())
      batches.push_back({entry});
    else
      found->push_back(entry);
  }
  for (const std::vector<Entry>& batch : batches) multiply_by_library(call, batch);
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
