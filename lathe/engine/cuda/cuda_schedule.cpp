#include "lathe/engine/cuda/cuda_schedule.h"

#include <algorithm>

#include "lathe/engine/cuda/cuda_row_program.h"

namespace lathe::engine {
namespace {

// How much one row program may hold: its registers are in shared memory, and its instructions and
// formats are arguments of a kernel.
constexpr std::int64_t kRegisterBytes = 96 << 10;
constexpr std::size_t kMostMembers = 10, kMostLoads = 8, kMostFormats = cuda::kMostRowFormats;

class Scheduler {
 public:
  explicit Scheduler(CudaPlan& plan)
      : plan_(plan),
        state_(plan.steps.size(), State::Waiting),
        producer_(plan.slots.size(), -1),
        partial_(plan.slots.size(), -1) {
    for (std::size_t i = 0; i < plan.steps.size(); ++i)
      for (const int slot : plan.steps[i].outputs) producer_[at(slot)] = static_cast<int>(i);
    num_readers_.resize(plan.slots.size());
    for (const CudaPlanStep& step : plan.steps)
      for (const int slot : step.inputs)
        if (slot >= 0) ++num_readers_[at(slot)];
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      const CudaProductRows* const rows = step(i).product_rows();
      are_few_.push_back(rows != nullptr && counts_sequences(plan.graph, rows->rows));
    }
    for (const auto& [name, value] : plan.graph.outputs()) ++num_readers_[plan.slot(value)];
    for (const auto& [state, value] : plan.graph.state_updates()) ++num_readers_[plan.slot(value)];
  }

  void run() {
    while (order_.size() < plan_.steps.size()) {
      const std::size_t before = order_.size();
      for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
        if (!is_ready(i) || waits_for_company(i)) continue;
        const CudaGroup group = step(i).group();
        if (group == CudaGroup::None) launch({i}, group);
        if (group == CudaGroup::Rows) launch(row_program_from(i), group);
        if (group == CudaGroup::Products) launch(products_from(i, are_few_[i]), group);
        if (group == CudaGroup::Packed) launch(packed_from(i), group);
        if (group == CudaGroup::Indices) launch(ready_from(i, cuda::kMostIndices), group);
        if (group == CudaGroup::Formats || group == CudaGroup::LearnedSteps ||
            group == CudaGroup::Vectors)
          launch(ready_from(i, plan_.steps.size()), group);
        if (group == CudaGroup::Tables) launch(ready_from(i, cuda::kMostGradients), group);
      }
      if (order_.size() == before && !launch_waiting_products()) launch_late_group();
    }
    // Whoever reads a sum after the last step reads it whole.
    if (std::any_of(partial_.begin(), partial_.end(), [](int partial) { return partial >= 0; }))
      launch_sums();
    std::vector<CudaPlanStep> ordered;
    for (const std::size_t i : order_) ordered.push_back(std::move(plan_.steps[i]));
    plan_.steps = std::move(ordered);
  }

 private:
  enum class State { Waiting, InLaunch, Done };
  static std::size_t at(int index) { return static_cast<std::size_t>(index); }
  const CudaStep& step(std::size_t i) const { return *plan_.steps[i].step; }

  bool is_whole(int slot) const { return slot < 0 || partial_[at(slot)] < 0; }
  bool is_made(int slot) const {
    const int by = slot < 0 ? -1 : producer_[at(slot)];
    return by < 0 || (state_[at(by)] == State::Done && is_whole(slot));
  }
  bool is_ready(std::size_t i) const {
    return state_[i] == State::Waiting &&
           std::all_of(plan_.steps[i].inputs.begin(), plan_.steps[i].inputs.end(),
                       [&](int slot) { return is_made(slot); });
  }

