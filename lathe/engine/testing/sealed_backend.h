#pragma once

// A second backend, for tests: a device whose memory the host cannot read. What runs on it has gone
// through the backend interface alone, because any other way to a state or a value is a fault.

#include <sys/mman.h>

#include <cstring>
#include <map>

#include "lathe/engine/backend.h"
#include "lathe/engine/lower.h"
#include "lathe/engine/symbol_binding.h"

namespace lathe::engine {

/// Memory that can be touched only while a kernel of the device runs, and by explicit copies.
class SealedMemory {
 public:
  SealedMemory()
      : base_(static_cast<std::byte*>(::mmap(nullptr, kBytes, PROT_NONE,
                                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
    check(base_ != MAP_FAILED, "address space for the sealed memory");
  }
  SealedMemory(const SealedMemory&) = delete;
  SealedMemory& operator=(const SealedMemory&) = delete;
  ~SealedMemory() { ::munmap(base_, kBytes); }

  /// Room for a tensor, until `release` to a place before it.
  std::byte* allocate(std::int64_t bytes) {
    std::byte* const result = base_ + used_;
    used_ += (static_cast<std::size_t>(bytes) + 63) / 64 * 64;
    check(used_ <= kBytes, "enough sealed memory");
    return result;
  }
  std::size_t used() const { return used_; }
  void release(std::size_t used) { used_ = used; }

  /// Runs a kernel: the memory is open while it does.
  template <typename Kernel>
  void launch(const Kernel& kernel) const {
    const Opening opening(base_);
    kernel();
  }
  void copy_in(std::byte* to, const Tensor& from) const {
    launch([&] { std::memcpy(to, from.bytes(), static_cast<std::size_t>(from.num_bytes())); });
  }
  Tensor copy_out(DType dtype, std::vector<std::int64_t> dims, const std::byte* from) const {
    Tensor result(dtype, std::move(dims));
    launch([&] {
      std::memcpy(result.mutable_bytes(), from, static_cast<std::size_t>(result.num_bytes()));
    });
    return result;
  }

 private:
  static constexpr std::size_t kBytes = std::size_t{1} << 30;  // of addresses, not of memory

  struct Opening {
    explicit Opening(std::byte* memory) : base(memory) { protect(PROT_READ | PROT_WRITE); }
    ~Opening() { protect(PROT_NONE); }
    void protect(int rights) const {
      if (::mprotect(base, kBytes, rights) != 0) std::abort();
    }
    std::byte* base;
  };

  std::byte* base_;
  std::size_t used_ = 0;
};

/// What crossed the border between host and device since the program began.
struct SealedTraffic {
  int runs = 0;
  int state_copies = 0;  ///< calls of `state`
};
inline SealedTraffic sealed_traffic;

/// Runs the ops' definitions, and one fused kernel of its own, on sealed memory.
class SealedExecutor final : public Executor {
 public:
  SealedExecutor(const Graph& graph, const State& state, const Backend& backend)
      : graph_(lower(graph, backend)), source_(graph) {
    for (const NodeId id : source_.nodes_of("state")) {
      const Tensor& value = state.find(source_.name(id))->second;
      states_[source_.name(id)] = memory_.allocate(value.num_bytes());
      memory_.copy_in(states_[source_.name(id)], value);
    }
    end_of_states_ = memory_.used();
  }

  Feed run(const Feed& inputs) override {
    ++sealed_traffic.runs;
    const SymbolValues symbols = bind_symbols(graph_, inputs);
    memory_.release(end_of_states_);
    std::map<Value, std::byte*> values;
    for (const NodeId id : graph_.topological_order()) {
      if (graph_.is(id, "state")) {
        values[{id, 0}] = states_.at(graph_.name(id));
        continue;
      }
      for (std::size_t i = 0; i < graph_.types(id).size(); ++i)
        values[{id, static_cast<std::int32_t>(i)}] =
            memory_.allocate(graph_.types(id)[i].num_bytes().evaluate(symbols));
      if (graph_.is(id, "input"))
        memory_.copy_in(values.at({id, 0}), inputs.find(graph_.name(id))->second);
      else
        memory_.launch([&] { compute(id, symbols, values); });
    }
    Feed outputs;
    for (const auto& [name, value] : graph_.outputs())
      outputs[name] = memory_.copy_out(graph_.type(value).dtype, graph_.type(value).dims(symbols),
                                       values.at(value));
    memory_.launch([&] {
      for (const auto& [state, value] : graph_.state_updates())
        std::memcpy(states_.at(graph_.name(state)), values.at(value),
                    static_cast<std::size_t>(graph_.type(value).num_bytes().constant()));
    });
    return outputs;
  }

  State state() const override {
    ++sealed_traffic.state_copies;
    State result;
    for (const auto& [name, place] : states_) {
      const Type& type = source_.types(source_.at(name))[0];
      result[name] = memory_.copy_out(type.dtype, type.dims({}), place);
    }
    return result;
  }

  void set_state(const State& values) override {
    check_new_state(source_, values);
    for (const auto& [name, value] : values) memory_.copy_in(states_.at(name), value);
  }

  PlanReport report() const override {
    PlanReport report;
    for (const NodeId id : graph_.topological_order())
      if (!graph_.op(id).is_source)
        report.steps.push_back({.name = graph_.name(id),
                                .op = graph_.op(id).name,
                                .origins = {},
                                .flops = {},
                                .bytes = {}});
    return report;
  }

  /// Where a state lies; not to be looked at from here.
  const std::byte* place_of_state(std::string_view name) const {
    return states_.find(name)->second;
  }

 private:
  // A kernel of the device: reads and writes the open memory.
  void compute(NodeId id, const SymbolValues& symbols,
               const std::map<Value, std::byte*>& values) const {
    std::vector<Tensor> operands(graph_.inputs(id).size());
    std::vector<const Tensor*> pointers(operands.size(), nullptr);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Value value = graph_.input(id, i);
      if (value.is_none()) continue;
      const Type& type = graph_.type(value);
      operands[i] = Tensor::view(type.dtype, type.dims(symbols), values.at(value), nullptr);
      pointers[i] = &operands[i];
    }
    std::vector<Tensor> results;
    for (const Type& type : graph_.types(id)) results.emplace_back(type.dtype, type.dims(symbols));
    if (graph_.is(id, "fused_linear"))
      add_to_linear(pointers, results);
    else
      graph_.op(id).reference({graph_.attribute(id), pointers, results});
    for (std::size_t i = 0; i < results.size(); ++i)
      std::memcpy(values.at({id, static_cast<std::int32_t>(i)}), results[i].bytes(),
                  static_cast<std::size_t>(results[i].num_bytes()));
  }

  static void add_to_linear(const std::vector<const Tensor*>& operands, std::vector<Tensor>& y) {
    const auto run = [](const char* name, const std::vector<const Tensor*>& inputs,
                        std::vector<Tensor>& results) {
      const Op& op = OpRegistry::instance().at(name, "op");
      const Attributes defaults;
      op.reference({AttributeReader(defaults, op.attributes), inputs, results});
    };
    std::vector<Tensor> product{Tensor(y[0].dtype(), y[0].dims())};
    run("linear", {operands[0], operands[1], operands[2]}, product);
    run("add", {&product[0], operands[3]}, y);
  }

  Graph graph_, source_;
  SealedMemory memory_;
  std::map<std::string, std::byte*, std::less<>> states_;
  std::size_t end_of_states_ = 0;
};

/// The record of the backend `sealed`, for a test to register. It fuses a residual into a linear
/// and nothing else: not what the CPU fuses.
inline Backend sealed_backend() {
  return {.name = "sealed",
          .summary = "a device whose memory the host cannot read",
          .can_run =
              [](const Graph& graph, NodeId id) {
                if (graph.is(id, "fused_linear"))
                  return graph.attribute(id).text("activation") == "none";
                return static_cast<bool>(graph.op(id).reference);
              },
          .make = [](const Graph& graph, State state,
                     const ExecutionOptions& options) -> std::unique_ptr<Executor> {
            return std::make_unique<SealedExecutor>(graph, state, find_backend(options.device));
          }};
}

}  // namespace lathe::engine
