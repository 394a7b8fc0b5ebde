#include "lathe/engine/cuda/cuda_format.h"
#include "lathe/engine/cuda/cuda_maps.h"
#include "lathe/engine/cuda/cuda_packed_linear.h"

namespace lathe::engine {
namespace {

// packed_linear(x, codes, local?, scale?, zero?, bias?, residual?).

constexpr std::size_t kCodes = 1, kBias = 5, kResidual = 6;

class PackedLinear final : public CudaStep {
 public:
  PackedLinear(CudaPacked packed, CudaPackedLinear linear, Size rows, cuda::Map map,
               bool may_begin_early)
      : packed_(std::move(packed)),
        linear_(linear),
        rows_(std::move(rows)),
        map_(map),
        may_begin_early_(may_begin_early) {}

  std::int64_t scratch_bytes(const Graph&, NodeId, const CudaSizes& sizes) const override {
    return linear_.scratch_bytes(sizes.capacity(rows_));
  }

  CudaGroup group() const override { return CudaGroup::Packed; }
  void launch(const CudaCall& call) const override {
    linear_.launch(call.kernels, call.gemm, args_of(call), call.stream);
  }
  std::optional<cuda::RowProductsArgs> row_product(const CudaCall& call) const override {
    return linear_.row_product(args_of(call));
  }

 private:
  cuda::PackedLinearArgs args_of(const CudaCall& call) const {
    cuda::PackedLinearArgs args;
    args.weight = packed_.of(call);
    args.x = call.input(0);
    args.bias = call.input(kBias);
    args.residual = call.input(kResidual);
    args.map = map_;
    args.may_begin_early = may_begin_early_;
    args.precision = call.precision;
    args.y = call.output(0);
    args.scratch = call.scratch;
    args.rows = call.extent(rows_);
    return args;
  }

  CudaPacked packed_;
  CudaPackedLinear linear_;
  Size rows_;
  cuda::Map map_;
  bool may_begin_early_;
};

// Whether the weight stays as it is, so that it may be asked for before the last kernel has ended.
bool may_begin_early(const Graph& graph, NodeId id) {
  for (std::size_t i = kCodes; i < kBias; ++i) {
    const Value operand = graph.input(id, i);
    if (operand.is_none()) continue;
    const bool is_kept = graph.is(operand.node, "state") || graph.is(operand.node, "constant");
    if (!is_kept || graph.state_updates().contains(operand.node)) return false;
  }
  return true;
}

std::unique_ptr<CudaStep> make_packed_linear(const Graph& graph, NodeId id) {
  const std::optional<CudaRows> x = cuda_rows(graph.type(graph.input(id, 0)));
  const std::optional<CudaRows> y = cuda_rows(graph.types(id)[0]);
  if (!x || !y) return nullptr;
  const std::optional<CudaPacked> packed = cuda_packed(graph, id, kCodes);
  const std::optional<cuda::Map> map = find_cuda_epilogue(graph.attribute(id).text("activation"));
  if (!packed || !map || packed->matrix.format.columns != x->width) return nullptr;
  const CudaPackedLinear linear{.code = packed_code(packed->matrix),
                                .encodes = graph.attribute(id).flag("encodes"),
                                .n = y->width,
                                .k = x->width};
  // The kernel that encodes has a block in a warp.
  constexpr std::int64_t kMostEncoded = 256;
  if (linear.encodes &&
      (linear.code != cuda::PackedCode::Int8 || packed->matrix.format.block > kMostEncoded))
    return nullptr;
  return std::make_unique<PackedLinear>(*packed, linear, x->rows, *map, may_begin_early(graph, id));
}

const Register registration{CudaKernel{"packed_linear", make_packed_linear, always_takes_padding}};

}  // namespace
}  // namespace lathe::engine
