#include "lathe/engine/cuda/cuda_executor.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <limits>
#include <mutex>

#include "lathe/core/graph_text.h"
#include "lathe/engine/backend.h"
#include "lathe/engine/cuda/cuda_formats.h"
#include "lathe/engine/cuda/cuda_measure.h"
#include "lathe/engine/cuda/cuda_memory.h"
#include "lathe/engine/cuda/cuda_plan.h"
#include "lathe/engine/cuda/cuda_products.h"
#include "lathe/engine/cuda/cuda_row_program.h"
#include "lathe/engine/lower.h"
#include "lathe/engine/memory_plan.h"
#include "lathe/engine/origin.h"
#include "lathe/engine/packed_weights.h"
#include "lathe/engine/parameter_graph.h"
#include "lathe/engine/reference_executor.h"
#include "lathe/engine/symbol_binding.h"

namespace lathe::engine {
namespace {

constexpr std::int64_t kLine = 256;  // what device memory is aligned to

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kLine - 1) / kLine * kLine;
}

// Held by whoever plans, allocates, runs for the first time or captures. CUDA loads a kernel when
// it is first launched; that, like giving memory, may wait for all streams, which fails while
// another thread captures one. Replays need nobody's leave. Executors hold others, which compute
// states.
std::recursive_mutex& setup() {
  static std::recursive_mutex mutex;
  return mutex;
}

// Values one after another in a block that is copied at once.
struct Block {
  std::vector<std::size_t> slots;
  std::vector<std::int64_t> offsets;
  std::int64_t bytes = 0;
};

}  // namespace

struct CudaExecutor::Machine {
  CudaPlan plan;
  Graph source;  // as the user wrote it: says what its states are
  State host;    // states as they were given; those that runs update are on the device alone
  std::unique_ptr<Executor> parameters;  // computes states that come from others
  std::vector<std::string> parameter_sources, computed;
  const cuda::KernelTable* kernels = nullptr;

  // The stream and what belongs to it.
  struct Work {
    explicit Work(const cuda::KernelTable& table) : device(table.device) {
      check_cuda(device.make_stream(&stream));
      if (const char* error = device.make_gemm(stream, &gemm)) {
        device.drop_stream(stream);
        check_cuda(error);
      }
    }
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;
    ~Work() {
      device.synchronize(stream);
      device.drop_gemm(gemm);
      device.drop_stream(stream);
    }
    const cuda::Device& device;
    cuda::Stream* stream = nullptr;
    cuda::Gemm* gemm = nullptr;
  };
  std::unique_ptr<Work> work;

  // One size: what its launches read beside values, and its capture once it has run.
  struct Prepared {
    CudaSizes sizes;
    CudaBuffer tables;
    std::vector<CudaGroupTable> groups;       // of each launch
    std::vector<std::int64_t> table_offsets;  // of each launch
    cuda::Capture* capture = nullptr;
    std::int32_t num_nodes = 0;
    bool has_run = false;
  };
  std::map<SymbolValues, Prepared> prepared;

  std::vector<std::byte*> bases;    // of each slot
  std::vector<std::byte*> parts;    // of each partial
  std::vector<std::byte*> scratch;  // of each launch
  CudaBuffer residents, arena;
  CudaBuffer staging{CudaBuffer::Place::Pinned};
  Block inputs, outputs;          // the inputs begin behind the rounded symbols' real values
  std::int64_t fault_offset = 0;  // in the outputs' block
  SymbolValues capacity, last_sizes;
  std::int64_t unshared_bytes = 0;
  bool states_changed = false;
  int last_nodes = 0;

  ~Machine() { drop_captures(); }
  void drop_captures() {
    for (auto& [sizes, one] : prepared)
      if (one.capture != nullptr) kernels->device.drop_capture(one.capture);
    prepared.clear();
  }

