// The cross-entropy of sigmoids, forward and backward, in double as the CPU has it.

#include "lathe/engine/cuda/kernels/kernels.cuh"
#include "lathe/engine/cuda/kernels/launch.cuh"

namespace lathe::engine::cuda {
namespace {

constexpr int kRoom = 1024;            // terms that are made before they are added
constexpr std::int64_t kGrain = 4096;  // elements that the CPU adds up by themselves

static_assert(kGrain % kRoom == 0);

// One block makes the terms and one thread adds them, in the order of the CPU: there are as many as
// a batch has labels, and nobody waits for the sum.
__global__ void sum_kernel(BinaryCrossEntropyArgs args) {
  __shared__ double terms[kRoom];
  const std::int64_t real = real_size(args.elements);
  double total = 0, sum = 0;
  for (std::int64_t first = 0; first < real; first += kRoom) {
    const int count = static_cast<int>(real - first < kRoom ? real - first : kRoom);
    for (int i = threadIdx.x; i < count; i += kThreads) {
      const double x = args.logits[first + i];
      terms[i] =
          fmax(x, 0.0) + log1p(exp(-fabs(x))) - x * static_cast<double>(args.targets[first + i]);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int i = 0; i < count; ++i) sum += terms[i];
      if ((first + count) % kGrain == 0 || first + count == real) {
        total += sum;
        sum = 0;
      }
    }
    __syncthreads();
  }
  if (threadIdx.x != 0) return;
  *args.sum = static_cast<float>(total);
  *args.count = static_cast<float>(real);
}

__global__ void gradient_kernel(BinaryCrossEntropyGradientArgs args) {
  const std::int64_t real = real_size(args.elements);
  const double dsum = *args.dsum;
  for (std::int64_t i = global_thread(); i < args.elements.capacity; i += grid_stride()) {
    double gradient = 0;
    if (i < real)
      gradient = dsum * (1 / (1 + exp(-static_cast<double>(args.logits[i]))) -
                         static_cast<double>(args.targets[i]));
    args.dlogits[i] = static_cast<float>(gradient);
  }
}

}  // namespace

void binary_cross_entropy(const BinaryCrossEntropyArgs& args, Stream* stream) {
  sum_kernel<<<1, kThreads, 0, stream_of(stream)>>>(args);
}

void binary_cross_entropy_gradient(const BinaryCrossEntropyGradientArgs& args, Stream* stream) {
  if (args.elements.capacity == 0) return;
  gradient_kernel<<<blocks_for(args.elements.capacity, kThreads), kThreads, 0, stream_of(stream)>>>(
      args);
}

}  // namespace lathe::engine::cuda
