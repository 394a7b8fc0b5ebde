#pragma once

namespace lathe::engine {

// Lines that are read, or written, before long, asked for while something else is done. They are
// instructions that stay: GCC takes a function that does nothing but __builtin_prefetch for one
// without effects, and leaves out its calls and the loops around them.

/// Into the second-level cache.
[[gnu::always_inline]] inline void ask_to_read(const void* line) {
  asm volatile("prefetcht1 (%0)" : : "r"(line));
}
/// Into the nearest one.
[[gnu::always_inline]] inline void ask_to_read_now(const void* line) {
  asm volatile("prefetcht0 (%0)" : : "r"(line));
}
[[gnu::always_inline]] inline void ask_to_write(const void* line) {
  asm volatile("prefetchw (%0)" : : "r"(line));
}

}  // namespace lathe::engine
