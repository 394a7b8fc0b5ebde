#include <algorithm>

#include "lathe/engine/cuda/cuda_products.h"
#include "lathe/engine/cuda/cuda_row_program.h"
#include "lathe/engine/cuda/cuda_walks.h"
#include "lathe/ops/axes.h"

namespace lathe::engine {
namespace {

// sum, mean and max over axes, sum_to and sum_rows, and the gradients of mean and max.

// Which axes of x are gone or 1 in the result it is reduced to.
std::vector<bool> reduced_by(const Graph& graph, NodeId id) {
  const Type& x = graph.type(graph.input(id, 0));
  const Type& y = graph.types(id)[0];
  if (graph.is(id, "sum_rows")) {
    std::vector<bool> result(x.rank(), true);
    result.back() = false;
    return result;
  }
  if (!graph.is(id, "sum_to"))
    return ops::reduced_axes(graph.attribute(id).integers("axes"), x.rank());
  const std::size_t added = x.rank() - y.rank();
  std::vector<bool> result;
  for (std::size_t axis = 0; axis < x.rank(); ++axis)
    result.push_back(axis < added || y.shape[axis - added] != x.shape[axis]);
  return result;
}

// A sum of rows of constant width: the leading axes and no others.
bool is_sum_of_rows(const Type& x, const std::vector<bool>& is_reduced) {
  if (x.rank() < 2 || !x.shape.back().is_constant() || x.shape.back().constant() < 2) return false;
  for (std::size_t axis = 0; axis < x.rank(); ++axis)
    if (is_reduced[axis] != (axis + 1 < x.rank())) return false;
  return true;
}

cuda::ReduceArgs reduce_args(const CudaCall& call, const Type& x,
                             const std::vector<bool>& is_reduced) {
  const std::vector<std::int64_t> dims = call.dims(x);
  const std::vector<std::int64_t> strides = ops::row_major_strides(dims);
  cuda::ReduceArgs args;
  std::vector<std::int64_t> kept_dims, kept_strides, reduced_dims, reduced_strides;
  Size count(1);
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    if (is_reduced[axis]) {
      if (reduced_dims.empty()) args.outer_axis = call.extent(x.shape[axis]);
      reduced_dims.push_back(dims[axis]);
      reduced_strides.push_back(strides[axis]);
    } else {
      kept_dims.push_back(dims[axis]);
      kept_strides.push_back(strides[axis]);
      count *= x.shape[axis];
    }
  }
  if (reduced_dims.empty()) {  // of a single number
    reduced_dims = {1};
    reduced_strides = {0};
    args.outer_axis = call.extent(Size(1));
  }
  set_dims(kept_dims, args.rank, args.dims);
  set_dims(reduced_dims, args.reduced_rank, args.reduced_dims);
  args.walk = to_walk(kept_strides);
  args.reduced_walk = to_walk(reduced_strides);
  args.count = call.extent(count);
  return args;
}

// Sums over rows: with the steps that make those rows, or beside the weight's gradient that reads
// them.
class SumRowsStep final : public CudaStep {
 public:
  explicit SumRowsStep(CudaRowFacts facts) : facts_(std::move(facts)) {}
  CudaGroup group() const override {
    return fits_row_program(facts_.width) ? CudaGroup::Rows : CudaGroup::None;
  }
  const CudaRowFacts* rows() const override { return &facts_; }
  std::vector<CudaParts> parts() const override {
    return {row_parts_of(0, {facts_.rows, facts_.width})};
  }
  CudaFollower follower() const override { return CudaFollower::Sum; }
  // By itself, of a width that no row program has.
  std::int64_t scratch_bytes(const Graph&, NodeId, const CudaSizes& sizes) const override {
    if (group() != CudaGroup::None) return 0;
    return most_row_chunks(sizes.capacity(facts_.rows)) * facts_.width *
           static_cast<std::int64_t>(sizeof(double));
  }
  void launch(const CudaCall& call) const override {
    call.kernels.sum_rows({.x = call.input(0),
                           .y = call.output(0),
                           .scratch = reinterpret_cast<double*>(call.scratch),
                           .n = facts_.width,
                           .rows = call.extent(facts_.rows)},
                          call.stream);
  }
  void add_to(CudaRowProgram& program, const CudaCall& call) const override {
    program.add_sum(call, program.operand(call, 0), 0);
  }
  void add_to(CudaProducts& products, const CudaCall& call) const override {
    cuda::Product& product = products.reader_of(call.input_slots[0]).product;
    product.sums = product.parts > 1 ? reinterpret_cast<float*>(call.parts[0]) : call.output(0);
  }

 private:
  CudaRowFacts facts_;
};

// The mean of a small array.
class MeanStep final : public CudaStep {
 public:
  explicit MeanStep(std::int64_t count) : count_(count) {}
  CudaGroup group() const override { return CudaGroup::Vectors; }
  void add_to(CudaGroupTable& table, const CudaCall& call) const override {
    table.vectors.push_back({.kind = cuda::VectorOperation::Kind::Mean,
                             .a = call.input(0),
                             .y = call.output(0),
                             .count = count_});
  }