  void place_residents();
  void set_resident(std::size_t slot, const Tensor& tensor);
  void compute_parameters();
  void check_sizes(const SymbolValues& sizes) const;
  SymbolValues bucket(const SymbolValues& sizes) const;
  bool is_captured(const SymbolValues& bucket) const {
    const auto found = prepared.find(bucket);
    return found != prepared.end() && found->second.capture != nullptr;
  }
  void ensure_capacity(const SymbolValues& bucket);
  Prepared& prepare(const SymbolValues& bucket);
  CudaCall call(const Prepared& one, std::size_t launch, std::size_t step,
                std::vector<std::byte*>& operands) const;
  void add_sums(CudaGroupTable& table, const Prepared& one, std::size_t launch) const;
  void add_halves(CudaGroupTable& table, const std::vector<int>& slots,
                  const CudaSizes& sizes) const;
  void copy_constant_halves();
  void fill_tables(Prepared& one);
  void enqueue(const Prepared& one);
  void launch_group(const Prepared& one, std::size_t launch);
  cuda::RowProgramArgs row_program(const Prepared& one, std::size_t launch) const;
  CudaProducts products(const Prepared& one, std::size_t launch) const;
  void copy_in(const Feed& feed, const SymbolValues& sizes, const SymbolValues& bucket);
  Feed copy_out(const SymbolValues& sizes);
  void report_fault(std::int32_t step) const;
  const cuda::Device& device() const { return kernels->device; }
};

void CudaExecutor::Machine::place_residents() {
  std::int64_t bytes = 0;
  std::vector<std::pair<std::size_t, std::int64_t>> places;
  for (std::size_t i = 0; i < plan.slots.size(); ++i) {
    const CudaSlot& slot = plan.slots[i];
    if (slot.kind != CudaSlot::Kind::State && slot.kind != CudaSlot::Kind::Constant) continue;
    places.emplace_back(i, bytes);
    bytes += aligned(slot.type.num_bytes().constant());
  }
  residents.reserve(std::max(bytes, kLine));
  for (const auto& [slot, offset] : places) bases[slot] = residents.data() + offset;
  for (const auto& [value, slot] : plan.slot_of) {
    const auto index = static_cast<std::size_t>(slot);
    if (plan.slots[index].kind == CudaSlot::Kind::Constant && plan.graph.is(value.node, "constant"))
      set_resident(index, evaluate_node(plan.graph, value.node, {}, {}).front());
    if (plan.slots[index].kind != CudaSlot::Kind::State || !plan.graph.is(value.node, "state"))
      continue;
    const auto found = host.find(plan.graph.name(value.node));
    if (found != host.end()) set_resident(index, found->second);  // else it is computed
  }
}

void CudaExecutor::Machine::set_resident(std::size_t slot, const Tensor& tensor) {
  check_cuda(device().copy(bases[slot], tensor.bytes(), tensor.num_bytes(), work->stream));
  check_cuda(device().synchronize(work->stream));
}

void CudaExecutor::Machine::compute_parameters() {
  if (parameters == nullptr) return;
  Feed feed;
  for (const std::string& name : parameter_sources) feed.emplace(name, host.find(name)->second);
  for (const auto& [name, tensor] : parameters->run(feed))
    set_resident(plan.slot({plan.graph.at(name), 0}), tensor);
}

void CudaExecutor::Machine::check_sizes(const SymbolValues& sizes) const {
  plan.doubtful_sizes.check(plan.graph, sizes);
  for (const auto& [symbol, value] : sizes)
    if (value > std::numeric_limits<std::int32_t>::max())
      fail("{} is {}: device cuda counts to {} at most", symbol, value,
           std::numeric_limits<std::int32_t>::max());
}

SymbolValues CudaExecutor::Machine::bucket(const SymbolValues& sizes) const {
  SymbolValues result = sizes;
  for (const std::string& symbol : plan.rounded_symbols)
    if (const auto found = result.find(symbol); found != result.end())
      found->second = bucket_of(found->second);
  return result;
}

