#include "lathe/engine/cuda/cuda_single_row.h"

#include <algorithm>

#include "lathe/engine/bound_value.h"
#include "lathe/engine/cuda/cuda_machine.h"

namespace lathe::engine {
namespace {

using Kind = CudaSingleRow::Kind;

class Finder {
 public:
  explicit Finder(const CudaPlan& plan) : plan_(plan), num_readers_(plan.slots.size()) {
    for (const CudaPlanStep& step : plan.steps)
      for (const int slot : step.inputs)
        if (slot >= 0) ++num_readers_[at(slot)];
    for (const auto& [name, value] : plan.graph.outputs()) ++num_readers_[plan.slot(value)];
    for (const auto& [state, value] : plan.graph.state_updates()) ++num_readers_[plan.slot(value)];
  }

  std::optional<CudaSingleRow> run_around(int launch) const {
    if (are_products(launch)) {
      CudaSingleRow run{Kind::Products, launch, launch, launch};
      if (is_norm_of(launch - 1, members(launch).front()->inputs.front())) --run.first;
      if (is_gate_of(launch + 1, members(launch))) ++run.last;
      return run;
    }
    if (!is_only(launch, "cached_attention")) return std::nullopt;
    const bool turns_both = turns(launch - 1, launch) && turns(launch - 2, launch) &&
                            are_alike(step(launch - 1), step(launch - 2));
    return CudaSingleRow{Kind::Attention, turns_both ? launch - 2 : launch, launch, launch};
  }

 private:
  static std::size_t at(int index) { return static_cast<std::size_t>(index); }
  bool is_there(int launch) const {
    if (launch < 0 || at(launch) >= plan_.launches.size()) return false;
    const CudaLaunch& one = plan_.launches[at(launch)];
    return !one.steps.empty() && one.joined < 0 && one.early < 0;
  }
  const CudaPlanStep& step(int launch) const {
    return plan_.steps[plan_.launches[at(launch)].steps.front()];
  }
  bool is(const CudaPlanStep& step, std::string_view op) const {
    return plan_.graph.is(step.node, op);
  }
  bool is_only(int launch, std::string_view op) const {
    return is_there(launch) && plan_.launches[at(launch)].steps.size() == 1 && is(step(launch), op);
  }
  bool is_read_once(int slot) const {
    return num_readers_[at(slot)] == 1 && plan_.slots[at(slot)].kind == CudaSlot::Kind::Arena;
  }

  std::vector<const CudaPlanStep*> members(int launch) const {
    std::vector<const CudaPlanStep*> result;
    for (const std::size_t index : plan_.launches[at(launch)].steps)
      result.push_back(&plan_.steps[index]);
    return result;
  }

  bool are_products(int launch) const {
    if (!is_there(launch)) return false;
    const CudaGroup group = plan_.launches[at(launch)].group;
    if (group != CudaGroup::Products && group != CudaGroup::Packed) return false;
    const std::vector<const CudaPlanStep*> all = members(launch);
    return all.size() <= cuda::kMostRowProducts &&
           std::all_of(all.begin(), all.end(), [&](const CudaPlanStep* one) {
             const bool is_product =
                 is(*one, "linear") || is(*one, "fused_linear") || is(*one, "packed_linear");
             return is_product && one->inputs.front() == all.front()->inputs.front();
           });
  }

  bool is_norm(const CudaPlanStep& one) const {
    return is(one, "rms_norm") || is(one, "layer_norm") || is(one, "fused_layer_norm");
  }
  // A norm of one value or of a sum of two, which makes that slot.
  bool is_norm_of(int launch, int slot) const {
    if (!is_there(launch) || plan_.launches[at(launch)].group != CudaGroup::Rows) return false;
    const std::vector<const CudaPlanStep*> all = members(launch);
    if (!is_norm(*all.back()) || all.back()->outputs.front() != slot) return false;
    if (all.size() == 1) return true;
    const CudaPlanStep& sum = *all.front();
    return all.size() == 2 && is(sum, "add") && !is(*all.back(), "fused_layer_norm") &&
           all.back()->inputs.front() == sum.outputs.front() &&
           plan_.slots[at(sum.inputs[0])].type == plan_.slots[at(sum.inputs[1])].type;
  }

