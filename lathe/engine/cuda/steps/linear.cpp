#include <algorithm>
#include <iterator>

#include "lathe/engine/cuda/cuda_maps.h"
#include "lathe/engine/cuda/cuda_products.h"

namespace lathe::engine {
namespace {

// linear, fused_linear and the two products of their gradient. All that are ready share a launch.
// Of smaller weights it applies activations and their gradients, too, and sums over rows are left
// in parts.

// Where a product is the library's, whether rows beyond the real ones may hold the bias instead of
// zeros: everybody who reads them goes row by row and writes zeros there, and the product that sums
// over rows has zeros in its other operand.
bool may_leave_bias(const Graph& graph, NodeId id) {
  constexpr std::string_view kByRows[] = {"layer_norm", "fused_layer_norm", "random_dropout",
                                          "map_gradient"};
  for (const Use& use : graph.uses(id)) {
    if (use.kind != Use::Kind::Operand) continue;  // outputs are cut, states have no rows
    const std::string& op = graph.op(use.user).name;
    const bool is_known =
        op.starts_with("attention") ||
        std::find(std::begin(kByRows), std::end(kByRows), op) != std::end(kByRows);
    const bool is_map = find_cuda_map(op, graph.attribute(use.user)).has_value();
    const bool is_activation = op == "linear_weight_gradient" && use.operand == 1;
    if (!is_known && !is_map && !is_activation) return false;
  }
  return true;
}

class ProductStep : public CudaStep {
 public:
  ProductStep(Size rows, std::int64_t weight, bool sums_rows = false)
      : rows_(rows), weight_(weight), product_rows_{std::move(rows), sums_rows} {}
  CudaGroup group() const override { return CudaGroup::Products; }
  std::vector<std::size_t> half_operands() const override { return {0, 1}; }
  const CudaProductRows* product_rows() const override { return &product_rows_; }

 protected:
  bool is_large() const { return weight_ >= kLargeWeight; }
  // An entry of the launch with what all products have.
  CudaProducts::Entry entry_of(const CudaCall& call) const {
    CudaProducts::Entry entry{
        .is_large = is_large(), .c = call.output_slots[0], .a = call.input_slots[0]};
    const CudaOperand a = call.operand(0), b = call.operand(1);
    entry.product.a = a.data;
    entry.product.a_as = a.as;
    entry.product.b = b.data;
    entry.product.b_as = b.as;
    return entry;
  }
  Size rows_;
  std::int64_t weight_;  // its elements

 private:
  CudaProductRows product_rows_;
};

// What a linear does beside its product.
struct LinearFacts {
  cuda::Map map = cuda::Map::Identity;
  bool has_bias = false;
  bool may_leave_bias = false;
};

class LinearStep final : public ProductStep {
 public:
  LinearStep(Size rows, std::int64_t k, std::int64_t n, LinearFacts facts)
      : ProductStep(std::move(rows), n * k), k_(k), n_(n), facts_(facts) {}
  bool takes(CudaFollower follower) const override {
    return follower == CudaFollower::Map && !is_large() && facts_.map == cuda::Map::Identity;
  }
  // The library adds to bfloat16 what lies as bfloat16.
  std::vector<std::size_t> half_operands() const override {
    if (facts_.has_bias) return {0, 1, 2};
    return {0, 1};
  }
  std::vector<std::size_t> half_results() const override {
    if (is_followed()) return {};
    return {0};
  }
  bool can_write_half(std::size_t) const override { return true; }
  std::int64_t scratch_bytes(const Graph&, NodeId, const CudaSizes& sizes) const override {
    return is_followed() ? sizes.capacity(rows_) * n_ * (is_large() ? 4 : 2) : 0;
  }

  void add_to(CudaProducts& products, const CudaCall& call) const override {
    CudaProducts::Entry entry = entry_of(call);
    entry.may_leave_bias = facts_.may_leave_bias;
    entry.sums = reinterpret_cast<float*>(call.scratch);
    cuda::Product& product = entry.product;
    product.n = n_;
    product.m = call.extent(rows_);
    product.k = call.extent(Size(k_));
    if (facts_.has_bias) {
      const CudaOperand bias = call.operand(2);
      product.bias = bias.data;
      product.bias_as = bias.as;
    }
    product.map = facts_.map;
    (is_followed() ? product.y : product.c) = call.output(0);
    (is_followed() ? product.y_half : product.c_half) = call.output_half(0);
    products.add(entry);
  }