void CudaExecutor::Machine::ensure_capacity(const SymbolValues& needed) {
  bool grew = arena.size() == 0;
  SymbolValues grown = capacity;
  for (const auto& [symbol, value] : needed) {
    std::int64_t& most = grown[symbol];
    grew = grew || value > most;
    most = std::max(most, value);
  }
  if (!grew) return;
  drop_captures();  // they point into the old arena
  const CudaSizes sizes{grown, {}};
  const auto lay_out = [&](CudaSlot::Kind kind, Block& block, std::int64_t begin) {
    block.slots.clear();
    block.offsets.clear();
    block.bytes = begin;
    for (std::size_t i = 0; i < plan.slots.size(); ++i) {
      if (plan.slots[i].kind != kind) continue;
      block.slots.push_back(i);
      block.offsets.push_back(block.bytes);
      block.bytes += aligned(sizes.capacity(plan.slots[i].type.num_bytes()));
    }
  };
  lay_out(CudaSlot::Kind::Input, inputs,
          aligned(static_cast<std::int64_t>(plan.rounded_symbols.size() * sizeof(std::int32_t))));
  fault_offset = 0;
  lay_out(CudaSlot::Kind::Output, outputs, kLine);

  std::vector<Lifetime> lifetimes;
  std::vector<std::byte**> owners;  // who gets the address
  unshared_bytes = 0;
  for (std::size_t i = 0; i < plan.slots.size(); ++i) {
    const CudaSlot& slot = plan.slots[i];
    if (slot.kind != CudaSlot::Kind::Arena || slot.last < 0 || slot.is_internal) continue;
    const std::int64_t bytes = aligned(sizes.capacity(slot.type.num_bytes()));
    lifetimes.push_back({slot.first, slot.last, bytes});
    owners.push_back(&bases[i]);
    unshared_bytes += bytes;
  }
  parts.assign(plan.partials.size(), nullptr);
  for (std::size_t i = 0; i < plan.partials.size(); ++i) {
    const CudaPartial& partial = plan.partials[i];
    const std::int64_t count = partial.num_parts(sizes.capacity(partial.rows));
    if (count == 1) continue;
    const std::int64_t bytes =
        aligned(count * sizes.capacity(
                            plan.slots[static_cast<std::size_t>(partial.slot)].type.num_bytes()));
    lifetimes.push_back({partial.first, partial.last, bytes});
    owners.push_back(&parts[i]);
    unshared_bytes += bytes;
  }
  scratch.assign(plan.launches.size(), nullptr);
  for (std::size_t launch = 0; launch < plan.launches.size(); ++launch) {
    std::int64_t bytes = 0;
    for (const std::size_t step : plan.launches[launch].steps)
      bytes += plan.steps[step].step->scratch_bytes(plan.graph, plan.steps[step].node, sizes);
    if (bytes == 0) continue;
    lifetimes.push_back({static_cast<int>(launch), static_cast<int>(launch), aligned(bytes)});
    owners.push_back(&scratch[launch]);
    unshared_bytes += aligned(bytes);
  }
  const MemoryPlan layout = plan_memory(lifetimes);
  const std::int64_t blocks = aligned(inputs.bytes) + aligned(outputs.bytes);
  arena.reserve(blocks + layout.total + kLine);
  staging.reserve(blocks);
  for (std::size_t i = 0; i < inputs.slots.size(); ++i)
    bases[inputs.slots[i]] = arena.data() + inputs.offsets[i];
  for (std::size_t i = 0; i < outputs.slots.size(); ++i)
    bases[outputs.slots[i]] = arena.data() + aligned(inputs.bytes) + outputs.offsets[i];
  for (std::size_t i = 0; i < owners.size(); ++i)
    *owners[i] = arena.data() + blocks + layout.offsets[i];
  capacity = std::move(grown);  // not before there is room: this run may end above
}

CudaExecutor::Machine::Prepared& CudaExecutor::Machine::prepare(const SymbolValues& sizes) {
  const auto [found, is_new] = prepared.try_emplace(sizes);
  Prepared& one = found->second;
  if (!is_new) return one;
  one.sizes.bucket = sizes;
  for (std::size_t i = 0; i < plan.rounded_symbols.size(); ++i)
    one.sizes.real[plan.rounded_symbols[i]] =
        reinterpret_cast<const std::int32_t*>(arena.data()) + i;
  fill_tables(one);
  return one;
}

CudaCall CudaExecutor::Machine::call(const Prepared& one, std::size_t launch, std::size_t step,
                                     std::vector<std::byte*>& operands) const {
  const CudaPlanStep& planned = plan.steps[step];
  operands.clear();
  for (const int slot : planned.inputs)
    operands.push_back(slot < 0 ? nullptr : bases[static_cast<std::size_t>(slot)]);
  for (const int slot : planned.outputs) operands.push_back(bases[static_cast<std::size_t>(slot)]);
  const auto half_of = [&](int slot) -> std::byte* {
    const int half = slot < 0 ? -1 : plan.slots[static_cast<std::size_t>(slot)].half;
    return half < 0 ? nullptr : bases[static_cast<std::size_t>(half)];
  };
  for (const int slot : planned.inputs) operands.push_back(half_of(slot));
  for (const int slot : planned.outputs) operands.push_back(half_of(slot));
  for (const int partial : planned.parts)
    operands.push_back(partial < 0 ? nullptr : parts[static_cast<std::size_t>(partial)]);
  const std::span<std::byte* const> all(operands);
  const std::size_t num_inputs = planned.inputs.size(), num_outputs = planned.outputs.size();
  auto* const fault =
      reinterpret_cast<std::int32_t*>(arena.data() + aligned(inputs.bytes) + fault_offset);
  return {*kernels,
          work->gemm,
          work->stream,
          plan.graph,
          planned.node,
          one.sizes,
          all.first(num_inputs),
          all.subspan(num_inputs, num_outputs),
          scratch[launch],
          {fault, static_cast<std::int32_t>(step)},
          planned.inputs,
          planned.outputs,
          all.subspan(num_inputs + num_outputs, num_inputs),
          all.subspan(2 * num_inputs + num_outputs, num_outputs),
          all.last(num_outputs),
          plan.precision};
}

