#include <bit>

#include "lathe/engine/cuda/cuda_library.h"
#include "lathe/engine/cuda/cuda_row_program.h"
#include "lathe/engine/cuda/cuda_walks.h"
#include "lathe/ops/axes.h"

namespace lathe::engine {
namespace {

// Ops that only move or make bytes.

using MadeStep = std::unique_ptr<CudaStep>;

std::int64_t row_bytes(const CudaCall& call, const Type& type, std::size_t first_axis) {
  std::int64_t bytes = size_of(type.dtype);
  for (std::size_t axis = first_axis; axis < type.rank(); ++axis)
    bytes *= call.sizes.capacity(type.shape[axis]);
  return bytes;
}

// Numbers that describe packed batches: all that are ready share a launch.
template <typename Describe>
class IndexStep final : public CudaStep {
 public:
  explicit IndexStep(Describe describe) : describe_(std::move(describe)) {}
  CudaGroup group() const override { return CudaGroup::Indices; }
  void add_to(CudaGroupTable& table, const CudaCall& call) const override {
    cuda::IndexOperation operation = describe_(call);
    operation.y = call.outputs[0];
    operation.is_wide = call.type(0).dtype == DType::I64;
    operation.fault = call.fault;
    table.indices.push_back(operation);
  }

 private:
  Describe describe_;
};
template <typename Describe>
MadeStep index_step(Describe describe) {
  return std::make_unique<IndexStep<Describe>>(std::move(describe));
}

MadeStep make_select_in_sequence(const Graph& graph, NodeId id) {
  if (!is_integer(graph, graph.input(id, 1))) return nullptr;
  const bool is_gradient = graph.is(id, "select_in_sequence_gradient");
  const std::optional<CudaRows> y = cuda_rows(graph.types(id)[0]);
  if (y && graph.types(id)[0].rank() == 2 && fits_row_program(y->width))
    return cuda_row_step(
        {y->rows, y->width, {}}, [is_gradient, index = graph.attribute(id).integer("index")](
                                     CudaRowProgram& program, const CudaCall& call) {
          using Kind = cuda::RowInstruction::Kind;
          const Size others =
              is_gradient ? call.input_type(1).shape[0] - Size(1) : call.input_type(0).shape[0];
          program.add(call,
                      {.kind = is_gradient ? Kind::LoadForToken : Kind::LoadOfSequence,
                       .memory = call.input(0),
                       .ids = call.integers(1),
                       .index = index,
                       .others = call.extent(others),
                       .fault = call.fault},
                      0);
        });
  if (!is_gradient && graph.types(id)[0].rank() == 1 && is_integer(graph, {id, 0}))
    return index_step([index = graph.attribute(id).integer("index")](const CudaCall& call) {
      return cuda::IndexOperation{.kind = cuda::IndexOperation::Kind::Select,
                                  .offsets = call.integers(1),
                                  .values = call.integers(0),
                                  .index = index,
                                  .tokens = call.extent(call.input_type(0).shape[0]),
                                  .sequences = call.extent(call.input_type(1).shape[0] - Size(1))};
    });
  return cuda_step(
      [is_gradient, index = graph.attribute(id).integer("index")](const CudaCall& call) {
        const Type& tokens = is_gradient ? call.type(0) : call.input_type(0);
        call.kernels.select({.is_gradient = is_gradient,
                             .x = call.inputs[0],
                             .offsets = call.integers(1),
                             .y = call.outputs[0],
                             .bytes = row_bytes(call, tokens, 1),
                             .index = index,
                             .tokens = call.extent(tokens.shape[0]),
                             .sequences = call.extent(call.input_type(1).shape[0] - Size(1)),
                             .fault = call.fault},
                            call.stream);
      });
}

MadeStep make_last_token(const Graph& graph, NodeId id) {
  if (!is_integer(graph, graph.input(id, 1))) return nullptr;
  const bool is_gradient = graph.is(id, "last_token_gradient");
  return cuda_step([is_gradient](const CudaCall& call) {
    const Type& tokens = is_gradient ? call.type(0) : call.input_type(0);
    call.kernels.last_token({.is_gradient = is_gradient,
                             .x = call.inputs[0],
                             .mask = call.integers(1),
                             .y = call.outputs[0],
                             .bytes = row_bytes(call, tokens, 2),
                             .length = call.sizes.capacity(tokens.shape[1]),
                             .rows = call.extent(tokens.shape[0])},
                            call.stream);
  });
}

MadeStep make_packed_index(const Graph& graph, NodeId id, cuda::IndexOperation::Kind kind) {
  using Kind = cuda::IndexOperation::Kind;
  for (const Value& value : graph.inputs(id))
    if (!is_integer(graph, value)) return nullptr;
  if (kind == Kind::Share ? graph.types(id)[0].dtype != DType::F32 : !is_integer(graph, {id, 0}))
    return nullptr;
  const std::int64_t first = kind == Kind::Position ? graph.attribute(id).integer("first") : 0;
  return index_step([kind, first](const CudaCall& call) {
    const std::size_t offsets = kind == Kind::Example ? 1 : 0;
    return cuda::IndexOperation{
        .kind = kind,
        .offsets = call.integers(offsets),
        .values = call.integers(0),
        .index = first,
        .tokens = call.extent(call.type(0).shape[0]),
        .sequences = call.extent(call.input_type(offsets).shape[0] - Size(1))};
  });
}

MadeStep make_positions(const Graph& graph, NodeId id) {
  const Type& type = graph.types(id)[0];
  if (!is_integer(graph, {id, 0}) || type.rank() != 2) return nullptr;
  return cuda_step([is_wide = type.dtype == DType::I64,
                    first = graph.attribute(id).integer("first")](const CudaCall& call) {
    call.kernels.positions({.y = call.outputs[0],
                            .is_wide = is_wide,
                            .first = first,
                            .length = call.sizes.capacity(call.type(0).shape[1]),
                            .count = call.extent(call.type(0).num_elements())},
                           call.stream);
  });
}

// full_like(x) {value}, and a constant whose shape grows with the batch; others are made when the
// graph is planned.
MadeStep make_fill(const Graph& graph, NodeId id, double value) {
  const DType dtype = graph.types(id)[0].dtype;
  if (dtype != DType::I32 && dtype != DType::F32) return nullptr;
  const std::uint32_t pattern = dtype == DType::I32
                                    ? std::bit_cast<std::uint32_t>(static_cast<std::int32_t>(value))
                                    : std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return index_step([pattern](const CudaCall& call) {
    return cuda::IndexOperation{.kind = cuda::IndexOperation::Kind::Fill,
                                .pattern = pattern,
                                .tokens = call.extent(call.type(0).num_elements())};
  });
}

MadeStep make_constant(const Graph& graph, NodeId id) {
  const std::vector<double> values = graph.attribute(id).reals("values");
  // Of a known shape it is no step at all; the plan computes it.
  if (graph.types(id)[0].num_elements().is_constant()) return cuda_step([](const CudaCall&) {});
  return values.size() == 1 ? make_fill(graph, id, values[0]) : nullptr;
}

std::optional<cuda::Number> number_of(DType dtype) {
  switch (dtype) {
    case DType::F64:
      return cuda::Number::F64;
    case DType::F32:
      return cuda::Number::F32;
    case DType::F16:
      return cuda::Number::F16;
    case DType::BF16:
      return cuda::Number::BF16;
    case DType::I64:
      return cuda::Number::I64;
    case DType::I32:
      return cuda::Number::I32;
    case DType::I16:
      return cuda::Number::I16;
    case DType::I8:
      return cuda::Number::I8;
    case DType::U8:
      return cuda::Number::U8;
    case DType::Bool:
      return cuda::Number::Bool;
  }
  return std::nullopt;
}

MadeStep make_cast(const Graph& graph, NodeId id) {
  const DType from = graph.type(graph.input(id, 0)).dtype, to = graph.types(id)[0].dtype;
  if (!is_floating(to) && to != DType::I32 && to != DType::I64) return nullptr;
  return cuda_step([from = *number_of(from), to = *number_of(to)](const CudaCall& call) {
    call.kernels.cast({.from = from,
                       .to = to,
                       .x = call.inputs[0],
                       .y = call.outputs[0],
                       .count = call.extent(call.type(0).num_elements())},
                      call.stream);
  });
}

// Copies every index of `dims`, along strides of its own for each side.
void copy_strided(const CudaCall& call, const std::byte* from, std::byte* to, DType dtype,
                  std::vector<std::int64_t> dims, std::vector<std::int64_t> from_strides,
                  std::vector<std::int64_t> to_strides, const cuda::Extent& count) {
  const CudaWalks walks =
      join_axes(std::move(dims), {std::move(from_strides), std::move(to_strides)});
  cuda::CopyArgs args;
  args.x = from;
  args.y = to;
  args.element_bytes = static_cast<std::int32_t>(size_of(dtype));
  set_dims(walks.dims, args.rank, args.dims);
  args.x_walk = to_walk(walks.strides[0]);
  args.y_walk = to_walk(walks.strides[1]);
  args.count = count;
  call.kernels.copy(args, call.stream);
}

MadeStep make_copy(const Graph& graph, NodeId id) {
  const bool is_transpose = graph.is(id, "transpose");
  return cuda_step([is_transpose](const CudaCall& call) {
    const std::vector<std::int64_t> from = call.dims(call.input_type(0)),
                                    to = call.dims(call.type(0));
    std::vector<std::int64_t> strides;
    if (is_transpose) {
      const std::vector<std::int64_t> own = ops::row_major_strides(from);
      for (const std::int64_t axis : call.graph.attribute(call.node).integers("axes"))
        strides.push_back(own[ops::axis_position(axis, from.size())]);
    } else {
      strides = broadcast_walk(from, to);
    }
    copy_strided(call, call.inputs[0], call.outputs[0], call.type(0).dtype, to, strides,
                 ops::row_major_strides(to), call.extent(call.type(0).num_elements()));
  });
}

// Rows stay where they are when the first axis does.
bool copy_takes_padding(const Graph& graph, NodeId id) {
  const Type& x = graph.type(graph.input(id, 0));
  const Type& y = graph.types(id)[0];
  if (y.rank() == 0) return false;
  if (graph.is(id, "transpose"))
    return ops::axis_position(graph.attribute(id).integers("axes")[0], y.rank()) == 0;
  return x.rank() < y.rank() || x.shape[0] == y.shape[0] || x.shape[0] == Size(1);
}

// Ops that copy runs of indices of one axis between a whole array and parts of it: slice, select,
// split and concat_gradient take parts out; concat, slice_gradient and select_gradient put them
// together, with zeros where there is no part.
enum class Part { Consecutive, Begin, Index };
struct Movement {
  bool is_putting;
  Part part;
};

std::size_t axis_of(const Graph& graph, NodeId id, const Movement& movement) {
  const Type& whole = movement.is_putting ? graph.types(id)[0] : graph.type(graph.input(id, 0));
  return ops::axis_position(graph.attribute(id).integer("axis"), whole.rank());
}

void move_parts(const CudaCall& call, const Movement& movement) {
  const std::size_t axis = axis_of(call.graph, call.node, movement);
  const Type& whole_type = movement.is_putting ? call.type(0) : call.input_type(0);
  const std::vector<std::int64_t> whole = call.dims(whole_type);
  const std::vector<std::int64_t> whole_strides = ops::row_major_strides(whole);
  const std::size_t parts = movement.is_putting ? call.inputs.size() : call.outputs.size();
  const std::int64_t bytes = size_of(whole_type.dtype);
  if (movement.is_putting && movement.part != Part::Consecutive)
    check_cuda(
        call.kernels.device.fill(call.outputs[0], 0, num_elements(whole) * bytes, call.stream));
  std::int64_t next = 0;
  for (std::size_t i = 0; i < parts; ++i) {
    const Type& part_type = movement.is_putting ? call.input_type(i) : call.type(i);
    std::vector<std::int64_t> dims = call.dims(part_type);
    if (movement.part == Part::Index)
      dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis), 1);
    std::int64_t begin = next;
    if (movement.part != Part::Consecutive) {
      begin =
          call.graph.attribute(call.node).integer(movement.part == Part::Begin ? "begin" : "index");
      if (begin < 0) begin += whole[axis];
    }
    if (begin < 0 || begin + dims[axis] > whole[axis])
      fail("indices {} to {} are outside axis {}, which has size {}", begin, begin + dims[axis] - 1,
           axis, whole[axis]);
    next = begin + dims[axis];
    const std::int64_t offset = begin * whole_strides[axis] * bytes;
    const cuda::Extent count = call.extent(part_type.num_elements());
    if (movement.is_putting)
      copy_strided(call, call.inputs[i], call.outputs[0] + offset, part_type.dtype, dims,
                   ops::row_major_strides(dims), whole_strides, count);
    else
      copy_strided(call, call.inputs[0] + offset, call.outputs[i], part_type.dtype, dims,
                   whole_strides, ops::row_major_strides(dims), count);
  }
}

