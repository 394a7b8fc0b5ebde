#include <cmath>

#include "lathe/engine/cuda/cuda_library.h"
#include "lathe/engine/cuda/cuda_step.h"
#include "lathe/ops/relative_buckets.h"

namespace lathe::engine {
namespace {

// relative_attention(q, k, v, mask?, offsets?, position_keys?, position_queries?). Queries and keys
// by the tables of positions are products of the library's, one head a batch.
constexpr std::size_t kMask = 3, kOffsets = 4, kPositionKeys = 5, kPositionQueries = 6;

std::int64_t lines(std::int64_t bytes) {
  return (bytes + 255) / 256 * 256;
}

// The first distances beyond those with a row of their own that are 1, 2, .. rows further, as far
// as the table goes.
std::vector<std::uint16_t> bucket_starts(const ops::RelativeBuckets& buckets) {
  std::vector<std::uint16_t> starts;
  const std::int64_t near = buckets.buckets / 2;
  for (std::int64_t far = near + 1; far <= std::int64_t{UINT16_MAX}; ++far)
    while (buckets.bucket(far) > near + std::ssize(starts)) {
      if (near + std::ssize(starts) + 1 > buckets.span) return starts;
      starts.push_back(static_cast<std::uint16_t>(far));
    }
  return starts;
}

class RelativeAttentionStep final : public CudaStep {
 public:
  RelativeAttentionStep(const Graph& graph, NodeId id, std::int64_t width) {
    const AttributeReader attributes = graph.attribute(id);
    const auto has = [&](std::size_t operand) {
      return operand < graph.inputs(id).size() && !graph.input(id, operand).is_none();
    };
    const Type& q = graph.types(id)[0];
    const Type& table =
        graph.type(graph.input(id, has(kPositionKeys) ? kPositionKeys : kPositionQueries));
    has_keys_ = has(kPositionKeys);
    has_queries_ = has(kPositionQueries);
    heads_ = attributes.integer("heads");
    d_ = width / heads_;
    table_rows_ = table.axis(0).constant();
    const double scale = attributes.real("scale");
    scale_ = static_cast<float>(scale == 0 ? 1 / std::sqrt(static_cast<double>(d_)) : scale);
    const ops::RelativeBuckets buckets = ops::RelativeBuckets::of(attributes, table_rows_);
    near_ = buckets.buckets == 0 ? std::int64_t{1} << 32 : buckets.buckets / 2;
    if (buckets.buckets != 0) starts_ = bucket_starts(buckets);
    is_packed_ = q.rank() == 2;
    rows_ = is_packed_ ? q.axis(0) : q.axis(0) * q.axis(1);
    longest_ = is_packed_ ? q.axis(0) : q.axis(1);
  }

  bool is_supported() const { return std::ssize(starts_) <= cuda::kMostBucketStarts; }

  std::int64_t scratch_bytes(const Graph&, NodeId, const CudaSizes& sizes) const override {
    const std::int64_t tables = (has_keys_ ? 1 : 0) + (has_queries_ ? 1 : 0);
    return tables * table_bytes(sizes.capacity(rows_)) + lines(8 * sizes.capacity(longest_));
  }

  void launch(const CudaCall& call) const override {
    cuda::RelativeAttentionArgs args;
    args.q = call.input(0);
    args.k = call.input(1);
    args.v = call.input(2);
    args.mask = call.integers(kMask);
    args.offsets = call.integers(kOffsets);
    args.queries = call.extent(rows_);
    std::byte* free = call.scratch;
    const std::int64_t capacity = args.queries.capacity;
    if (has_keys_) {
      args.of_queries = multiply(call, kPositionKeys, args.q, capacity, free);
      free += table_bytes(capacity);
    }
    if (has_queries_) {
      args.of_keys = multiply(call, kPositionQueries, args.k, capacity, free);
      free += table_bytes(capacity);
    }
    args.table_rows = table_rows_;
    args.near = near_;
    args.num_starts = static_cast<std::int32_t>(starts_.size());
    std::copy(starts_.begin(), starts_.end(), args.starts);
    args.rows = reinterpret_cast<std::int32_t*>(free);
    args.longest = call.sizes.capacity(longest_);
    args.y = call.output(0);
    args.heads = static_cast<std::int32_t>(heads_);
    args.d = static_cast<std::int32_t>(d_);
    args.scale = scale_;
    args.fault = call.fault;
    if (is_packed_) {
      args.sequences = call.extent(call.input_type(kOffsets).axis(0) - Size(1));
    } else {
      args.length = call.sizes.capacity(longest_);
      args.sequences = call.extent(call.type(0).axis(0));
    }
    call.kernels.relative_attention(args, call.stream);
  }

 private:
  std::int64_t table_bytes(std::int64_t rows) const {
    return lines(rows * heads_ * table_rows_ * 4);
  }

  // x[rows, heads, d] . table[table_rows, heads, d]^T, head by head: [rows, heads, table_rows].
  const float* multiply(const CudaCall& call, std::size_t table, const float* x, std::int64_t rows,
                        std::byte* to) const {
    check_cuda(call.kernels.gemm(
        call.gemm,
        {.transpose_a = true,
         .m = table_rows_,
         .n = rows,
         .k = d_,
         .a = call.input(table),
         .b = x,
         .c = to,
         .lda = heads_ * d_,
         .ldb = heads_ * d_,
         .ldc = heads_ * table_rows_,
         .batches = heads_,
         .stride_a = d_,
         .stride_b = d_,
         .stride_c = table_rows_,
         .precision = call.precision == cuda::Precision::Tf32 ? cuda::Precision::Tf32
                                                              : cuda::Precision::Float32},
        call.stream));
    return reinterpret_cast<const float*>(to);
  }

  bool has_keys_ = false, has_queries_ = false, is_packed_ = false;
  std::int64_t heads_ = 0, d_ = 0, table_rows_ = 0, near_ = 0;
  float scale_ = 1;
  std::vector<std::uint16_t> starts_;
  Size rows_, longest_;
};

std::unique_ptr<CudaStep> make_relative_attention(const Graph& graph, NodeId id) {
  const std::optional<CudaRows> q = cuda_rows(graph.types(id)[0]);
  if (!q || q->width / graph.attribute(id).integer("heads") > cuda::kMostHeadSize) return nullptr;
  for (const std::size_t operand : {kMask, kOffsets})
    if (operand < graph.inputs(id).size() && !graph.input(id, operand).is_none() &&
        !is_integer(graph, graph.input(id, operand)))
      return nullptr;
  auto step = std::make_unique<RelativeAttentionStep>(graph, id, q->width);
  if (!step->is_supported()) return nullptr;
  return step;
}

// Packed sequences end where the real tokens do; a padded batch has no rows to spare.
bool takes_padding(const Graph& graph, NodeId id) {
  return graph.types(id)[0].rank() == 2;
}

const Register relative_attention{
    CudaKernel{"relative_attention", make_relative_attention, takes_padding}};

}  // namespace
}  // namespace lathe::engine
