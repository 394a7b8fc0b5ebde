#include "lathe/engine/cuda/cuda_step.h"

namespace lathe::engine {
namespace {

// Where rows are sequences, logits are few and may be kept while the backward pass goes on.
class BinaryCrossEntropyStep final : public CudaStep {
 public:
  explicit BinaryCrossEntropyStep(bool is_of_sequences) : is_of_sequences_(is_of_sequences) {}
  bool can_run_beside() const override { return is_of_sequences_; }
  void launch(const CudaCall& call) const override {
    call.kernels.binary_cross_entropy({.logits = call.input(0),
                                       .targets = call.input(1),
                                       .sum = call.output(0),
                                       .count = call.output(1),
                                       .elements = call.extent(call.input_type(0).num_elements())},
                                      call.stream);
  }

 private:
  bool is_of_sequences_;
};

std::unique_ptr<CudaStep> make_loss(const Graph& graph, NodeId id) {
  if (!is_float(graph, graph.input(id, 0))) return nullptr;
  const std::optional<CudaRows> logits = cuda_rows(graph.type(graph.input(id, 0)));
  return std::make_unique<BinaryCrossEntropyStep>(logits && counts_sequences(graph, logits->rows));
}

std::unique_ptr<CudaStep> make_gradient(const Graph& graph, NodeId id) {
  if (!is_float(graph, graph.input(id, 0)) || !is_float(graph, graph.input(id, 1))) return nullptr;
  return cuda_step([](const CudaCall& call) {
    call.kernels.binary_cross_entropy_gradient(
        {.dsum = call.input(0),
         .logits = call.input(1),
         .targets = call.input(2),
         .dlogits = call.output(0),
         .elements = call.extent(call.type(0).num_elements())},
        call.stream);
  });
}

const Register loss{CudaKernel{"binary_cross_entropy", make_loss, always_takes_padding}};
const Register gradient{
    CudaKernel{"binary_cross_entropy_gradient", make_gradient, always_takes_padding}};

}  // namespace
}  // namespace lathe::engine
