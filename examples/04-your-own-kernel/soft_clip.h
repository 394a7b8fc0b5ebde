#pragma once

#include <cstdint>

// y = limit * tanh(x / limit) for `count` numbers in a GPU's memory. `stream` is a cudaStream_t.
void launch_soft_clip(const float* x, float* y, std::int64_t count, float limit, void* stream);