  void launch(const std::vector<std::size_t>& members, CudaGroup group) {
    CudaLaunch made{{}, group, {}, {}};
    for (const std::size_t i : members) {
      state_[i] = State::Done;
      made.steps.push_back(order_.size());
      order_.push_back(i);
      // A sum beside a product is in as many parts as that.
      const bool is_beside_product =
          group == CudaGroup::Products && step(i).group() != CudaGroup::Products;
      const bool is_alone = group == CudaGroup::None && step(i).rows() != nullptr;
      for (const CudaParts& parts : is_alone ? std::vector<CudaParts>() : step(i).parts()) {
        const int slot = plan_.steps[i].outputs[parts.output];
        partial_[at(slot)] = plan_.steps[i].parts[parts.output] =
            static_cast<int>(plan_.partials.size());
        plan_.partials.push_back(
            {slot, parts.rows, is_beside_product ? cuda::product_parts : parts.count});
      }
    }
    plan_.launches.push_back(std::move(made));
    // Of what cannot be written as bfloat16 the copies are made at once.
    std::vector<int> halves;
    for (const std::size_t i : members)
      for (std::size_t output = 0; output < plan_.steps[i].outputs.size(); ++output) {
        const int slot = plan_.steps[i].outputs[output];
        if (plan_.slots[at(slot)].half >= 0 && !step(i).can_write_half(output))
          halves.push_back(slot);
      }
    if (!halves.empty()) plan_.launches.push_back({{}, CudaGroup::Halves, {}, halves});
  }

  // Adds up all that is in parts.
  void launch_sums() {
    CudaLaunch sums{{}, CudaGroup::Sums, {}, {}};
    for (int& partial : partial_) {
      if (partial >= 0) sums.partials.push_back(partial);
      partial = -1;
    }
    plan_.launches.push_back(std::move(sums));
  }

