#include "lathe/engine/cuda/cuda_executor.h"

#include <chrono>
#include <cstring>
#include <limits>
#include <mutex>

#include "lathe/core/graph_text.h"
#include "lathe/engine/backend.h"
#include "lathe/engine/bound_value.h"
#include "lathe/engine/cuda/cuda_machine.h"
#include "lathe/engine/cuda/cuda_measure.h"
#include "lathe/engine/format_precision.h"
#include "lathe/engine/lower.h"
#include "lathe/engine/origin.h"
#include "lathe/engine/packed_weights.h"
#include "lathe/engine/parameter_graph.h"
#include "lathe/engine/symbol_binding.h"

namespace lathe::engine {
namespace {

// Held by whoever plans, allocates, runs for the first time or captures. CUDA loads a kernel when
// it is first launched; that, like giving memory, may wait for all streams, which fails while
// another thread captures one. Replays need nobody's leave. Executors hold others, which compute
// states.
std::recursive_mutex& setup() {
  static std::recursive_mutex mutex;
  return mutex;
}

}  // namespace

void CudaMachine::compute_parameters() {
  if (parameters == nullptr) return;
  Feed feed;
  for (const std::string& name : parameter_sources) feed.emplace(name, host.find(name)->second);
  for (const auto& [name, tensor] : parameters->run(feed))
    set_resident(plan.slot({plan.graph.at(name), 0}), tensor);
}

void CudaMachine::check_sizes(const SymbolValues& sizes) const {
  plan.doubtful_sizes.check(plan.graph, sizes);
  for (const auto& [symbol, value] : sizes)
    if (value > std::numeric_limits<std::int32_t>::max())
      fail("{} is {}: device cuda counts to {} at most", symbol, value,
           std::numeric_limits<std::int32_t>::max());
}

SymbolValues CudaMachine::bucket(const SymbolValues& sizes) const {
  SymbolValues result = sizes;
  for (const std::string& symbol : plan.rounded_symbols)
    if (const auto found = result.find(symbol); found != result.end())
      found->second = bucket_of(found->second);
  return result;
}

namespace {

// What comes from states alone is computed where it can be: on the GPU unless a format has no
// kernel there. Its results are copied once, not in every run.
std::unique_ptr<Executor> make_parameter_executor(const Graph& graph,
                                                  const ExecutionOptions& options) {
  ExecutionOptions own = options;
  own.precision = Precision::Float32;  // states are what they are in any precision
  if (!count_fallbacks(graph, find_backend("cuda")).empty()) own.device = "cpu";
  return make_executor(graph, State(), own);
}

}  // namespace

CudaExecutor::CudaExecutor(const Graph& graph, State state, const ExecutionOptions& options)
    : machine_(std::make_unique<CudaMachine>()) {
  CudaMachine& machine = *machine_;
  const Backend& backend = find_backend("cuda");
  // Where every run changes states, what comes from them alone is computed in every run, too.
  const bool is_training = changes_parameters(graph);
  SplitGraph split = is_training ? SplitGraph{{}, graph, {}}
                                 : split_parameters(graph, find_packed_weights(graph, backend));
  // Refuses before a GPU is touched.
  const auto precision = static_cast<cuda::Precision>(options.precision);
  check_formats(graph, options.precision);
  machine.plan = make_cuda_plan(lower(split.main, backend), precision);
  if (!split.parameters.outputs().empty())
    machine.parameters = make_parameter_executor(split.parameters, options);
  machine.parameter_sources = std::move(split.sources);
  machine.source = graph;
  machine.host = std::move(state);
  machine.pool = options.pool;
  const std::scoped_lock lock(setup());
  machine.kernels = cuda_library().kernels;
  machine.work = std::make_unique<CudaMachine::Work>(*machine.kernels);
  machine.bases.resize(machine.plan.slots.size());
  machine.place_residents();
  machine.compute_parameters();
  machine.copy_resident_halves();
  machine.prepare_steps();
  for (const auto& [slot, value] : machine.plan.graph.state_updates()) {
    // The device has the only copy from here on.
    const auto found = machine.host.find(machine.plan.graph.name(slot));
    if (found != machine.host.end()) found->second = Tensor();
  }
}

CudaExecutor::~CudaExecutor() {
  const std::scoped_lock lock(setup());
  machine_.reset();
}

int CudaExecutor::most_begun() const {
  return static_cast<int>(kMostBegun);
}

Feed CudaExecutor::run(const Feed& inputs) {
  check(machine_->begun.empty(), "that every run begun before is finished");
  start(inputs);
  return finish();
}

Feed CudaExecutor::finish() {
  CudaMachine& machine = *machine_;
  check(!machine.begun.empty(), "a run that was begun");
  CudaMachine::Begun run = std::move(machine.begun.front());
  machine.begun.pop_front();
  try {
    machine.await(run);
  } catch (...) {
    // Nobody asks for what was begun behind a run that failed.
    machine.device().synchronize(machine.work->stream);
    machine.begun.clear();
    throw;
  }
  return std::move(run.outputs);
}

void CudaExecutor::start(const Feed& inputs) {
  CudaMachine& machine = *machine_;
  check(machine.begun.size() < kMostBegun, "that a run is finished before another begins");
  const SymbolValues sizes = machine.plan.inputs.bind_symbols(inputs);
  machine.check_sizes(sizes);
  machine.last_sizes = sizes;
  const SymbolValues needed = machine.bucket(sizes);
  std::unique_lock lock(setup(), std::defer_lock);
  if (machine.states_changed || !machine.is_captured(needed)) lock.lock();
  machine.ensure_capacity(needed);
  if (machine.states_changed) {
    machine.compute_parameters();
    machine.copy_resident_halves();
    machine.prepare_steps();
  }
  machine.states_changed = false;
  CudaMachine::Prepared& one = machine.prepare(needed);
  const std::size_t half = machine.next_half;
  std::vector<Tensor> read_in_place = machine.copy_in(inputs, sizes, one, half);
  cuda::Capture*& capture = one.captures[half];
  if (one.has_run && capture == nullptr)
    capture = machine.capture([&] { machine.enqueue_with_copies(one, half); }, one.num_nodes);
  if (capture != nullptr)
    check_cuda(machine.device().launch(capture, machine.work->stream));
  else
    machine.enqueue_with_copies(one, half);
  if (lock.owns_lock()) lock.unlock();
  one.has_run = true;
  machine.last_nodes = one.num_nodes;
  machine.begun.push_back(machine.copy_out(sizes, half));
  machine.begun.back().read_in_place = std::move(read_in_place);
  machine.next_half = (half + 1) % kMostBegun;
}

State CudaExecutor::state() const {
  State result = machine_->host;
  const CudaPlan& plan = machine_->plan;
  for (const auto& [slot, value] : plan.graph.state_updates()) {
    const Type& type = plan.graph.types(slot)[0];
    Tensor tensor(type.dtype, type.dims({}));
    check_cuda(machine_->device().copy(tensor.mutable_bytes(),
                                       machine_->bases[plan.slot({slot, 0})], tensor.num_bytes(),
                                       machine_->work->stream));
    check_cuda(machine_->device().synchronize(machine_->work->stream));
    result[plan.graph.name(slot)] = std::move(tensor);
  }
  return result;
}

void CudaExecutor::set_state(const State& values) {
  CudaMachine& machine = *machine_;
  check_new_state(machine.source, values);
  const Graph& graph = machine.plan.graph;
  for (const auto& [name, tensor] : values) {
    const std::optional<NodeId> id = graph.find(name);
    if (id) machine.set_resident(machine.plan.slot({*id, 0}), tensor);
    if (!id || !graph.state_updates().contains(*id)) machine.host[name] = tensor;
  }
  machine.states_changed = true;
}

PlanReport CudaExecutor::report() const {
  PlanReport report;
  const CudaPlan& plan = machine_->plan;
  if (machine_->parameters != nullptr) {
    const PlanReport parameters = machine_->parameters->report();
    report.steps = parameters.steps;
    for (PlannedStep& step : report.steps) step.is_for_states = true;
    report.lowered = "# when states change\n" + parameters.lowered + "# in every run\n";
  }
  for (std::size_t launch = 0; launch < plan.launches.size(); ++launch)
    for (const std::size_t index : plan.launches[launch].steps) {
      const NodeId node = plan.steps[index].node;
      PlannedStep step{.name = plan.graph.name(node),
                       .op = plan.graph.op(node).name,
                       .origins = {plan.graph.name(node)},
                       .stage = static_cast<int>(launch),
                       .flops = {},
                       .bytes = {}};
      if (const Origin* origin = plan.graph.find_annotation<Origin>(node))
        step.origins = origin->nodes;
      if (plan.graph.op(node).flops) step.flops = plan.graph.op(node).flops(plan.graph.call(node));
      report.steps.push_back(std::move(step));
    }
  report.lowered += print(plan.graph);
  report.arena_bytes = machine_->arena.size();
  report.state_bytes = machine_->residents.size();
  report.arena_bytes_unshared = machine_->unshared_bytes;
  report.capacity = machine_->capacity;
  report.last_sizes = machine_->last_sizes;
  return report;
}

std::vector<double> CudaExecutor::repeat(int times, bool replays) {
  CudaMachine& machine = *machine_;
  const auto found = machine.prepared.find(machine.bucket(machine.last_sizes));
  if (found == machine.prepared.end()) fail("device cuda: nothing has run that could be repeated");
  CudaMachine::Prepared& one = found->second;
  const cuda::Device& device = machine.device();
  if (replays && one.has_run && one.bare == nullptr) {
    const std::scoped_lock lock(setup());
    std::int32_t num_nodes = 0;
    one.bare = machine.capture([&] { machine.enqueue(one); }, num_nodes);
  }
  // Many at once: the clock is read when the GPU is done, which takes as long as a short run.
  constexpr double kShortestSample = 2e-3;
  int count = 1;
  std::vector<double> seconds;
  while (static_cast<int>(seconds.size()) < times) {
    check_cuda(device.synchronize(machine.work->stream));
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) {
      if (replays && one.bare != nullptr)
        check_cuda(device.launch(one.bare, machine.work->stream));
      else
        machine.enqueue(one);
    }
    check_cuda(device.synchronize(machine.work->stream));
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    if (taken.count() < kShortestSample && seconds.empty() && count < 4096)
      count *= 2;
    else
      seconds.push_back(taken.count() / count);
  }
  return seconds;
}

