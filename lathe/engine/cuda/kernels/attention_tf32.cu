// Attention and its gradient with operands of TF32.

#include "lathe/engine/cuda/kernels/attention_tensor_backward.cuh"
#include "lathe/engine/cuda/kernels/attention_tensor_forward.cuh"

namespace lathe::engine::cuda {

void attend_tf32(const AttentionArgs& args, cudaStream_t on) {
  run_tensor_forward<Tf32Products>(args, on);
}

void differentiate_tf32(const AttentionGradientArgs& args, int parts, cudaStream_t on) {
  run_tensor_backward<Tf32Products>(args, parts, on);
}

}  // namespace lathe::engine::cuda