  // The product of what two products make, which nobody else reads.
  bool is_gate_of(int launch, const std::vector<const CudaPlanStep*>& products) const {
    if (products.size() != 2 || !is_only(launch, "mul")) return false;
    const int one = products[0]->outputs.front(), other = products[1]->outputs.front();
    const std::vector<int>& inputs = step(launch).inputs;
    const bool multiplies =
        (inputs[0] == one && inputs[1] == other) || (inputs[0] == other && inputs[1] == one);
    return multiplies && plan_.slots[at(one)].type == plan_.slots[at(other)].type &&
           is_read_once(one) && is_read_once(other);
  }

  bool turns(int launch, int attention) const {
    if (!is_only(launch, "rope")) return false;
    const int made = step(launch).outputs.front();
    const std::vector<int>& inputs = step(attention).inputs;
    return (made == inputs[0] || made == inputs[1]) && is_read_once(made);
  }
  // Rotations of two values by the same angles.
  bool are_alike(const CudaPlanStep& one, const CudaPlanStep& other) const {
    if (one.outputs.front() == other.outputs.front()) return false;
    Attributes left = plan_.graph.attributes(one.node), right = plan_.graph.attributes(other.node);
    left.erase("heads");
    right.erase("heads");
    return left == right && one.inputs[1] == other.inputs[1];
  }

