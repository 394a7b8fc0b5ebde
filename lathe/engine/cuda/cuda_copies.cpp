#include <algorithm>
#include <cstring>

#include "lathe/engine/cuda/cuda_machine.h"

namespace lathe::engine {

// An input that is sent by itself.
struct CudaMachine::Parcel {
  const Tensor* tensor;
  bool is_pinned;       // the GPU reads it where it lies
  std::int64_t offset;  // in staging memory and in the arena alike
  std::int64_t end;     // of its room
};

namespace {

// Many bytes are copied to staging memory in pieces, each sent as soon as it is there: the threads
// copy some while others are on their way.
constexpr std::int64_t kPiece = std::int64_t{1} << 20;

struct Piece {
  const std::byte* from;
  std::int64_t offset, bytes;
};

void cut(const Tensor& tensor, std::int64_t offset, std::vector<Piece>& pieces) {
  for (std::int64_t at = 0; at < tensor.num_bytes(); at += kPiece)
    pieces.push_back({tensor.bytes() + at, offset + at, std::min(kPiece, tensor.num_bytes() - at)});
}

}  // namespace

std::vector<Tensor> CudaMachine::copy_in(const Feed& feed, const SymbolValues& sizes,
                                         const Prepared& one, std::size_t half) {
  std::byte* const block = staging_half(half);
  for (std::size_t i = 0; i < plan.rounded_symbols.size(); ++i) {
    const auto found = sizes.find(plan.rounded_symbols[i]);
    const auto value = static_cast<std::int32_t>(found == sizes.end() ? 0 : found->second);
    std::memcpy(block + i * sizeof value, &value, sizeof value);
  }
  std::memset(block + to_lines(inputs.bytes) + fault_offset, 0x7f,
              sizeof(std::int32_t));  // none yet
  std::vector<Parcel> parcels;
  for (std::size_t i = 0; i < one.input_bytes.size(); ++i) {
    const GraphInputs::Input& input = plan.inputs.all()[i];
    const Tensor& tensor = feed.find(input.name)->second;
    const auto at = static_cast<std::size_t>(
        std::find(inputs.slots.begin(), inputs.slots.end(), plan.slot({input.node, 0})) -
        inputs.slots.begin());
    const std::int64_t offset = inputs.offsets[at], bytes = tensor.num_bytes();
    const std::int64_t padding = one.input_bytes[i] - bytes;
    const bool is_pinned = !are_few(bytes) && device().is_pinned(tensor.bytes());
    if (is_pinned || bytes > kPiece) {
      parcels.push_back(
          {&tensor, is_pinned, offset,
           at + 1 < inputs.slots.size() ? inputs.offsets[at + 1] : to_lines(inputs.bytes)});
      check_cuda(device().fill(arena.data() + offset + bytes, 0, padding, work->stream));
      continue;
    }
    std::memcpy(block + offset, tensor.bytes(), static_cast<std::size_t>(bytes));
    std::memset(block + offset + bytes, 0, static_cast<std::size_t>(padding));
  }
  if (are_few(bytes_in())) return {};
  return send(std::move(parcels), block);
}

std::vector<Tensor> CudaMachine::send(std::vector<Parcel> parcels, std::byte* block) {
  const auto copy = [&](std::int64_t offset, const std::byte* from, std::int64_t bytes) {
    check_cuda(device().copy(arena.data() + offset, from, bytes, work->stream));
  };
  // Between parcels, what is in staging memory.
  std::ranges::sort(parcels, {}, &Parcel::offset);
  std::int64_t begin = 0;
  std::vector<Tensor> read_in_place;
  std::vector<Piece> pieces;
  for (const Parcel& parcel : parcels) {
    copy(begin, block + begin, parcel.offset - begin);
    begin = parcel.end;
    if (!parcel.is_pinned) {
      cut(*parcel.tensor, parcel.offset, pieces);
      continue;
    }
    copy(parcel.offset, parcel.tensor->bytes(), parcel.tensor->num_bytes());
    read_in_place.push_back(*parcel.tensor);
  }
  copy(begin, block + begin, bytes_in() - begin);
  const auto carry = [&](std::int64_t i, int /*thread*/) {
    const Piece& piece = pieces[static_cast<std::size_t>(i)];
    std::memcpy(block + piece.offset, piece.from, static_cast<std::size_t>(piece.bytes));
    copy(piece.offset, block + piece.offset, piece.bytes);
  };
  const auto count = static_cast<std::int64_t>(pieces.size());
  if (pool != nullptr)
    pool->run(count, carry);
  else
    for (std::int64_t i = 0; i < count; ++i) carry(i, 0);
  return read_in_place;
}

CudaMachine::Begun CudaMachine::copy_out(const SymbolValues& sizes, std::size_t half) {
  std::byte* const block = staging_half(half) + to_lines(inputs.bytes);
  const std::byte* const from = arena.data() + to_lines(inputs.bytes);
  // Few bytes have come back with the launches, many come only as far as they are real.
  const bool are_here = are_few(outputs.bytes);
  if (!are_here) check_cuda(device().copy(block, from, kLine, work->stream));
  Begun run{.half = half, .outputs = {}};
  for (const auto& [name, value] : plan.graph.outputs()) {
    const Type& type = plan.graph.type(value);
    Tensor& tensor = run.outputs.emplace(name, Tensor(type.dtype, type.dims(sizes))).first->second;
    const std::size_t slot = plan.slot(value);
    const auto at = static_cast<std::size_t>(
        std::find(outputs.slots.begin(), outputs.slots.end(), slot) - outputs.slots.begin());
    if (at == outputs.slots.size()) {  // an input, a state or a constant under another name
      check_cuda(
          device().copy(tensor.mutable_bytes(), bases[slot], tensor.num_bytes(), work->stream));
      continue;
    }
    if (!are_here)
      check_cuda(device().copy(block + outputs.offsets[at], bases[slot], tensor.num_bytes(),
                               work->stream));
    run.offsets.emplace_back(name, outputs.offsets[at]);
  }
  check_cuda(device().record(work->ends[half], work->stream));
  return run;
}

void CudaMachine::await(Begun& run) const {
  if (run.is_over) return;
  run.is_over = true;
  check_cuda(device().await(work->ends[run.half]));
  run.read_in_place.clear();
  const std::byte* const block = staging_half(run.half) + to_lines(inputs.bytes);
  std::int32_t fault = 0;
  std::memcpy(&fault, block + fault_offset, sizeof fault);
  report_fault(fault);
  for (const auto& [name, offset] : run.offsets) {
    Tensor& tensor = run.outputs.find(name)->second;
    std::memcpy(tensor.mutable_bytes(), block + offset,
                static_cast<std::size_t>(tensor.num_bytes()));
  }
}

void CudaMachine::report_fault(std::int32_t step) const {
  if (step < 0 || static_cast<std::size_t>(step) >= plan.steps.size()) return;
  const NodeId node = plan.steps[static_cast<std::size_t>(step)].node;
  fail("node \"{}\": an id, a label, an index or an offset of {} is outside its range",
       plan.graph.name(node), plan.graph.op(node).name);
}

}  // namespace lathe::engine
