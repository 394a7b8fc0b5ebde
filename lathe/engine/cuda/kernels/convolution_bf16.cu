#include "lathe/engine/cuda/kernels/convolution.cuh"

namespace lathe::engine::cuda {

void convolution_bf16(const ConvolutionArgs& args, Stream* stream) {
  launch_tile<Precision::Bf16>(args, stream);
}

}  // namespace lathe::engine::cuda