 private:
  std::int64_t count_;
};

std::unique_ptr<CudaStep> make_reduction(const Graph& graph, NodeId id) {
  const Type& x = graph.type(graph.input(id, 0));
  if (x.dtype != DType::F32) return nullptr;
  const std::vector<bool> is_reduced = reduced_by(graph, id);
  cuda::Reduction reduction = cuda::Reduction::Sum;
  if (graph.is(id, "mean")) reduction = cuda::Reduction::Mean;
  if (graph.is(id, "max")) reduction = cuda::Reduction::Max;
  if (reduction == cuda::Reduction::Sum && is_sum_of_rows(x, is_reduced)) {
    const std::int64_t n = x.shape.back().constant();
    Size rows(1);
    for (std::size_t axis = 0; axis + 1 < x.rank(); ++axis) rows *= x.shape[axis];
    return std::make_unique<SumRowsStep>(CudaRowFacts{rows, n, {0}, 0, 1});
  }
  const Size count = x.num_elements();
  if (reduction == cuda::Reduction::Mean && graph.types(id)[0].num_elements() == Size(1) &&
      count.is_constant() && count.constant() <= cuda::kMostVectorElements)
    return std::make_unique<MeanStep>(count.constant());
  return cuda_step([=](const CudaCall& call) {
    cuda::ReduceArgs args = reduce_args(call, call.input_type(0), is_reduced);
    args.reduction = reduction;
    args.x = call.input(0);
    args.y = call.output(0);
    call.kernels.reduce(args, call.stream);
  });
}

// mean_gradient(dy): its share for each element of the result.
std::unique_ptr<CudaStep> make_mean_gradient(const Graph& graph, NodeId id) {
  if (graph.types(id)[0].dtype != DType::F32) return nullptr;
  return cuda_step([](const CudaCall& call) {
    const std::vector<std::int64_t> x = call.dims(call.type(0));
    const std::vector<std::int64_t> dy = call.dims(call.input_type(0));
    const CudaWalks walks = join_axes(x, {broadcast_walk(dy, x), ops::row_major_strides(x)});
    cuda::CopyArgs args;
    args.x = call.input(0);
    args.y = call.output(0);
    set_dims(walks.dims, args.rank, args.dims);
    args.x_walk = to_walk(walks.strides[0]);
    args.y_walk = to_walk(walks.strides[1]);
    const std::int64_t all = num_elements(x);
    args.factor =
        all == 0
            ? 0.0f
            : static_cast<float>(static_cast<double>(num_elements(dy)) / static_cast<double>(all));
    args.count = call.extent(call.type(0).num_elements());
    call.kernels.copy(args, call.stream);
  });
}

// max_gradient(dy, x), dy in a shape that broadcasts to that of x.
std::unique_ptr<CudaStep> make_max_gradient(const Graph& graph, NodeId id) {
  const Type& x = graph.type(graph.input(id, 1));
  const Type& dy = graph.type(graph.input(id, 0));
  if (x.dtype != DType::F32 || dy.rank() != x.rank()) return nullptr;
  std::vector<bool> is_reduced;
  for (std::size_t axis = 0; axis < x.rank(); ++axis)
    is_reduced.push_back(dy.shape[axis] != x.shape[axis]);
  return cuda_step([=](const CudaCall& call) {
    cuda::MaxGradientArgs args;
    args.reduce = reduce_args(call, call.input_type(1), is_reduced);
    args.reduce.x = call.input(1);
    args.dy = call.input(0);
    args.dx = call.output(0);
    call.kernels.max_gradient(args, call.stream);
  });
}

// A mean over rows divides by how many there are, which only the kernel knows.
bool mean_takes_padding(const Graph& graph, NodeId id) {
  const Type& dy = graph.type(graph.input(id, 0));
  const Type& x = graph.types(id)[0];
  return dy.rank() == x.rank() && dy.rank() > 0 && dy.shape[0] == x.shape[0];
}

const Register sum{CudaKernel{"sum", make_reduction, always_takes_padding}};
const Register mean{CudaKernel{"mean", make_reduction, always_takes_padding}};
const Register max{CudaKernel{"max", make_reduction, always_takes_padding}};
const Register sum_to{CudaKernel{"sum_to", make_reduction, always_takes_padding}};
const Register sum_rows{CudaKernel{"sum_rows", make_reduction, always_takes_padding}};
const Register mean_gradient{CudaKernel{"mean_gradient", make_mean_gradient, mean_takes_padding}};
const Register max_gradient{CudaKernel{"max_gradient", make_max_gradient, always_takes_padding}};

}  // namespace
}  // namespace lathe::engine
