#include <algorithm>

#include "lathe/engine/cuda/cuda_format.h"
#include "lathe/engine/cuda/cuda_library.h"
#include "lathe/engine/cuda/cuda_maps.h"

namespace lathe::engine {
namespace {

// packed_linear(x, codes, local?, scale?, zero?, bias?, residual?). Few rows are multiplied with
// the codes themselves; for many the weight is decoded into memory that all layers share.

constexpr std::size_t kCodes = 1, kBias = 5, kResidual = 6;

class PackedLinear final : public CudaStep {
 public:
  PackedLinear(CudaPacked packed, std::optional<cuda::PackedCode> code, Size rows, std::int64_t n,
               cuda::Map map, bool encodes)
      : packed_(std::move(packed)),
        code_(code),
        rows_(std::move(rows)),
        n_(n),
        map_(map),
        encodes_(encodes) {}

  std::int64_t scratch_bytes(const Graph&, NodeId, const CudaSizes& sizes) const override {
    // A batch may be smaller than the largest: room for both ways.
    const std::int64_t rows = sizes.capacity(rows_);
    const std::int64_t few = code_ ? std::min(rows, most_rows()) : 0;
    cuda::PackedLinearArgs args;
    args.k = k();
    args.encodes = encodes_;
    args.rows.capacity = few;
    const std::int64_t decoded =
        few < rows ? n_ * k() * static_cast<std::int64_t>(sizeof(float)) : 0;
    return std::max(cuda::packed_linear_scratch(args), decoded);
  }

  void launch(const CudaCall& call) const override {
    const cuda::Extent rows = call.extent(rows_);
    const cuda::PackedMatrix weight = packed_.of(call);
    if (code_ && rows.capacity <= most_rows()) {
      cuda::PackedLinearArgs args;
      args.code = *code_;
      args.weight = weight;
      args.n = n_;
      args.k = k();
      args.x = call.input(0);
      args.bias = call.input(kBias);
      args.residual = call.input(kResidual);
      args.map = map_;
      args.encodes = encodes_;
      args.y = call.output(0);
      args.scratch = call.scratch;
      args.rows = rows;
      call.kernels.packed_linear(args, call.stream);
      return;
    }
    cuda::DecodeArgs decode;
    decode.packed = weight;
    decode.y = call.scratch;
    decode.rows.capacity = n_;
    call.kernels.decode(decode, call.stream);
    check_cuda(call.kernels.gemm(call.gemm,
                                 {.transpose_a = true,
                                  .m = n_,
                                  .n = rows.capacity,
                                  .k = k(),
                                  .a = reinterpret_cast<const float*>(call.scratch),
                                  .b = call.input(0),
                                  .c = call.output(0),
                                  .lda = k(),
                                  .ldb = k(),
                                  .ldc = n_},
                                 call.stream));
    call.kernels.epilogue({.x = call.output(0),
                           .y = call.output(0),
                           .bias = call.input(kBias),
                           .residual = call.input(kResidual),
                           .map = map_,
                           .n = n_,
                           .rows = rows},
                          call.stream);
  }

 private:
  std::int64_t k() const { return packed_.matrix.format.columns; }
  // Whole numbers are multiplied as such however many rows there are.
  std::int64_t most_rows() const {
    return encodes_ ? std::int64_t{1} << 40 : cuda::kMostPackedRows;
  }

  CudaPacked packed_;
  std::optional<cuda::PackedCode> code_;
  Size rows_;
  std::int64_t n_;
  cuda::Map map_;
  bool encodes_;
};

std::unique_ptr<CudaStep> make_packed_linear(const Graph& graph, NodeId id) {
  const std::optional<CudaRows> x = cuda_rows(graph.type(graph.input(id, 0)));
  const std::optional<CudaRows> y = cuda_rows(graph.types(id)[0]);
  if (!x || !y) return nullptr;
  const std::optional<CudaPacked> packed = cuda_packed(graph, id, kCodes);
  const std::optional<cuda::Map> map = find_cuda_epilogue(graph.attribute(id).text("activation"));
  if (!packed || !map || packed->matrix.format.columns != x->width) return nullptr;
  const std::optional<cuda::PackedCode> code = packed_code(packed->matrix);
  const bool encodes = graph.attribute(id).flag("encodes");
  if (encodes && code != cuda::PackedCode::Int8) return nullptr;
  return std::make_unique<PackedLinear>(*packed, code, x->rows, y->width, *map, encodes);
}

const Register registration{CudaKernel{"packed_linear", make_packed_linear, always_takes_padding}};

}  // namespace
}  // namespace lathe::engine
