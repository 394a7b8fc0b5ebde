// Attention and its gradient with operands of bfloat16.

#include "lathe/engine/cuda/kernels/attention_tensor_backward.cuh"
#include "lathe/engine/cuda/kernels/attention_tensor_forward.cuh"

namespace lathe::engine::cuda {

void attend_bf16(const AttentionArgs& args, cudaStream_t on) {
  try_tensor_forward<Bf16Products>(args, on);
}

void differentiate_bf16(const AttentionGradientArgs& args, cudaStream_t on) {
  try_tensor_backward<Bf16Products>(args, on);
}

}  // namespace lathe::engine::cuda
