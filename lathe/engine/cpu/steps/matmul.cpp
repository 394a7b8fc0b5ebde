#include <algorithm>

#include "lathe/engine/cpu/packed_product_step.h"
#include "lathe/ops/broadcast.h"

namespace lathe::engine {
namespace {

// matmul(a, b) {transpose_a, transpose_b}: products of the matrices in the last two axes, each by
// `gemm` with b packed. A b that is a state is packed when states are bound; then tokens times one
// such matrix is a step by rows, as a linear is.

// Rows of a product that a task computes: a multiple of the micro-kernels' 14 and 6.
constexpr std::int64_t kRowGrain = 84;
// Columns of b that a task packs, in panels.
constexpr std::int64_t kPackedPanels = 8;

// How the matrices of b are read: element [p, j] is b[j * stride_n + p * stride_k].
struct Packing {
  std::int64_t n, k, stride_n, stride_k, count;

  Packing(std::span<const std::int64_t> b, bool is_transposed) {
    const std::int64_t rows = b[b.size() - 2], columns = b[b.size() - 1];
    n = is_transposed ? rows : columns;
    k = is_transposed ? columns : rows;
    stride_n = is_transposed ? columns : 1;
    stride_k = is_transposed ? 1 : columns;
    count = num_elements(b.first(b.size() - 2));
  }
  std::int64_t size(const Kernels& kernels) const { return kernels.packed_size(n, k); }
  void reserve(const Kernels& kernels, AlignedBuffer& buffer) const {
    buffer.reserve(count * size(kernels) * static_cast<std::int64_t>(sizeof(float)));
  }
  void pack(const Kernels& kernels, const float* b, std::int64_t matrix, std::int64_t first,
            std::int64_t columns, float* packed) const {
    kernels.pack_b(b + matrix * n * k + first * stride_n, columns, k, stride_n, stride_k,
                   packed + matrix * size(kernels) + first * k);
  }
};

class MatmulStep final : public Step {
 public:
  MatmulStep(bool flip_a, bool flip_b) : flip_a_(flip_a), flip_b_(flip_b) {}

  void set_precision(Precision precision) override { is_bf16_ = precision == Precision::Bf16; }

  void prepare(const Kernels& kernels, std::span<const Tensor* const> states) override {
    is_packed_ = states[1] != nullptr;
    if (!is_packed_) return;
    const Packing packing(states[1]->dims(), flip_b_);
    packing.reserve(kernels, packed_);
    for (std::int64_t matrix = 0; matrix < packing.count; ++matrix)
      packing.pack(kernels, states[1]->data<float>().data(), matrix, 0, packing.n,
                   packed_.floats());
    if (is_bf16_)
      round(kernels, packed_.floats(), packing.count * packing.size(kernels), packed_.floats());
  }