  const CudaPlan& plan_;
  std::vector<int> num_readers_;
};

// Whether no run changes it, so that a kernel may read it before the one in front of it has ended.
bool is_kept(const Graph& graph, Value value) {
  return (graph.is(value.node, "state") || graph.is(value.node, "constant")) &&
         !graph.state_updates().contains(value.node);
}

// A float product of one row; nullopt for what is more than that.
std::optional<cuda::RowProduct> row_product(const cuda::Product& product) {
  const bool is_plain = product.a_as == cuda::Number::F32 && product.b_as == cuda::Number::F32 &&
                        product.bias_as == cuda::Number::F32 && !product.a_by_k &&
                        !product.b_by_k && product.before == nullptr && product.sums == nullptr &&
                        product.parts == 1 && product.c_half == nullptr &&
                        product.y_half == nullptr && product.m.capacity == 1 &&
                        product.k.symbol == nullptr && product.k.capacity % 4 == 0;
  if (!is_plain || (product.c == nullptr) == (product.y == nullptr)) return std::nullopt;
  return cuda::RowProduct{.weight = product.b,
                          .row_bytes = product.k.capacity * 4,
                          .bias = static_cast<const float*>(product.bias),
                          .map = product.y == nullptr ? cuda::Map::Identity : product.map,
                          .n = product.n,
                          .y = product.y == nullptr ? product.c : product.y};
}

// Adds the products of one step to those of others, if they lie alike.
bool join(std::optional<cuda::RowProductsArgs>& all, const cuda::RowProductsArgs& more) {
  if (!all) {
    all = more;
    return true;
  }
  if (all->code != more.code || all->are_exponents != more.are_exponents ||
      all->group_bits != more.group_bits || all->step != more.step || all->k != more.k)
    return false;
  all->products[all->count++] = more.products[0];
  all->may_begin_early = all->may_begin_early && more.may_begin_early;
  return true;
}

}  // namespace

std::vector<CudaSingleRow> find_single_rows(const CudaPlan& plan) {
  std::vector<CudaSingleRow> runs;
  if (plan.precision != cuda::Precision::Float32 || changes_parameters(plan.graph)) return runs;
  const Finder finder(plan);
  for (int launch = 0; launch < static_cast<int>(plan.launches.size()); ++launch)
    if (const std::optional<CudaSingleRow> run = finder.run_around(launch)) runs.push_back(*run);
  return runs;
}

std::optional<cuda::RowProductsArgs> CudaMachine::row_products(const Prepared& one,
                                                               const CudaSingleRow& run) const {
  const auto launch = static_cast<std::size_t>(run.main);
  std::vector<std::byte*> operands;
  std::optional<cuda::RowProductsArgs> args;
  if (plan.launches[launch].group == CudaGroup::Packed) {
    for (const std::size_t index : plan.launches[launch].steps) {
      const auto product = plan.steps[index].step->row_product(call(one, launch, index, operands));
      if (!product || !join(args, *product)) return std::nullopt;
    }
  } else {
    const auto own = products(one, launch).all_own(plan.precision);
    if (!own) return std::nullopt;
    for (const cuda::Product& product : *own) {
      const std::optional<cuda::RowProduct> row = row_product(product);
      if (!row) return std::nullopt;
      cuda::RowProductsArgs more;
      more.input.sources[0] = static_cast<const float*>(product.a);
      more.count = 1;
      more.products[0] = *row;
      more.k = product.k.capacity;
      more.rows = product.m;
      if (!join(args, more)) return std::nullopt;
    }
    for (const std::size_t index : plan.launches[launch].steps)
      args->may_begin_early =
          args->may_begin_early && is_kept(plan.graph, plan.graph.input(plan.steps[index].node, 1));
  }
  if (run.first < run.main) {
    const auto before = static_cast<std::size_t>(run.first);
    const std::vector<std::size_t>& steps = plan.launches[before].steps;
    const NodeId node = plan.steps[steps.back()].node;
    const bool is_fused = plan.graph.is(node, "fused_layer_norm");
    const std::size_t gamma = is_fused ? 2 : 1;
    cuda::RowInput& input = args->input;
    {
      const CudaCall norm = call(one, before, steps.back(), operands);
      input = {.sources = {norm.input(0), is_fused ? norm.input(1) : nullptr},
               .has_norm = true,
               .is_rms = plan.graph.is(node, "rms_norm"),
               .gamma = norm.input(gamma),
               .eps = static_cast<float>(plan.graph.attribute(node).real("eps")),
               .normalized = norm.output(0)};
      if (!input.is_rms) input.beta = norm.input(gamma + 1);
    }
    if (steps.size() == 2) {
      const CudaCall sum = call(one, before, steps.front(), operands);
      input.sources[0] = sum.input(0);
      input.sources[1] = sum.input(1);
      input.sum = sum.output(0);
    }
    args->may_begin_early =
        args->may_begin_early && is_kept(plan.graph, plan.graph.input(node, gamma));
  }
  if (run.last > run.main) {
    const auto behind = static_cast<std::size_t>(run.last);
    args->gated = call(one, behind, plan.launches[behind].steps.front(), operands).output(0);
  }
  return args;
}

std::optional<cuda::CachedAttentionArgs> CudaMachine::token_attention(
    const Prepared& one, const CudaSingleRow& run) const {
  const auto launch = static_cast<std::size_t>(run.main);
  const std::size_t attention = plan.launches[launch].steps.front();
  std::vector<std::byte*> operands;
  std::optional<cuda::CachedAttentionArgs> args =
      plan.steps[attention].step->cached_attention(call(one, launch, attention, operands));
  if (!args || !cuda::is_single_token(*args)) return std::nullopt;
  args->may_begin_early = run.first > 0;
  for (auto before = static_cast<std::size_t>(run.first); before < launch; ++before) {
    const std::size_t index = plan.launches[before].steps.front();
    const CudaCall rope = call(one, before, index, operands);
    const auto rotation = plan.steps[index].step->token_rotation(rope);
    if (!rotation) return std::nullopt;
    args->rotation = *rotation;
    const bool is_query = plan.steps[index].outputs.front() == plan.steps[attention].inputs[0];
    (is_query ? args->q : args->k) = rope.input(0);
  }
  return args;
}

void CudaMachine::find_single_rows(Prepared& one) const {
  for (const CudaSingleRow& run : plan.single_rows) {
    Prepared::SingleRow& found = one.single_rows[static_cast<std::size_t>(run.first)];
    found.num_launches = static_cast<std::size_t>(run.last - run.first + 1);
    if (run.kind == Kind::Products)
      found.products = row_products(one, run);
    else
      found.attention = token_attention(one, run);
  }
}

// How many launches were done as one of a single row; 0: none.
std::size_t CudaMachine::launch_single_row(const Prepared& one, std::size_t launch) {
  const auto found = one.single_rows.find(launch);
  if (found == one.single_rows.end()) return 0;
  const Prepared::SingleRow& run = found->second;
  if (!run.products && !run.attention) return 0;
  for (std::size_t i = 0; i < run.num_launches; ++i) join_side(launch + i);
  if (run.products) {
    if (!kernels->row_products(*run.products, work->stream)) return 0;
  } else {
    kernels->cached_attention(*run.attention, work->stream);
  }
  check_cuda(device().launch_error());
  return run.num_launches;
}

}  // namespace lathe::engine