 private:
  // Something follows the product, which is not the result itself then.
  bool is_followed() const { return facts_.map != cuda::Map::Identity; }
  std::int64_t k_, n_;
  LinearFacts facts_;
};

std::unique_ptr<CudaStep> make_linear(const Graph& graph, NodeId id) {
  const std::optional<CudaRows> x = cuda_rows(graph.type(graph.input(id, 0)));
  const std::optional<CudaRows> y = cuda_rows(graph.types(id)[0]);
  if (!x || !y || !is_float(graph, graph.input(id, 1))) return nullptr;
  const auto has = [&](std::size_t operand) {
    return operand < graph.inputs(id).size() && !graph.input(id, operand).is_none();
  };
  if (has(3)) return nullptr;  // whatever goes row by row takes it on the way
  LinearFacts facts{.has_bias = has(2), .may_leave_bias = may_leave_bias(graph, id)};
  if (graph.is(id, "fused_linear")) {
    const std::optional<cuda::Map> found =
        find_cuda_epilogue(graph.attribute(id).text("activation"));
    if (!found) return nullptr;
    facts.map = *found;
  }
  return std::make_unique<LinearStep>(x->rows, x->width, y->width, facts);
}

// dx[rows, k] = dy[rows, n] . w[n, k].
class InputGradientStep final : public ProductStep {
 public:
  InputGradientStep(Size rows, std::int64_t n, std::int64_t k)
      : ProductStep(std::move(rows), n * k), n_(n), k_(k) {}
  std::vector<std::size_t> half_results() const override { return {0}; }
  bool can_write_half(std::size_t) const override { return true; }
  bool takes(CudaFollower follower) const override {
    return follower == CudaFollower::MapGradient && !is_large();
  }
  void add_to(CudaProducts& products, const CudaCall& call) const override {
    CudaProducts::Entry entry = entry_of(call);
    entry.product.b_by_k = true;
    entry.product.n = k_;
    entry.product.m = call.extent(rows_);
    entry.product.k = call.extent(Size(n_));
    entry.product.c = call.output(0);
    entry.product.c_half = call.output_half(0);
    products.add(entry);
  }

 private:
  std::int64_t n_, k_;
};

std::unique_ptr<CudaStep> make_input_gradient(const Graph& graph, NodeId id) {
  const std::optional<CudaRows> dy = cuda_rows(graph.type(graph.input(id, 0)));
  const std::optional<CudaRows> dx = cuda_rows(graph.types(id)[0]);
  if (!dy || !dx || !is_float(graph, graph.input(id, 1))) return nullptr;
  return std::make_unique<InputGradientStep>(dy->rows, dy->width, dx->width);
}

std::int64_t parts_of(std::int64_t rows) {
  return cuda::product_parts(rows);
}

// dw[n, k] = dy[rows, n]^T . x[rows, k].
class WeightGradientStep final : public ProductStep {
 public:
  WeightGradientStep(Size rows, std::int64_t n, std::int64_t k)
      : ProductStep(std::move(rows), n * k, true), n_(n), k_(k) {}
  bool takes(CudaFollower follower) const override {
    return follower == CudaFollower::Sum && !is_large();
  }
  std::vector<CudaParts> parts() const override {
    if (is_large()) return {};
    return {{0, rows_, parts_of}};
  }
  // Room for one operand the other way around, the narrower one.
  std::int64_t scratch_bytes(const Graph&, NodeId, const CudaSizes& sizes) const override {
    if (!is_large() || sizes.precision != cuda::Precision::Tf32) return 0;
    return sizes.capacity(rows_) * std::min(n_, k_) * 4;
  }
  void add_to(CudaProducts& products, const CudaCall& call) const override {
    CudaProducts::Entry entry = entry_of(call);
    cuda::Product& product = entry.product;
    product.a_by_k = product.b_by_k = true;
    product.n = k_;
    product.m = call.extent(Size(n_));
    product.k = call.extent(rows_);
    product.is_rounded = false;
    product.c = call.output(0);
    entry.turned = reinterpret_cast<float*>(call.scratch);
    const auto count = static_cast<std::int32_t>(parts_of(product.k.capacity));
    if (!is_large() && count > 1) {
      product.parts = count;
      product.c = reinterpret_cast<float*>(call.parts[0]);
    }
    products.add(entry);
  }

 private:
  std::int64_t n_, k_;
};

std::unique_ptr<CudaStep> make_weight_gradient(const Graph& graph, NodeId id) {
  const std::optional<CudaRows> dy = cuda_rows(graph.type(graph.input(id, 0)));
  const std::optional<CudaRows> x = cuda_rows(graph.type(graph.input(id, 1)));
  if (!dy || !x) return nullptr;
  return std::make_unique<WeightGradientStep>(dy->rows, dy->width, x->width);
}

const Register linear{CudaKernel{"linear", make_linear, always_takes_padding}};
const Register fused_linear{CudaKernel{"fused_linear", make_linear, always_takes_padding}};
const Register input_gradient{
    CudaKernel{"linear_input_gradient", make_input_gradient, always_takes_padding}};
const Register weight_gradient{
    CudaKernel{"linear_weight_gradient", make_weight_gradient, always_takes_padding}};

}  // namespace
}  // namespace lathe::engine