// The tables of grouped launches hold addresses, so they are made when those are known.
void CudaExecutor::Machine::fill_tables(Prepared& one) {
  one.groups.resize(plan.launches.size());
  one.table_offsets.assign(plan.launches.size(), 0);
  std::vector<std::byte> bytes;
  std::vector<std::byte*> operands;
  const auto append = [&](const auto& entries) {
    const auto size = entries.size() * sizeof(entries[0]);
    const std::size_t begin = bytes.size();
    bytes.resize(static_cast<std::size_t>(aligned(static_cast<std::int64_t>(begin + size))));
    if (size != 0) std::memcpy(bytes.data() + begin, entries.data(), size);
  };
  for (std::size_t launch = 0; launch < plan.launches.size(); ++launch) {
    const CudaGroup group = plan.launches[launch].group;
    if (group == CudaGroup::None) continue;
    CudaGroupTable& table = one.groups[launch];
    one.table_offsets[launch] = static_cast<std::int64_t>(bytes.size());
    if (group == CudaGroup::Rows) {
      append(std::vector{row_program(one, launch)});
      continue;
    }
    if (group == CudaGroup::Products) {
      append(products(one, launch).own());
      continue;
    }
    add_sums(table, one, launch);
    add_halves(table, plan.launches[launch].halves, one.sizes);
    for (const std::size_t step : plan.launches[launch].steps)
      plan.steps[step].step->add_to(table, call(one, launch, step, operands));
    append(table.formats);
    append(table.sums);
    append(table.halves);
    append(table.squares);
    append(table.scalars);
    append(table.updates);
  }
  if (bytes.empty()) return;
  one.tables.reserve(static_cast<std::int64_t>(bytes.size()));
  check_cuda(device().copy(one.tables.data(), bytes.data(), static_cast<std::int64_t>(bytes.size()),
                           work->stream));
  check_cuda(device().synchronize(work->stream));
}

void CudaExecutor::Machine::add_sums(CudaGroupTable& table, const Prepared& one,
                                     std::size_t launch) const {
  for (const int index : plan.launches[launch].partials) {
    const auto partial = static_cast<std::size_t>(index);
    const auto slot = static_cast<std::size_t>(plan.partials[partial].slot);
    const std::int64_t num_parts =
        plan.partials[partial].num_parts(one.sizes.capacity(plan.partials[partial].rows));
    if (num_parts == 1) continue;  // it was made whole
    const std::int64_t count = one.sizes.capacity(plan.slots[slot].type.num_elements());
    table.sums.push_back({.parts = reinterpret_cast<const float*>(parts[partial]),
                          .num_parts = static_cast<std::int32_t>(num_parts),
                          .count = count,
                          .y = reinterpret_cast<float*>(bases[slot]),
                          .first_block = table.num_blocks});
    table.num_blocks += (count + cuda::kPartsBlock - 1) / cuda::kPartsBlock;
  }
}

void CudaExecutor::Machine::add_halves(CudaGroupTable& table, const std::vector<int>& slots,
                                       const CudaSizes& sizes) const {
  for (const int index : slots) {
    const CudaSlot& slot = plan.slots[static_cast<std::size_t>(index)];
    const std::int64_t count = sizes.capacity(slot.type.num_elements());
    table.halves.push_back(
        {.x = reinterpret_cast<const float*>(bases[static_cast<std::size_t>(index)]),
         .y = reinterpret_cast<std::uint16_t*>(bases[static_cast<std::size_t>(slot.half)]),
         .count = count,
         .first_block = table.num_blocks});
    table.num_blocks += (count + cuda::kHalvesBlock - 1) / cuda::kHalvesBlock;
  }
}