bool parts_take_padding(const Graph& graph, NodeId id) {
  const bool is_putting =
      graph.is(id, "concat") || graph.is(id, "slice_gradient") || graph.is(id, "select_gradient");
  return axis_of(graph, id, {is_putting, Part::Consecutive}) != 0;
}

CudaKernel parts_kernel(std::string op, Movement movement) {
  return {std::move(op),
          [movement](const Graph&, NodeId) {
            return cuda_step([movement](const CudaCall& call) { move_parts(call, movement); });
          },
          parts_take_padding};
}

CudaKernel packed_kernel(std::string op, cuda::IndexOperation::Kind number) {
  return {std::move(op),
          [number](const Graph& graph, NodeId id) { return make_packed_index(graph, id, number); },
          always_takes_padding};
}

const Register select_in_sequence{
    CudaKernel{"select_in_sequence", make_select_in_sequence, always_takes_padding}};
const Register select_in_sequence_gradient{
    CudaKernel{"select_in_sequence_gradient", make_select_in_sequence, always_takes_padding}};
const Register last_token{CudaKernel{"last_token", make_last_token, always_takes_padding}};
const Register last_token_gradient{
    CudaKernel{"last_token_gradient", make_last_token, always_takes_padding}};
const Register packed_positions{
    packed_kernel("packed_positions", cuda::IndexOperation::Kind::Position)};