  // Steps that wait for each other: everything else that can run goes first. Scalars may read each
  // other, because one block computes them in order.
  void launch_late_group() {
    for (const CudaGroup group :
         {CudaGroup::Squares, CudaGroup::Scalars, CudaGroup::Adamw, CudaGroup::Sgd}) {
      std::vector<std::size_t> members;
      for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
        if (step(i).group() != group || !is_ready(i)) continue;
        members.push_back(i);
        if (group == CudaGroup::Scalars) state_[i] = State::Done;
        if (members.size() == cuda::kMostScalars && group == CudaGroup::Scalars) break;
      }
      // A sum may let more of the group run at once.
      const bool has_partial =
          std::any_of(partial_.begin(), partial_.end(), [](int partial) { return partial >= 0; });
      if (has_partial) {
        if (group == CudaGroup::Scalars)
          for (const std::size_t i : members) state_[i] = State::Waiting;
        return launch_sums();
      }
      if (!members.empty()) return launch(members, group);
    }
    check(false, "a step that can run");
  }

  // A row program grows by steps over the same rows that read what it has: made by it, or loaded.
  std::vector<std::size_t> row_program_from(std::size_t first) {
    const CudaRowFacts& rows = *step(first).rows();
    const std::int64_t most_registers = kRegisterBytes / (rows.width * 4);
    std::vector<std::size_t> members;
    std::set<int> known;
    std::size_t loads = 0, formats = 0;
    std::int64_t vectors = 0, sums = 0, learned_steps = 0;
    const auto can_join = [&](std::size_t i) {
      const CudaRowFacts* const own = step(i).rows();
      if (state_[i] != State::Waiting || step(i).group() != CudaGroup::Rows || own == nullptr ||
          own->rows != rows.rows || own->width != rows.width)
        return false;
      bool is_connected = members.empty();
      std::size_t more_loads = 0;
      const std::vector<int>& inputs = plan_.steps[i].inputs;
      for (std::size_t input = 0; input < inputs.size(); ++input) {
        const bool is_row =
            std::find(own->operands.begin(), own->operands.end(), input) != own->operands.end();
        if (is_row && known.contains(inputs[input])) {
          is_connected = true;
          continue;
        }
        if (!is_made(inputs[input])) return false;
        more_loads += is_row ? 1 : 0;
      }
      const auto needed = static_cast<std::int64_t>(loads + more_loads + members.size() + 1) +
                          vectors + own->vectors + sums + own->sums;
      if (!members.empty() &&
          (loads + more_loads > kMostLoads || members.size() >= kMostMembers ||
           needed > most_registers || vectors + own->vectors > cuda::kMostVectors ||
           learned_steps + own->learned_steps > cuda::kMostRowSteps ||
           formats + (step(i).has_format() ? 1 : 0) > kMostFormats))
        return false;
      return is_connected;
    };
    bool has_grown = true;
    while (has_grown) {
      has_grown = false;
      for (std::size_t i = first; i < plan_.steps.size(); ++i) {
        if (!can_join(i)) continue;
        has_grown = true;
        state_[i] = State::InLaunch;
        members.push_back(i);
        formats += step(i).has_format() ? 1 : 0;
        vectors += step(i).rows()->vectors;
        sums += step(i).rows()->sums;
        learned_steps += step(i).rows()->learned_steps;
        for (const std::size_t operand : step(i).rows()->operands)
          if (known.insert(plan_.steps[i].inputs[operand]).second) ++loads;
        known.insert(plan_.steps[i].outputs.front());
      }
    }
    return members;
  }

  // All of a group that are ready, up to so many.
  std::vector<std::size_t> ready_from(std::size_t first, std::size_t most) const {
    std::vector<std::size_t> members;
    for (std::size_t i = first; i < plan_.steps.size() && members.size() < most; ++i)
      if (step(i).group() == step(first).group() && is_ready(i)) members.push_back(i);
    return members;
  }

  // Products with packed weights that multiply the same.
  std::vector<std::size_t> packed_from(std::size_t first) const {
    std::vector<std::size_t> members;
    for (std::size_t i = first; i < plan_.steps.size() && members.size() < cuda::kMostRowProducts;
         ++i)
      if (step(i).group() == CudaGroup::Packed && is_ready(i) &&
          plan_.steps[i].inputs.front() == plan_.steps[first].inputs.front())
        members.push_back(i);
    return members;
  }

  // Gradients of weights over few rows: nobody waits for them but the update, while products beside
  // them are shorter than they are. They join the next launch over more rows.
  bool can_wait(std::size_t i) const { return are_few_[i] && step(i).product_rows()->are_summed; }
  // With the sums that follow them.
  bool waits_for_company(std::size_t i) const {
    if (step(i).group() == CudaGroup::Products) return can_wait(i);
    if (step(i).follower() != CudaFollower::Sum) return false;
    for (std::size_t product = 0; product < i; ++product)
      if (step(product).group() == CudaGroup::Products && is_ready(product) && can_wait(product) &&
          can_follow(i, product))
        return true;
    return false;
  }
  bool launch_waiting_products() {
    for (std::size_t i = 0; i < plan_.steps.size(); ++i)
      if (step(i).group() == CudaGroup::Products && is_ready(i)) {
        launch(products_from(i, false), CudaGroup::Products);
        return true;
      }
    return false;
  }

  // All products that are ready, each with what may follow it; without those that can wait where
  // the others have few rows, too.
  std::vector<std::size_t> products_from(std::size_t first, bool others_wait) {
    std::vector<std::size_t> members;
    for (std::size_t i = 0; i < plan_.steps.size(); ++i)
      if (step(i).group() == CudaGroup::Products && is_ready(i) && !are_few_[i])
        others_wait = false;
    for (std::size_t i = others_wait ? first : 0; i < plan_.steps.size(); ++i) {
      if (step(i).group() != CudaGroup::Products || !is_ready(i) || (others_wait && can_wait(i)))
        continue;
      state_[i] = State::InLaunch;
      members.push_back(i);
      for (std::size_t next = i + 1; next < plan_.steps.size(); ++next) {
        if (!can_follow(next, i)) continue;
        state_[next] = State::InLaunch;
        members.push_back(next);
        break;
      }
    }
    return members;
  }

  bool can_follow(std::size_t i, std::size_t product) const {
    const CudaFollower follower = step(i).follower();
    if (state_[i] != State::Waiting || follower == CudaFollower::None ||
        !step(product).takes(follower))
      return false;
    const std::vector<int>& inputs = plan_.steps[i].inputs;
    const int result = plan_.steps[product].outputs.front();
    if (follower == CudaFollower::Sum) return inputs.front() == plan_.steps[product].inputs.front();
    if (inputs.front() != result) return false;
    return follower == CudaFollower::Map ||
           (num_readers_[at(result)] == 1 && inputs[1] != result && is_made(inputs[1]));
  }

  CudaPlan& plan_;
  std::vector<State> state_;
  std::vector<int> producer_;     // the step that makes a slot; -1: none
  std::vector<int> partial_;      // of a slot that is in parts; -1: it is whole
  std::vector<int> num_readers_;  // of a slot
  std::vector<bool> are_few_;     // the rows of a product
  std::vector<std::size_t> order_;
};

}  // namespace

void schedule(CudaPlan& plan) {
  Scheduler(plan).run();
}

}  // namespace lathe::engine