// Copies of what no run changes, as long as somebody does not set it anew.
void CudaExecutor::Machine::copy_constant_halves() {
  if (plan.constant_halves.empty()) return;
  CudaGroupTable table;
  add_halves(table, plan.constant_halves, {});
  CudaBuffer entries;
  const auto bytes = static_cast<std::int64_t>(table.halves.size() * sizeof(cuda::HalfCopy));
  entries.reserve(bytes);
  check_cuda(device().copy(entries.data(), table.halves.data(), bytes, work->stream));
  kernels->halves({.copies = reinterpret_cast<const cuda::HalfCopy*>(entries.data()),
                   .count = static_cast<std::int32_t>(table.halves.size()),
                   .num_blocks = table.num_blocks},
                  work->stream);
  check_cuda(device().launch_error());
  check_cuda(device().synchronize(work->stream));
}

cuda::RowProgramArgs CudaExecutor::Machine::row_program(const Prepared& one,
                                                        std::size_t launch) const {
  const std::vector<std::size_t>& steps = plan.launches[launch].steps;
  const CudaRowFacts& facts = *plan.steps[steps.front()].step->rows();
  CudaRowProgram program(facts.width, one.sizes.extent(facts.rows), [&](int index) {
    const CudaSlot& slot = plan.slots[static_cast<std::size_t>(index)];
    return CudaRowProgram::SlotFacts{!slot.is_internal, slot.is_raw};
  });
  std::vector<std::byte*> operands;
  for (const std::size_t step : steps)
    plan.steps[step].step->add_to(program, call(one, launch, step, operands));
  return program.finish();
}

CudaProducts CudaExecutor::Machine::products(const Prepared& one, std::size_t launch) const {
  CudaProducts result;
  std::vector<std::byte*> operands;
  for (const std::size_t step : plan.launches[launch].steps)
    plan.steps[step].step->add_to(result, call(one, launch, step, operands));
  return result;
}

void CudaExecutor::Machine::launch_group(const Prepared& one, std::size_t launch) {
  const CudaGroupTable& table = one.groups[launch];
  const std::byte* const entries = one.tables.data() + one.table_offsets[launch];
  switch (plan.launches[launch].group) {
    case CudaGroup::None:
      return;
    case CudaGroup::Indices: {
      cuda::IndexArgs args;
      args.count = static_cast<std::int32_t>(table.indices.size());
      std::copy(table.indices.begin(), table.indices.end(), args.operations);
      return kernels->indices(args, work->stream);
    }
    case CudaGroup::Formats:
      return kernels->quantize_all({.tensors = reinterpret_cast<const cuda::QuantizeArgs*>(entries),
                                    .count = static_cast<std::int32_t>(table.formats.size()),
                                    .num_blocks = table.num_blocks},
                                   work->stream);
    case CudaGroup::Tables: {
      cuda::EmbeddingGradientsArgs args;
      args.count = static_cast<std::int32_t>(table.tables.size());
      std::copy(table.tables.begin(), table.tables.end(), args.tables);
      return kernels->embedding_gradients(args, work->stream);
    }
    case CudaGroup::Rows:
      return kernels->row_program(row_program(one, launch),
                                  reinterpret_cast<const cuda::RowProgramArgs*>(entries),
                                  work->stream);
    case CudaGroup::Products: {
      std::vector<std::byte*> operands;
      return products(one, launch)
          .launch(call(one, launch, plan.launches[launch].steps.front(), operands), entries);
    }
    case CudaGroup::Halves:
      return kernels->halves({.copies = reinterpret_cast<const cuda::HalfCopy*>(entries),
                              .count = static_cast<std::int32_t>(table.halves.size()),
                              .num_blocks = table.num_blocks},
                             work->stream);
    case CudaGroup::Sums:
      return kernels->add_parts({.sums = reinterpret_cast<const cuda::SummedParts*>(entries),
                                 .count = static_cast<std::int32_t>(table.sums.size()),
                                 .num_blocks = table.num_blocks},
                                work->stream);
    case CudaGroup::Squares:
      return kernels->sum_squares({.tensors = reinterpret_cast<const cuda::SquaredTensor*>(entries),
                                   .num_tensors = static_cast<std::int32_t>(table.squares.size()),
                                   .num_blocks = table.num_blocks,
                                   .parts = reinterpret_cast<double*>(scratch[launch])},
                                  work->stream);
    case CudaGroup::Scalars:
      return kernels->scalars(
          {.operations = reinterpret_cast<const cuda::ScalarOperation*>(entries),
           .count = static_cast<std::int32_t>(table.scalars.size())},
          work->stream);
    case CudaGroup::Adamw:
    case CudaGroup::Sgd:
      return kernels->update({.is_adamw = plan.launches[launch].group == CudaGroup::Adamw,
                              .tensors = reinterpret_cast<const cuda::UpdatedTensor*>(entries),
                              .num_tensors = static_cast<std::int32_t>(table.updates.size()),
                              .num_blocks = table.num_blocks},
                             work->stream);
  }
}

