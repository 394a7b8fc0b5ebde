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
#include "lathe/core/graph_text.h"
#include "lathe/core/number_format.h"
#include "lathe/core/thread_pool.h"
#include "lathe/engine/executor.h"

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

std::string state_text(const std::string& name, const Tensor& value) {
  std::string shape;
  for (const std::int64_t dim : value.dims())
    shape += (shape.empty() ? "" : ",") + std::to_string(dim);
  return fmt::format("{} = state() : {}[{}]\n", name, value.dtype() == DType::U8 ? "u8" : "f32",
                     shape);
}

// The same numbers in every format, about as large as keeps the size of x.
std::vector<float> made_up_weights(std::int64_t count, std::int64_t depth) {
  std::vector<float> weights(static_cast<std::size_t>(count));
  std::uint32_t next = 1;
  for (float& weight : weights) {
    next = next * 1664525u + 1013904223u;
    weight = (static_cast<float>(next >> 8) * 0x1p-23f - 1) * 1.7f /
             std::sqrt(static_cast<float>(depth));
  }
  return weights;
}

struct Chain {
  Graph graph;
  State state;
  double packed_bytes = 0;  // of a layer
};

Chain make_chain(const Formats& formats, const Options& options) {
  const std::int64_t size = options.size;
  const std::vector<float> weights = made_up_weights(size * size, size);
  std::vector<std::pair<std::string, Tensor>> states;
  std::string decode = "w";
  if (formats.weight.empty()) {
    states.emplace_back("w", Tensor::from<float>({size, size}, weights));
  } else {
    const std::shared_ptr<const NumberFormat> format = parse_format(formats.weight);
    const FormatFacts& facts = format->facts();
    const std::int64_t given = format->num_given_scales(size, size);
    const auto limit = static_cast<float>(1.7 / std::sqrt(static_cast<double>(size)));
    const std::vector<float> scales(static_cast<std::size_t>(given),
                                    limit / static_cast<float>(facts.maximum));
    const EncodedMatrix packed = format->encode(
        {.rows = size, .columns = size, .x = weights.data(), .scales = scales.data()});
    states.emplace_back("codes",
                        Tensor::from<std::uint8_t>({size, format->code_bytes(size)}, packed.codes));
    decode = "codes";
    if (!packed.scales.empty()) {
      states.emplace_back(
          "local", Tensor::from<std::uint8_t>({size, format->scale_bytes(size)}, packed.scales));
      decode += ", local";
    } else {
      decode += ", none";
    }
    if (given > 0) {
      std::vector<std::int64_t> dims = {size};
      if (given > size) dims.push_back(given / size);
      states.emplace_back("scale", Tensor::from<float>(dims, scales));
      decode += ", scale";
    }
  }
  Chain chain;
  for (const auto& [name, value] : states)
    chain.packed_bytes += static_cast<double>(value.num_bytes());
  std::string text = fmt::format("symbols T\nx0 = input() : f32[T,{}]\n", size);
  for (std::int64_t layer = 0; layer < options.layers; ++layer) {
    std::string operands = decode;
    for (const auto& [name, value] : states) {
      const std::string own = fmt::format("{}{}", name, layer);
      text += state_text(own, value);
      // A copy of its own: equal weights would stay in a cache.
      Tensor copy = value;
      copy.mutable_bytes();
      chain.state.emplace(own, std::move(copy));
      const std::size_t at = operands.find(name);
      operands.replace(at, name.size(), own);
    }
    if (formats.weight.empty()) {
      text += fmt::format("x{} = linear(x{}, {}) : f32[T,{}]\n", layer + 1, layer, operands, size);
      continue;
    }
    if (formats.x == "float") {
      text += fmt::format(
          "v{0} = decode({1}) {{format=\"{2}\", columns={3}}} : f32[{3},{3}]\n"
          "x{4} = linear(x{0}, v{0}) : f32[T,{3}]\n",
          layer, operands, formats.weight, size, layer + 1);
      continue;
    }
    text += fmt::format(
        "v{0} = decode({1}) {{format=\"{2}\", columns={3}}} : f32[{3},{3}]\n"
        "q{0} = quantize(x{0}) {{format=\"{4}\"}} : f32[T,{3}]\n"
        "x{5} = linear(q{0}, v{0}) : f32[T,{3}]\n",
        layer, operands, formats.weight, size, formats.x, layer + 1);
  }
  text += fmt::format("output y <- x{}\n", options.layers);
  chain.graph = parse_graph(text);
  return chain;
}

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
    const Chain chain = make_chain(formats, options);
    const auto executor = engine::make_executor(
        chain.graph, chain.state, {.pool = &pool, .uses_integers = !formats.weight.empty()});
    for (std::size_t i = 0; i < options.rows.size(); ++i) {
      const std::int64_t rows = options.rows[i];
      Tensor x(DType::F32, {rows, options.size});
      for (std::int64_t j = 0; j < x.num_elements(); ++j)
        x.mutable_data<float>()[static_cast<std::size_t>(j)] =
            static_cast<float>(j * 37 % 101) * 0.02f - 1;
      const double seconds = least_seconds(*executor, {{"x0", x}}, options.rounds) /
                             static_cast<double>(options.layers);
      if (formats.weight.empty()) floats.push_back(seconds);
      fmt::print("{:<26} {:<18} {:>5} {:>12.1f} {:>8.2f} {:>9.1f}\n",
                 formats.x.empty() ? "float32" : formats.x,
                 formats.weight.empty() ? "float32" : formats.weight, rows, seconds * 1e6,
                 floats[i] / seconds, chain.packed_bytes / seconds / 1e9);
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