const Register packed_examples{
    packed_kernel("packed_examples", cuda::IndexOperation::Kind::Example)};
const Register packed_shares{packed_kernel("packed_shares", cuda::IndexOperation::Kind::Share)};
const Register positions{CudaKernel{"positions", make_positions, always_takes_padding}};
const Register full_like{CudaKernel{"full_like",
                                    [](const Graph& graph, NodeId id) {
                                      return make_fill(graph, id,
                                                       graph.attribute(id).real("value"));
                                    },
                                    always_takes_padding}};
const Register constant{CudaKernel{"constant", make_constant, always_takes_padding}};
const Register cast{CudaKernel{"cast", make_cast, always_takes_padding}};
const Register transpose{CudaKernel{"transpose", make_copy, copy_takes_padding}};
const Register broadcast_to{CudaKernel{"broadcast_to", make_copy, copy_takes_padding}};
const Register slice{parts_kernel("slice", {false, Part::Begin})};
const Register slice_gradient{parts_kernel("slice_gradient", {true, Part::Begin})};
const Register select{parts_kernel("select", {false, Part::Index})};
const Register select_gradient{parts_kernel("select_gradient", {true, Part::Index})};
const Register split{parts_kernel("split", {false, Part::Consecutive})};
const Register concat{parts_kernel("concat", {true, Part::Consecutive})};
const Register concat_gradient{parts_kernel("concat_gradient", {false, Part::Consecutive})};

}  // namespace
}  // namespace lathe::engine
