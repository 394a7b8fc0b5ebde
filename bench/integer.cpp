// How fast a linear layer multiplies packed weights, beside the same layer in float32: whole
// numbers by whole numbers (x encoded on the way) in several formats, few rows and many.
//
//   bench_integer [--threads N] [--size N] [--layers N] [--rows 1,4,512] [--rounds N]
//                 [--only WEIGHT]...
//
// A chain of square layers has more weights than caches hold, so that few rows read them from
// memory. Prints for each format and number of rows the least time of a layer, how many times as
// fast as float32 that is, and the bytes of packed weights read in a second.

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "lathe/core/error.h"
#include "lathe/core/thread_pool.h"
#include "lathe/engine/executor.h"
#include "lathe/engine/packed_chain.h"

namespace {

using namespace lathe;

struct Formats {
  std::string x, weight;  // both empty: float32; "float": a weight that alone is packed
};
const std::vector<Formats> kFormats = {{"", ""},
                                       {"int:8,dynamic", "int:8,channel"},
                                       {"int:8,asymmetric,dynamic", "int:8,channel"},
                                       {"int:8,dynamic", "int:4,channel"},
                                       {"int:8,dynamic", "int:4,group=128"},
                                       {"int:8,dynamic", "int:4,group=32"},
                                       {"int:8,dynamic", "ternary"},
                                       {"mxint:8", "mxint:8"},
                                       {"float", "mxint:8"},
                                       {"float", "int:8,channel"}};

struct Options {
  int threads = 2;
  std::int64_t size = 2048, layers = 16;
  std::vector<std::int64_t> rows = {1, 2, 4, 16, 128, 512};
  int rounds = 5;
  std::vector<std::string> only;  // formats of weights; empty: all
};

double least_seconds(engine::Executor& executor, const Feed& feed, int rounds) {
  double least = INFINITY;
  for (int round = 0; round <= rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    executor.run(feed);
    const auto end = std::chrono::steady_clock::now();
    if (round > 0) least = std::min(least, std::chrono::duration<double>(end - start).count());
  }
  return least;
}

int run(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string word = argv[i];
    if (word == "--threads") options.threads = std::atoi(argv[i + 1]);
    if (word == "--size") options.size = std::atoll(argv[i + 1]);
    if (word == "--layers") options.layers = std::atoll(argv[i + 1]);
    if (word == "--only") options.only.push_back(argv[i + 1]);
    if (word == "--rounds") options.rounds = std::atoi(argv[i + 1]);
    if (word == "--rows") {
      options.rows.clear();
      std::string list = argv[i + 1];
      for (char* at = list.data(); *at != 0; at += *at == ',')
        options.rows.push_back(std::strtoll(at, &at, 10));
    }
  }
  ThreadPool pool(options.threads);
  fmt::print("{} layers of {} x {}, {} threads\n", options.layers, options.size, options.size,
             options.threads);
  fmt::print("{:<26} {:<18} {:>5} {:>12} {:>8} {:>9}\n", "x", "weight", "rows", "us a layer",
             "speed", "GB/s");
  std::vector<double> floats;
  for (const Formats& formats : kFormats) {
    if (!formats.weight.empty() && !options.only.empty() &&
        std::ranges::find(options.only, formats.weight) == options.only.end())
      continue;
    const engine::PackedChain chain =
        engine::make_packed_chain({.weight = formats.weight,
                                   .x = formats.x == "float" ? "" : formats.x,
                                   .size = options.size,
                                   .layers = options.layers});
    const auto executor = engine::make_executor(
        chain.graph, chain.state, {.pool = &pool, .uses_integers = !formats.weight.empty()});
    for (std::size_t i = 0; i < options.rows.size(); ++i) {
      const std::int64_t rows = options.rows[i];
      const double seconds =
          least_seconds(*executor, {{"x0", engine::packed_chain_input(rows, options.size)}},
                        options.rounds) /
          static_cast<double>(options.layers);
      if (formats.weight.empty()) floats.push_back(seconds);
      fmt::print("{:<26} {:<18} {:>5} {:>12.1f} {:>8.2f} {:>9.1f}\n",
                 formats.x.empty() ? "float32" : formats.x,
                 formats.weight.empty() ? "float32" : formats.weight, rows, seconds * 1e6,
                 floats[i] / seconds, chain.layer_bytes / seconds / 1e9);
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const lathe::UserError& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}
