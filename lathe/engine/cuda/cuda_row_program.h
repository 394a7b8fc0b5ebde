#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "lathe/engine/cuda/cuda_step.h"

namespace lathe::engine {

/// Writes the row program of a launch: its steps add their instructions in order.
class CudaRowProgram {
 public:
  /// What a program must know of a slot: whether it is to be stored.
  struct SlotFacts {
    bool is_stored = true;
  };
  CudaRowProgram(std::int64_t width, cuda::Extent rows, std::function<SlotFacts(int slot)> facts);

  /// The register with an operand of the same rows; loads what no step before has made.
  int operand(const CudaCall& call, std::size_t input);
  /// The vector of an operand that is the same for every row.
  int vector(const CudaCall& call, std::size_t input);
  /// Adds an instruction that makes a result, which it stores where that is read later.
  void add(const CudaCall& call, cuda::RowInstruction instruction, std::size_t output);
  /// Adds one whose result is an intermediate of the step.
  int add(cuda::RowInstruction instruction);
  /// Adds one that sums over rows, into result `sums` and perhaps a second.
  void add_sums(const CudaCall& call, cuda::RowInstruction& instruction, std::size_t sums,
                std::size_t more_sums);
  void add_sum(const CudaCall& call, int of, std::size_t output);
  int add_format(const cuda::QuantizeArgs& format);
  int add_learned_step(const cuda::LearnedStepArgs& step);

  /// The chain that the program is, where it is one.
  std::optional<cuda::RowChainArgs> chain() const;
  /// With registers given out again when their last reader is done, and all loads in front.
  cuda::RowProgramArgs finish();

 private:
  float* sums_of(const CudaCall& call, std::size_t output) const;

  std::int64_t width_;
  cuda::Extent rows_;
  std::function<SlotFacts(int)> facts_;
  std::vector<cuda::RowInstruction> instructions_;
  std::vector<cuda::QuantizeArgs> formats_;
  std::vector<cuda::LearnedStepArgs> learned_steps_;
  std::map<int, int> register_of_;  // of a slot
  std::vector<const float*> vectors_;
  int num_registers_ = 0, num_sums_ = 0;
};

/// A step of the group Rows whose instructions a function adds.
template <typename Add>
class CudaRowFunctionStep final : public CudaStep {
 public:
  CudaRowFunctionStep(CudaRowFacts facts, std::vector<CudaParts> parts, Add add)
      : facts_(std::move(facts)), parts_(std::move(parts)), add_(std::move(add)) {}
  CudaGroup group() const override { return CudaGroup::Rows; }
  const CudaRowFacts* rows() const override { return &facts_; }
  bool can_write_half(std::size_t output) const override { return output == 0; }
  std::vector<CudaParts> parts() const override { return parts_; }
  void add_to(CudaRowProgram& program, const CudaCall& call) const override { add_(program, call); }

 private:
  CudaRowFacts facts_;
  std::vector<CudaParts> parts_;
  Add add_;
};
template <typename Add>
std::unique_ptr<CudaStep> cuda_row_step(CudaRowFacts facts, Add add,
                                        std::vector<CudaParts> parts = {}) {
  return std::make_unique<CudaRowFunctionStep<Add>>(std::move(facts), std::move(parts),
                                                    std::move(add));
}

/// Whether rows of this width can go through a row program.
constexpr bool fits_row_program(std::int64_t width) {
  return width > 0 && width % 4 == 0 && width <= cuda::kWidestRow;
}

/// The result number `output` of a row program over `rows` is left in parts.
CudaParts row_parts_of(std::size_t output, const CudaRows& rows);

}  // namespace lathe::engine
