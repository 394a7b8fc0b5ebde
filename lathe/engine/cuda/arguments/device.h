#pragma once

#include <cstdint>

// Memory, streams and captured graphs.
namespace lathe::engine::cuda {

struct Stream;   ///< a cudaStream_t
struct Capture;  ///< a cudaGraphExec_t
struct Event;    ///< a place in a stream
struct Gemm;     ///< a cuBLASLt handle with its workspace

struct DeviceFacts {
  char name[256] = {};
  std::int32_t major = 0, minor = 0, multiprocessors = 0;
  std::int64_t memory_bytes = 0;
  std::int32_t driver = 0, runtime = 0;  ///< 13000 is 13.0
};

/// Functions that can fail return null, or one line that says why; it is valid until the thread
/// calls another.
struct Device {
  const char* (*open)(std::int32_t index, DeviceFacts*);
  const char* (*allocate)(std::int64_t bytes, void**);
  void (*release)(void*);
  const char* (*allocate_pinned)(std::int64_t bytes, void**);
  void (*release_pinned)(void*);
  /// Whether the GPU can read the host's memory there by itself.
  bool (*is_pinned)(const void*);
  const char* (*make_stream)(Stream**);
  void (*drop_stream)(Stream*);
  const char* (*synchronize)(Stream*);
  /// What comes next on a stream waits for all that is on the other; in a capture, too.
  const char* (*wait_for)(Stream*, Stream* other);
  const char* (*make_event)(Event**);
  void (*drop_event)(Event*);
  /// The event is where the stream has come to now; `await` returns when the GPU is there, too.
  const char* (*record)(Event*, Stream*);
  const char* (*await)(Event*);
  const char* (*copy)(void* to, const void* from, std::int64_t bytes, Stream*);
  /// The same by a kernel, which between others takes less than the wait for CUDA's own copies:
  /// for few bytes. Both ends are aligned to 16 bytes and have room for a multiple of 16.
  const char* (*copy_few)(void* to, const void* from, std::int64_t bytes, Stream*);
  const char* (*fill)(void* to, std::int32_t byte, std::int64_t bytes, Stream*);
  const char* (*begin_capture)(Stream*);
  const char* (*end_capture)(Stream*, Capture**, std::int32_t* num_nodes);
  const char* (*launch)(Capture*, Stream*);
  void (*drop_capture)(Capture*);
  const char* (*launch_error)();
  const char* (*make_gemm)(Stream*, Gemm**);
  void (*drop_gemm)(Gemm*);
};

}  // namespace lathe::engine::cuda