void CudaExecutor::Machine::enqueue(const Prepared& one) {
  std::vector<std::byte*> operands;
  check_cuda(device().fill(arena.data() + aligned(inputs.bytes) + fault_offset, 0x7f,
                           sizeof(std::int32_t), work->stream));
  for (std::size_t launch = 0; launch < plan.launches.size(); ++launch) {
    const CudaLaunch& planned = plan.launches[launch];
    const std::size_t first = planned.steps.empty() ? 0 : planned.steps.front();
    with_place(fmt::format("node \"{}\"", plan.graph.name(plan.steps[first].node)), [&] {
      if (planned.group != CudaGroup::None)
        launch_group(one, launch);
      else
        plan.steps[first].step->launch(call(one, launch, first, operands));
      check_cuda(device().launch_error());
    });
  }
  for (const auto& [value, state] : plan.late_updates) {
    const auto from = static_cast<std::size_t>(value), to = static_cast<std::size_t>(state);
    check_cuda(device().copy(bases[to], bases[from], plan.slots[to].type.num_bytes().constant(),
                             work->stream));
  }
}

void CudaExecutor::Machine::copy_in(const Feed& feed, const SymbolValues& sizes,
                                    const SymbolValues& needed) {
  std::byte* const block = staging.data();
  for (std::size_t i = 0; i < plan.rounded_symbols.size(); ++i) {
    const auto found = sizes.find(plan.rounded_symbols[i]);
    const auto value = static_cast<std::int32_t>(found == sizes.end() ? 0 : found->second);
    std::memcpy(block + i * sizeof value, &value, sizeof value);
  }
  for (const NodeId id : plan.graph.nodes_of("input")) {
    const std::size_t slot = plan.slot({id, 0});
    const auto at = static_cast<std::size_t>(
        std::find(inputs.slots.begin(), inputs.slots.end(), slot) - inputs.slots.begin());
    const Tensor& tensor = feed.find(plan.graph.name(id))->second;
    const std::int64_t all = plan.slots[slot].type.num_bytes().evaluate(needed);
    std::memcpy(block + inputs.offsets[at], tensor.bytes(),
                static_cast<std::size_t>(tensor.num_bytes()));
    std::memset(block + inputs.offsets[at] + tensor.num_bytes(), 0,
                static_cast<std::size_t>(all - tensor.num_bytes()));
  }
  check_cuda(device().copy(arena.data(), block, inputs.bytes, work->stream));
}

Feed CudaExecutor::Machine::copy_out(const SymbolValues& sizes) {
  std::byte* const block = staging.data() + aligned(inputs.bytes);
  const std::byte* const from = arena.data() + aligned(inputs.bytes);
  // Few bytes come back in one copy, many only as far as they are real.
  constexpr std::int64_t kFewBytes = std::int64_t{64} << 10;
  const bool are_few = outputs.bytes <= kFewBytes;
  check_cuda(device().copy(block, from, are_few ? outputs.bytes : kLine, work->stream));
  Feed result;
  std::vector<std::pair<Tensor*, const std::byte*>> waiting;
  for (const auto& [name, value] : plan.graph.outputs()) {
    const Type& type = plan.graph.type(value);
    Tensor& tensor = result.emplace(name, Tensor(type.dtype, type.dims(sizes))).first->second;
    const std::size_t slot = plan.slot(value);
    const auto at = static_cast<std::size_t>(
        std::find(outputs.slots.begin(), outputs.slots.end(), slot) - outputs.slots.begin());
    if (at == outputs.slots.size()) {  // an input, a state or a constant under another name
      check_cuda(
          device().copy(tensor.mutable_bytes(), bases[slot], tensor.num_bytes(), work->stream));
      continue;
    }
    if (!are_few)
      check_cuda(device().copy(block + outputs.offsets[at], bases[slot], tensor.num_bytes(),
                               work->stream));
    waiting.emplace_back(&tensor, block + outputs.offsets[at]);
  }
  check_cuda(device().synchronize(work->stream));
  std::int32_t fault = 0;
  std::memcpy(&fault, block + fault_offset, sizeof fault);
  report_fault(fault);
  for (const auto& [tensor, bytes] : waiting)
    std::memcpy(tensor->mutable_bytes(), bytes, static_cast<std::size_t>(tensor->num_bytes()));
  return result;
}

