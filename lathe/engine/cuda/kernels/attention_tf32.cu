// Attention and its gradient with operands of TF32.

#include "lathe/engine/cuda/kernels/attention_tensor_backward.cuh"
#include "lathe/engine/cuda/kernels/attention_tensor_forward.cuh"

namespace lathe::engine::cuda {

bool try_attend_tf32(const AttentionArgs& args, cudaStream_t on) {
  return try_tensor_forward<Tf32Products>(args, on);
}

bool try_differentiate_tf32(const AttentionGradientArgs& args, cudaStream_t on) {
  return try_tensor_backward<Tf32Products>(args, on);
}

}  // namespace lathe::engine::cuda