int CudaExecutor::num_captured_nodes() const {
  return machine_->last_nodes;
}

namespace {

std::shared_ptr<std::byte[]> make_pinned_memory(std::int64_t bytes) {
  const std::shared_ptr<CudaBuffer> memory(new CudaBuffer(CudaBuffer::Place::Pinned),
                                           [](const CudaBuffer* buffer) {
                                             const std::scoped_lock lock(setup());
                                             delete buffer;
                                           });
  const std::scoped_lock lock(setup());
  memory->reserve(std::max(bytes, kLine));
  std::memset(memory->data(), 0, static_cast<std::size_t>(memory->size()));
  return {memory, memory->data()};
}

const Register registration{Backend{
    .name = "cuda",
    .summary = "an NVIDIA GPU: kernels of its own and cuBLASLt, replayed as one CUDA graph",
    .can_run =
        [](const Graph& graph, NodeId id) {
          return graph.op(id).is_alias || make_cuda_step(graph, id) != nullptr;
        },
    .is_available =
        [] {
          try {
            cuda_library();
            return true;
          } catch (const UserError&) {
            return false;
          }
        },
    .warm_up =
        [] {
          try {
            const CudaMachine::Work started(*cuda_library().kernels);
          } catch (const std::exception&) {  // said when an executor is made
          }
        },
    .make = [](const Graph& graph, State state,
               const ExecutionOptions& options) -> std::unique_ptr<Executor> {
      return std::make_unique<CudaExecutor>(graph, std::move(state), options);
    },
    .make_input_memory = make_pinned_memory,
    .measure = [](ThreadPool*) { return make_cuda_measure(); },
    .batch_tokens = 16384,
    .precisions = {Precision::Float32, Precision::Tf32, Precision::Bf16},
}};

}  // namespace
}  // namespace lathe::engine