void CudaExecutor::Machine::report_fault(std::int32_t step) const {
  if (step < 0 || static_cast<std::size_t>(step) >= plan.steps.size()) return;
  const NodeId node = plan.steps[static_cast<std::size_t>(step)].node;
  fail("node \"{}\": an id, a label, an index or an offset of {} is outside its range",
       plan.graph.name(node), plan.graph.op(node).name);
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
    : machine_(std::make_unique<Machine>()) {
  Machine& machine = *machine_;
  const Backend& backend = find_backend("cuda");
  // Where every run changes states, what comes from them alone is computed in every run, too.
  const bool is_training = !graph.state_updates().empty();
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
  const std::scoped_lock lock(setup());
  machine.kernels = cuda_library().kernels;
  machine.work = std::make_unique<Machine::Work>(*machine.kernels);
  machine.bases.resize(machine.plan.slots.size());
  machine.place_residents();
  machine.compute_parameters();
  machine.copy_constant_halves();
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

Feed CudaExecutor::run(const Feed& inputs) {
  Machine& machine = *machine_;
  const SymbolValues sizes = bind_symbols(machine.plan.graph, inputs);
  machine.check_sizes(sizes);
  machine.last_sizes = sizes;
  const SymbolValues needed = machine.bucket(sizes);
  std::unique_lock lock(setup(), std::defer_lock);
  if (machine.states_changed || !machine.is_captured(needed)) lock.lock();
  machine.ensure_capacity(needed);
  if (machine.states_changed) {
    machine.compute_parameters();
    machine.copy_constant_halves();
  }
  machine.states_changed = false;
  Machine::Prepared& one = machine.prepare(needed);
  machine.copy_in(inputs, sizes, needed);
  const cuda::Device& device = machine.device();
  if (one.has_run && one.capture == nullptr) {
    check_cuda(device.begin_capture(machine.work->stream));
    try {
      machine.enqueue(one);
    } catch (...) {
      cuda::Capture* broken = nullptr;
      std::int32_t nodes = 0;
      device.end_capture(machine.work->stream, &broken, &nodes);
      if (broken != nullptr) device.drop_capture(broken);
      throw;
    }
    check_cuda(device.end_capture(machine.work->stream, &one.capture, &one.num_nodes));
  }
  if (one.capture != nullptr)
    check_cuda(device.launch(one.capture, machine.work->stream));
  else
    machine.enqueue(one);
  if (lock.owns_lock()) lock.unlock();
  one.has_run = true;
  machine.last_nodes = one.num_nodes;
  return machine.copy_out(sizes);
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
  Machine& machine = *machine_;
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
                       .flops = {}};
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
  Machine& machine = *machine_;
  const auto found = machine.prepared.find(machine.bucket(machine.last_sizes));
  if (found == machine.prepared.end()) fail("device cuda: nothing has run that could be repeated");
  const Machine::Prepared& one = found->second;
  const cuda::Device& device = machine.device();
  // Many at once: the clock is read when the GPU is done, which takes as long as a short run.
  constexpr double kShortestSample = 2e-3;
  int count = 1;
  std::vector<double> seconds;
  while (static_cast<int>(seconds.size()) < times) {
    check_cuda(device.synchronize(machine.work->stream));
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) {
      if (replays && one.capture != nullptr)
        check_cuda(device.launch(one.capture, machine.work->stream));
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
    .make = [](const Graph& graph, State state,
               const ExecutionOptions& options) -> std::unique_ptr<Executor> {
      return std::make_unique<CudaExecutor>(graph, std::move(state), options);
    },
    .measure = [](ThreadPool*) { return make_cuda_measure(); },
    .batch_tokens = 16384,
    .has_precisions = true,
}};

}  // namespace
}  // namespace lathe::engine
