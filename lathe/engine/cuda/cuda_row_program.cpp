#include "lathe/engine/cuda/cuda_row_program.h"

#include <algorithm>

namespace lathe::engine {
namespace {

using Kind = cuda::RowInstruction::Kind;

bool is_load(const cuda::RowInstruction& instruction) {
  return instruction.kind == Kind::Load || instruction.kind == Kind::LoadOfSequence ||
         instruction.kind == Kind::LoadForToken;
}

}  // namespace

CudaRowProgram::CudaRowProgram(std::int64_t width, cuda::Extent rows,
                               std::function<SlotFacts(int slot)> facts)
    : width_(width), rows_(rows), facts_(std::move(facts)) {}

int CudaRowProgram::operand(const CudaCall& call, std::size_t input) {
  const int slot = call.input_slots[input];
  if (const auto found = register_of_.find(slot); found != register_of_.end()) return found->second;
  int loaded = add({.kind = Kind::Load, .memory = call.input(input)});
  if (facts_(slot).is_raw) loaded = add({.kind = Kind::Round, .a = loaded});
  register_of_[slot] = loaded;
  return loaded;
}

int CudaRowProgram::add(cuda::RowInstruction instruction) {
  instruction.to = num_registers_++;
  instructions_.push_back(instruction);
  return instruction.to;
}

void CudaRowProgram::add(const CudaCall& call, cuda::RowInstruction instruction,
                         std::size_t output) {
  const int made = add(instruction);
  const int slot = call.output_slots[output];
  register_of_[slot] = made;
  if (facts_(slot).is_stored)
    instructions_.push_back({.kind = Kind::Store, .a = made, .result = call.outputs[output]});
  if (call.output_halves[output] != nullptr)
    instructions_.push_back(
        {.kind = Kind::StoreHalf, .a = made, .result = call.output_halves[output]});
}

float* CudaRowProgram::sums_of(const CudaCall& call, std::size_t output) const {
  const bool is_whole = cuda::row_parts(rows_.capacity) == 1;
  return reinterpret_cast<float*>(is_whole ? call.outputs[output] : call.parts[output]);
}

void CudaRowProgram::add_sums(const CudaCall& call, cuda::RowInstruction& instruction,
                              std::size_t sums, std::size_t more_sums) {
  instruction.sum = num_sums_;
  instruction.sums = sums_of(call, sums);
  ++num_sums_;
  if (more_sums == sums) return;
  instruction.more_sums = sums_of(call, more_sums);
  ++num_sums_;
}

void CudaRowProgram::add_sum(const CudaCall& call, int of, std::size_t output) {
  cuda::RowInstruction instruction{.kind = Kind::Sum, .a = of};
  add_sums(call, instruction, output, output);
  instructions_.push_back(instruction);
}

int CudaRowProgram::add_format(const cuda::QuantizeArgs& format) {
  formats_.push_back(format);
  return static_cast<int>(formats_.size()) - 1;
}

cuda::RowProgramArgs CudaRowProgram::finish() {
  std::stable_partition(instructions_.begin(), instructions_.end(), is_load);
  check(instructions_.size() <= cuda::kMostInstructions, "instructions that fit a row program");
  check(formats_.size() <= cuda::kMostRowFormats, "formats that fit a row program");
  cuda::RowProgramArgs args;
  args.n = width_;
  args.rows = rows_;
  args.num_sums = num_sums_;
  std::vector<std::size_t> last(static_cast<std::size_t>(num_registers_), 0);
  for (std::size_t i = 0; i < instructions_.size(); ++i)
    for (const int used : {instructions_[i].to, instructions_[i].a, instructions_[i].b})
      if (used >= 0) last[static_cast<std::size_t>(used)] = i;
  // An instruction may write where it reads: lanes read their numbers before they write them.
  std::vector<int> place(static_cast<std::size_t>(num_registers_), -1), free;
  for (std::size_t i = 0; i < instructions_.size(); ++i) {
    cuda::RowInstruction instruction = instructions_[i];
    const int a = instruction.a, b = instruction.b;
    const auto placed = [&](int of) { return of < 0 ? -1 : place[static_cast<std::size_t>(of)]; };
    instruction.a = placed(a);
    instruction.b = placed(b);
    for (const int used : {a, b == a ? -1 : b})
      if (used >= 0 && last[static_cast<std::size_t>(used)] == i) free.push_back(placed(used));
    if (instruction.to >= 0) {
      if (free.empty()) free.push_back(args.num_registers++);
      place[static_cast<std::size_t>(instruction.to)] = free.back();
      free.pop_back();
      const int made = placed(instruction.to);
      if (last[static_cast<std::size_t>(instruction.to)] == i) free.push_back(made);
      instruction.to = made;
    }
    args.instructions[args.count++] = instruction;
  }
  std::copy(formats_.begin(), formats_.end(), args.formats);
  return args;
}

CudaParts row_parts_of(std::size_t output, const Size& rows) {
  return {output, rows,
          [](std::int64_t capacity) -> std::int64_t { return cuda::row_parts(capacity); }};
}

}  // namespace lathe::engine
