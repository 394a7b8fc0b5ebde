#include "lathe/engine/cuda/cuda_row_program.h"

#include <algorithm>
#include <set>

#include "lathe/engine/cuda/cuda_row_chain.h"

namespace lathe::engine {
namespace {

using Kind = cuda::RowInstruction::Kind;

bool is_load(const cuda::RowInstruction& instruction) {
  return instruction.kind <= Kind::LoadForToken;
}

}  // namespace

CudaRowProgram::CudaRowProgram(std::int64_t width, cuda::Extent rows,
                               std::function<SlotFacts(int slot)> facts)
    : width_(width), rows_(rows), facts_(std::move(facts)) {}

int CudaRowProgram::operand(const CudaCall& call, std::size_t input) {
  const int slot = call.input_slots[input];
  if (const auto found = register_of_.find(slot); found != register_of_.end()) return found->second;
  int loaded = -1;
  if (call.halves[input] != nullptr) {
    loaded = add({.kind = Kind::LoadHalf, .memory = call.halves[input]});
    loaded = add({.kind = Kind::Widen, .a = loaded});
  } else {
    loaded = add({.kind = Kind::Load, .memory = call.input(input)});
  }
  register_of_[slot] = loaded;
  return loaded;
}

int CudaRowProgram::vector(const CudaCall& call, std::size_t input) {
  const auto found = std::find(vectors_.begin(), vectors_.end(), call.input(input));
  const auto index = static_cast<int>(found - vectors_.begin());
  if (found == vectors_.end()) vectors_.push_back(call.input(input));
  return cuda::kFirstVector + index;
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
  const bool is_whole = cuda::row_parts(rows_.capacity, width_) == 1;
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

int CudaRowProgram::add_learned_step(const cuda::LearnedStepArgs& step) {
  learned_steps_.push_back(step);
  return static_cast<int>(learned_steps_.size()) - 1;
}

std::optional<cuda::RowChainArgs> CudaRowProgram::chain() const {
  return find_row_chain(width_, rows_, instructions_, vectors_, formats_, learned_steps_);
}

cuda::RowProgramArgs CudaRowProgram::finish() {
  std::stable_partition(instructions_.begin(), instructions_.end(), is_load);
  check(instructions_.size() <= cuda::kMostInstructions, "instructions that fit a row program");
  check(formats_.size() <= cuda::kMostRowFormats, "formats that fit a row program");
  check(learned_steps_.size() <= cuda::kMostRowSteps, "learned steps that fit a row program");
  check(vectors_.size() <= cuda::kMostVectors, "vectors that fit a row program");
  cuda::RowProgramArgs args;
  args.n = width_;
  args.rows = rows_;
  args.num_sums = num_sums_;
  args.num_vectors = static_cast<std::int32_t>(vectors_.size());
  std::copy(vectors_.begin(), vectors_.end(), args.vectors);
  const auto is_register = [](int number) { return number >= 0 && number < cuda::kFirstVector; };
  std::vector<std::size_t> last(static_cast<std::size_t>(num_registers_), 0);
  for (std::size_t i = 0; i < instructions_.size(); ++i)
    for (const int used :
         {instructions_[i].to, instructions_[i].a, instructions_[i].b, instructions_[i].c})
      if (is_register(used)) last[static_cast<std::size_t>(used)] = i;
  // An instruction may write where it reads: lanes read their numbers before they write them.
  std::vector<int> place(static_cast<std::size_t>(num_registers_), -1), free;
  const auto placed = [&](int of) {
    return is_register(of) ? place[static_cast<std::size_t>(of)] : of;
  };
  int num_numbered = 0;
  for (std::size_t i = 0; i < instructions_.size(); ++i) {
    cuda::RowInstruction instruction = instructions_[i];
    std::set<int> ended;
    for (const int used : {instruction.a, instruction.b, instruction.c})
      if (is_register(used) && last[static_cast<std::size_t>(used)] == i)
        ended.insert(placed(used));
    free.insert(free.end(), ended.begin(), ended.end());
    instruction.a = placed(instruction.a);
    instruction.b = placed(instruction.b);
    instruction.c = placed(instruction.c);
    if (instruction.to >= 0) {
      if (free.empty()) free.push_back(args.num_registers++);
      const int made = free.back();
      free.pop_back();
      place[static_cast<std::size_t>(instruction.to)] = made;
      if (last[static_cast<std::size_t>(instruction.to)] == i) free.push_back(made);
      instruction.to = made;
    }
    if (is_load(instruction)) ++args.num_loads;
    const bool has_numbers =
        instruction.kind == Kind::Dropout || instruction.kind == Kind::LoadOfTable;
    if (has_numbers && num_numbered < cuda::kMostNumbered) {
      instruction.number = num_numbered;
      args.numbered[num_numbered++] = args.count;
    }
    args.instructions[args.count++] = instruction;
  }
  std::copy(formats_.begin(), formats_.end(), args.formats);
  std::copy(learned_steps_.begin(), learned_steps_.end(), args.learned_steps);
  return args;
}

CudaParts row_parts_of(std::size_t output, const CudaRows& rows) {
  return {output, rows.rows,
          [width = rows.width](std::int64_t capacity) { return cuda::row_parts(capacity, width); }};
}

}  // namespace lathe::engine
