// Memory, streams and captured graphs: CUDA's own calls, with errors as one line each.

#include <cstdio>

#include "lathe/engine/cuda/kernels/kernels.cuh"
#include "lathe/engine/cuda/kernels/launch.cuh"

namespace lathe::engine::cuda {
namespace {

thread_local char error_line[512];

const char* explain(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return nullptr;
  cudaGetLastError();  // forgets it, unless the context is lost
  std::snprintf(error_line, sizeof error_line, "the GPU cannot %s: %s", what,
                cudaGetErrorString(error));
  return error_line;
}

const char* open_device(std::int32_t index, DeviceFacts* facts) {
  int runtime = 0, driver = 0, count = 0;
  cudaRuntimeGetVersion(&runtime);
  cudaDriverGetVersion(&driver);
  facts->runtime = runtime;
  facts->driver = driver;
  if (driver == 0) return "no NVIDIA driver is installed";
  // Minor versions work with each other; an older major one does not.
  if (driver / 1000 < runtime / 1000) {
    std::snprintf(error_line, sizeof error_line,
                  "the NVIDIA driver is for CUDA %d.%d, but %d.0 or newer is needed", driver / 1000,
                  driver % 1000 / 10, runtime / 1000);
    return error_line;
  }
  const cudaError_t counted = cudaGetDeviceCount(&count);
  if (counted == cudaErrorNoDevice || (counted == cudaSuccess && count == 0))
    return "there is no NVIDIA GPU";
  if (counted != cudaSuccess) return explain(counted, "be counted");
  if (index >= count) {
    std::snprintf(error_line, sizeof error_line, "there is no GPU %d: GPUs 0 to %d are there",
                  index, count - 1);
    return error_line;
  }
  if (const char* error = explain(cudaSetDevice(index), "be chosen")) return error;
  cudaDeviceProp properties{};
  if (const char* error = explain(cudaGetDeviceProperties(&properties, index), "be described"))
    return error;
  std::snprintf(facts->name, sizeof facts->name, "%s", properties.name);
  facts->major = properties.major;
  facts->minor = properties.minor;
  facts->multiprocessors = properties.multiProcessorCount;
  facts->memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
  if (properties.major < 8) {
    std::snprintf(error_line, sizeof error_line,
                  "%s has compute capability %d.%d, but 8.0 or newer is needed", properties.name,
                  properties.major, properties.minor);
    return error_line;
  }
  return explain(cudaFree(nullptr), "be started");
}

const char* allocate(std::int64_t bytes, void** memory) {
  const cudaError_t error = cudaMalloc(memory, static_cast<std::size_t>(bytes));
  if (error != cudaErrorMemoryAllocation) return explain(error, "give memory");
  cudaGetLastError();
  std::size_t free = 0, total = 0;
  cudaMemGetInfo(&free, &total);
  std::snprintf(error_line, sizeof error_line,
                "out of GPU memory: %lld bytes are needed, %zu of %zu are free",
                static_cast<long long>(bytes), free, total);
  return error_line;
}

void release(void* memory) {
  cudaFree(memory);
}

const char* allocate_pinned(std::int64_t bytes, void** memory) {
  return explain(cudaMallocHost(memory, static_cast<std::size_t>(bytes)), "pin memory");
}

void release_pinned(void* memory) {
  cudaFreeHost(memory);
}

bool is_pinned(const void* memory) {
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, memory) != cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  return attributes.type == cudaMemoryTypeHost;
}

const char* make_stream(Stream** stream) {
  cudaStream_t made = nullptr;
  const char* const error =
      explain(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "make a stream");
  *stream = reinterpret_cast<Stream*>(made);
  return error;
}

void drop_stream(Stream* stream) {
  cudaStreamDestroy(stream_of(stream));
}

const char* synchronize(Stream* stream) {
  return explain(cudaStreamSynchronize(stream_of(stream)), "finish");
}

const char* wait_for(Stream* stream, Stream* other) {
  cudaEvent_t event = nullptr;
  cudaError_t error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  if (error == cudaSuccess) error = cudaEventRecord(event, stream_of(other));
  if (error == cudaSuccess) error = cudaStreamWaitEvent(stream_of(stream), event, 0);
  if (event != nullptr) cudaEventDestroy(event);
  return explain(error, "wait for a stream");
}

cudaEvent_t event_of(Event* event) {
  return reinterpret_cast<cudaEvent_t>(event);
}

const char* make_event(Event** event) {
  cudaEvent_t made = nullptr;
  const char* const error =
      explain(cudaEventCreateWithFlags(&made, cudaEventDisableTiming), "make an event");
  *event = reinterpret_cast<Event*>(made);
  return error;
}

void drop_event(Event* event) {
  cudaEventDestroy(event_of(event));
}

const char* record_event(Event* event, Stream* stream) {
  return explain(cudaEventRecord(event_of(event), stream_of(stream)), "mark a place");
}

const char* await_event(Event* event) {
  return explain(cudaEventSynchronize(event_of(event)), "finish");
}

const char* copy_bytes(void* to, const void* from, std::int64_t bytes, Stream* stream) {
  if (bytes == 0) return nullptr;
  return explain(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault,
                                 stream_of(stream)),
                 "copy");
}

