#include "lathe/engine/cuda/kernels/convolution.cuh"

namespace lathe::engine::cuda {

void convolution_tf32(const ConvolutionArgs& args, Stream* stream) {
  launch_tile<Precision::Tf32>(args, stream);
}

}  // namespace lathe::engine::cuda
