// What the cores can do at most, which shares of a peak are of: multiply-adds of floats and tiles
// of AMX that touch no memory, and reading memory that no cache holds.
//
//   bench_peak [--threads 1,2,16] [--seconds S]
//
// One line for each number of threads that work at once, the sum of what they reach.

#include <fmt/core.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "lathe/core/error.h"
#include "lathe/core/thread_pool.h"
#include "lathe/engine/aligned_buffer.h"
#include "lathe/engine/cpu/kernels.h"
#include "lathe/engine/cpu/tile_registers.h"

namespace {

using namespace lathe;
#include "lathe/engine/cpu/tiles_amx.h"

constexpr int kBurst = 4096;
// A tile of 16 x 16 sums takes 16 lines of 64 bytes from both sides.
constexpr double kPairOperations = 2.0 * 16 * 16 * 32, kByteOperations = 2.0 * 16 * 16 * 64;

// Lines of two tiles with bfloat16 of either sign, 0.5 to 1 in magnitude, which are bytes of many
// values too. Zeros would be multiplied faster than numbers are: they take less power.
const std::vector<std::uint16_t>& tile_numbers() {
  static const std::vector<std::uint16_t> numbers = [] {
    std::vector<std::uint16_t> result(2 * 16 * 32);
    std::minstd_rand random(1);
    for (std::uint16_t& one : result)
      one = static_cast<std::uint16_t>((random() >> 8 & 0x807f) | 0x3f00);
    return result;
  }();
  return numbers;
}

void load_operands() {
  const std::uint16_t* const numbers = tile_numbers().data();
  constexpr std::int64_t kLineBytes = 64;
  tile_load<4>(numbers, kLineBytes), tile_load<5>(numbers + 16 * 32, kLineBytes);
  tile_load<6>(numbers, kLineBytes), tile_load<7>(numbers + 16 * 32, kLineBytes);
}

double burst_of_pairs() {
  const TileSession session;
  load_operands();
  tile_zero<0>(), tile_zero<1>(), tile_zero<2>(), tile_zero<3>();
  for (int i = 0; i < kBurst; ++i) {
    tile_multiply<0, 4, 6>();
    tile_multiply<1, 4, 7>();
    tile_multiply<2, 5, 6>();
    tile_multiply<3, 5, 7>();
  }
  return 4 * kBurst * kPairOperations;
}

double burst_of_bytes() {
  const TileSession session;
  load_operands();
  tile_zero<0>(), tile_zero<1>(), tile_zero<2>(), tile_zero<3>();
  for (int i = 0; i < kBurst; ++i) {
    tile_multiply_codes<0, 4, 6>();
    tile_multiply_codes<1, 4, 7>();
    tile_multiply_codes<2, 5, 6>();
    tile_multiply_codes<3, 5, 7>();
  }
  return 4 * kBurst * kByteOperations;
}

// Best rate of the work in a loop of so many seconds.
template <typename Work>
double rate(double seconds, Work work) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  double best = 0;
  while (std::chrono::duration<double>(Clock::now() - begin).count() < seconds) {
    const auto start = Clock::now();
    const double done = work();
    best = std::max(best, done / std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

// What `count` threads reach together.
template <typename Measure>
double sum_over_threads(ThreadPool& pool, Measure measure) {
  std::vector<double> rates(static_cast<std::size_t>(pool.num_threads()));
  std::atomic<int> arrived{0};
  pool.run(pool.num_threads(), [&](std::int64_t index, int) {
    arrived.fetch_add(1);  // no thread takes two
    while (arrived.load() < pool.num_threads()) std::this_thread::yield();
    rates[static_cast<std::size_t>(index)] = measure(index);
  });
  double sum = 0;
  for (const double one : rates) sum += one;
  return sum;
}

int run(int argc, char** argv) {
  std::string counts = "1,2,4,8,16";
  double seconds = 0.3;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string word = argv[i];
    if (word == "--threads") counts = argv[i + 1];
    if (word == "--seconds") seconds = std::atof(argv[i + 1]);
  }
  std::istringstream words(counts);
  for (std::string word; std::getline(words, word, ',');) {
    const int threads = std::atoi(word.c_str());
    if (threads < 1) fail("{}: expected a number of threads", word);
    ThreadPool pool(threads);
    constexpr std::int64_t kBytes = std::int64_t{96} << 20;
    std::vector<engine::AlignedBuffer> memory(static_cast<std::size_t>(threads));
    fmt::print("{:>2} threads: {:>7.0f} GFLOP/s float32", threads,
               sum_over_threads(
                   pool, [&](std::int64_t) { return engine::fma_peak(best_isa(), seconds); }));
    if (engine::has_tile_registers()) {
      fmt::print(", {:>7.0f} bf16 by tiles", 1e-9 * sum_over_threads(pool, [&](std::int64_t) {
                                               return rate(seconds, burst_of_pairs);
                                             }));
      fmt::print(", {:>7.0f} Gop/s int8 by tiles", 1e-9 * sum_over_threads(pool, [&](std::int64_t) {
                                                     return rate(seconds, burst_of_bytes);
                                                   }));
    }
    const double bytes = sum_over_threads(pool, [&](std::int64_t index) {
      engine::AlignedBuffer& own = memory[static_cast<std::size_t>(index)];
      own.reserve(kBytes);
      using Words [[gnu::vector_size(64)]] = std::uint64_t;
      auto* const words64 = reinterpret_cast<std::uint64_t*>(own.data());
      for (std::int64_t i = 0; i < kBytes / 8; ++i) words64[i] = static_cast<std::uint64_t>(i);
      const auto* const lines = reinterpret_cast<const Words*>(own.data());
      return rate(seconds, [&] {
        Words sums[2] = {};
        for (std::int64_t i = 0; i < kBytes / 64; i += 2) {
          sums[0] += lines[i];
          sums[1] += lines[i + 1];
        }
        asm volatile("" : : "r"(&sums) : "memory");
        return static_cast<double>(kBytes);
      });
    });
    fmt::print(", {:>5.0f} GB/s read\n", 1e-9 * bytes);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const lathe::UserError& error) {
    fmt::print(stderr, "error: {}\n", error.message());
    return 1;
  }
}