// The host's memory is read as it is now, past any cache.
__global__ void copy_kernel(uint4* to, const uint4* from, std::int64_t count) {
  for (std::int64_t i = global_thread(); i < count; i += grid_stride()) to[i] = __ldcv(from + i);
}

const char* copy_few_bytes(void* to, const void* from, std::int64_t bytes, Stream* stream) {
  const std::int64_t count = (bytes + 15) / 16;
  if (count == 0) return nullptr;
  copy_kernel<<<blocks_for(count, kThreads), kThreads, 0, stream_of(stream)>>>(
      static_cast<uint4*>(to), static_cast<const uint4*>(from), count);
  return explain(cudaGetLastError(), "copy");
}

const char* fill_bytes(void* to, std::int32_t byte, std::int64_t bytes, Stream* stream) {
  if (bytes == 0) return nullptr;
  return explain(cudaMemsetAsync(to, byte, static_cast<std::size_t>(bytes), stream_of(stream)),
                 "fill memory");
}

const char* begin_capture(Stream* stream) {
  return explain(cudaStreamBeginCapture(stream_of(stream), cudaStreamCaptureModeThreadLocal),
                 "begin a capture");
}

const char* end_capture(Stream* stream, Capture** capture, std::int32_t* num_nodes) {
  cudaGraph_t graph = nullptr;
  *capture = nullptr;
  if (const char* error = explain(cudaStreamEndCapture(stream_of(stream), &graph), "end a capture"))
    return error;
  std::size_t nodes = 0;
  cudaGraphGetNodes(graph, nullptr, &nodes);
  *num_nodes = static_cast<std::int32_t>(nodes);
  cudaGraphExec_t made = nullptr;
  const char* const error = explain(cudaGraphInstantiate(&made, graph, 0), "make a graph");
  cudaGraphDestroy(graph);
  *capture = reinterpret_cast<Capture*>(made);
  return error;
}

const char* launch_capture(Capture* capture, Stream* stream) {
  return explain(cudaGraphLaunch(reinterpret_cast<cudaGraphExec_t>(capture), stream_of(stream)),
                 "launch a graph");
}

void drop_capture(Capture* capture) {
  cudaGraphExecDestroy(reinterpret_cast<cudaGraphExec_t>(capture));
}

const char* launch_error() {
  return explain(cudaGetLastError(), "launch a kernel");
}

}  // namespace

const char* free_memory(std::int64_t* free, std::int64_t* total) {
  std::size_t free_bytes = 0, total_bytes = 0;
  const char* const error = explain(cudaMemGetInfo(&free_bytes, &total_bytes), "tell its memory");
  *free = static_cast<std::int64_t>(free_bytes);
  *total = static_cast<std::int64_t>(total_bytes);
  return error;
}

Device device_functions() {
  return {open_device,    allocate,     release,       allocate_pinned, release_pinned,
          is_pinned,      make_stream,  drop_stream,   synchronize,     wait_for,
          make_event,     drop_event,   record_event,  await_event,     copy_bytes,
          copy_few_bytes, fill_bytes,   begin_capture, end_capture,     launch_capture,
          drop_capture,   launch_error, make_gemm,     drop_gemm};
}

}  // namespace lathe::engine::cuda