  void run_whole(const WholeCall& call) const override {
    const Graph& graph = call.graph;
    const auto dims_of = [&](std::size_t operand) {
      return graph.type(graph.input(call.node, operand)).dims(call.symbols);
    };
    const std::vector<std::int64_t> a = dims_of(0), b = dims_of(1);
    const std::vector<std::int64_t> y = graph.types(call.node)[0].dims(call.symbols);
    const Packing packing(b, flip_b_);
    const float* const packed = is_packed_ ? packed_.floats() : pack(call, packing);

    std::int64_t m = y[y.size() - 2];
    const std::int64_t n = packing.n, k = packing.k;
    const auto batch = [](const std::vector<std::int64_t>& dims) {
      return std::span(dims).first(dims.size() - 2);
    };
    std::vector<std::int64_t> a_matrix = ops::broadcast_indices(batch(a), batch(y));
    std::vector<std::int64_t> b_matrix = ops::broadcast_indices(batch(b), batch(y));
    // The rows of all matrices against the same b are one matrix.
    if (packing.count == 1 && !flip_a_) {
      m *= static_cast<std::int64_t>(a_matrix.size());
      a_matrix = b_matrix = {0};
    }
    // Rounded operands are multiplied as floats, which loses nothing.
    const auto* x = reinterpret_cast<const float*>(call.inputs[0]);
    AlignedBuffer rounded;
    if (is_bf16_) {
      rounded.reserve(num_elements(a) * static_cast<std::int64_t>(sizeof(float)));
      round(call.kernels, x, num_elements(a), rounded.floats());
      x = rounded.floats();
    }
    const std::int64_t chunks = (m + kRowGrain - 1) / kRowGrain;
    const auto matrices = static_cast<std::int64_t>(a_matrix.size());
    call.parallel(matrices * chunks, [&](std::int64_t task, int) {
      const auto matrix = static_cast<std::size_t>(task / chunks);
      const std::int64_t first = task % chunks * kRowGrain;
      call.kernels.gemm({.rows = std::min(kRowGrain, m - first),
                         .n = n,
                         .k = k,
                         .x = x + a_matrix[matrix] * m * k + first * (flip_a_ ? 1 : k),
                         .x_stride = flip_a_ ? 1 : k,
                         .x_step = flip_a_ ? m : 1,
                         .packed = packed + b_matrix[matrix] * packing.size(call.kernels),
                         .bias = nullptr,
                         .activation = Unary::None,
                         .residual = nullptr,
                         .residual_stride = 0,
                         .y = reinterpret_cast<float*>(call.outputs[0]) +
                              (static_cast<std::int64_t>(matrix) * m + first) * n,
                         .y_stride = n,
                         .accumulate = false});
    });
    auto* const result = reinterpret_cast<float*>(call.outputs[0]);
    if (is_bf16_) round(call.kernels, result, num_elements(y), result);
  }

 private:
  static void round(const Kernels& kernels, const float* x, std::int64_t count, float* rounded) {
    bf16_kernels(*parse_isa(kernels.isa)).round(x, count, rounded);
  }
  // Into the first thread's scratch, which all of them read afterwards.
  const float* pack(const WholeCall& call, const Packing& packing) const {
    AlignedBuffer& room = call.scratch[0];
    packing.reserve(call.kernels, room);
    const std::int64_t columns = kPackedPanels * call.kernels.packed_size(1, 1);
    const std::int64_t chunks = (packing.n + columns - 1) / columns;
    call.parallel(packing.count * chunks, [&](std::int64_t task, int) {
      const std::int64_t first = task % chunks * columns;
      packing.pack(call.kernels, reinterpret_cast<const float*>(call.inputs[1]), task / chunks,
                   first, std::min(columns, packing.n - first), room.floats());
    });
    if (is_bf16_)
      round(call.kernels, room.floats(), packing.count * packing.size(call.kernels), room.floats());
    return room.floats();
  }

  bool flip_a_, flip_b_;
  bool is_packed_ = false;
  bool is_bf16_ = false;
  AlignedBuffer packed_;
};

class MatmulRowsStep final : public PackedProductStep {
 public:
  MatmulRowsStep(RowSpace space, std::int64_t n, std::int64_t k, bool flip_b)
      : PackedProductStep(std::move(space), n, k), flip_b_(flip_b) {}
  void prepare(const Kernels& kernels, std::span<const Tensor* const> states) override {
    const Packing packing(states[1]->dims(), flip_b_);
    packed().pack(kernels, states[1]->data<float>().data(), packing.stride_n, packing.stride_k);
  }

 private:
  bool flip_b_;
};

std::unique_ptr<Step> make_matmul(const Graph& graph, NodeId id) {
  const Value b = graph.input(id, 1);
  const Type& a_type = graph.type(graph.input(id, 0));
  if (a_type.dtype != DType::F32 || graph.type(b).dtype != DType::F32) return nullptr;
  const bool flip_a = graph.attribute(id).flag("transpose_a");
  const bool flip_b = graph.attribute(id).flag("transpose_b");
  const std::optional<RowShape> a = row_shape(a_type), y = row_shape(graph.types(id)[0]);
  if (a && y && !flip_a && graph.is(b.node, "state") && graph.type(b).rank() == 2)
    return std::make_unique<MatmulRowsStep>(RowSpace{a->rows, {a->width, 0}, {y->width}}, y->width,
                                            a->width, flip_b);
  return std::make_unique<MatmulStep>(flip_a, flip_b);
}

const Register matmul{CpuKernel{"matmul", make_matmul}};

}  // namespace
}  // namespace lathe::engine
