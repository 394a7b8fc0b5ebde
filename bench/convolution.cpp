// How fast a convolutional network runs forward, or one step of its training, on this machine.
//
//   bench_convolution MODEL.onnx BATCH [--threads N] [--seconds S | --rounds N] [--warm-up S]
//   [--each] [--steps] [--device D] [--precision P] [--integers] [--plain-convolutions]
//
// MODEL.onnx has one input of images [B,C,H,W]; its numbers are made up, (i * 7919 mod 1000) / 500
// - 1 in row-major order, so that bench/resnet_rival.py gives PyTorch and onnxruntime the same
// ones. Prints one JSON line with the first row of the result; on a GPU also the times of a run
// from memory that the GPU reads by itself, and of one whose images lie there, one behind another.

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "bench/image_arguments.h"
#include "lathe/core/number_format.h"
#include "lathe/engine/backend.h"
#include "lathe/io/model.h"

namespace {

using namespace lathe;

Feed made_up_images(const Graph& graph, std::int64_t batch) {
  Feed feed;
  for (const NodeId id : graph.nodes_of("input")) {
    const Type& type = graph.types(id)[0];
    if (type.dtype != DType::F32)
      fail("input \"{}\" is {}: expected images of floats", graph.name(id), to_text(type));
    SymbolValues sizes;
    for (const std::string& symbol : graph.symbols()) sizes[symbol] = batch;
    Tensor images(DType::F32, type.dims(sizes));
    bench::make_up(images.mutable_data<float>());
    feed[graph.name(id)] = std::move(images);
  }
  return feed;
}

Feed in_input_memory(const Feed& feed, const std::string& device) {
  Feed placed;
  for (const auto& [name, tensor] : feed) {
    const std::shared_ptr<std::byte[]> memory =
        engine::make_input_memory(engine::find_backend(device), tensor.num_bytes());
    std::memcpy(memory.get(), tensor.bytes(), static_cast<std::size_t>(tensor.num_bytes()));
    placed[name] = Tensor::view(tensor.dtype(), tensor.dims(), memory.get(), memory);
  }
  return placed;
}

// Rounds what convolutions read, and packs their weights.
void round_convolutions(Graph& graph, State& state) {
  const std::string format = "int:8,channel";
  state["images.scale"] = Tensor(DType::F32, {});
  state["images.scale"].mutable_data<float>()[0] = 1.0f / 32;
  const NodeId image_scale = graph.add({.name = "images.scale",
                                        .op = "state",
                                        .inputs = {},
                                        .attributes = {{"role", std::string("scale")}},
                                        .types = {{DType::F32, {}}}});
  for (const NodeId id : graph.nodes_of("conv2d")) {
    const NodeId weight = graph.input(id, 1).node;
    if (!graph.is(weight, "state")) continue;
    const std::string name = graph.name(weight);
    const Tensor values = state.at(name);
    const std::int64_t filters = values.dim(0), columns = values.num_elements() / filters;
    Tensor scales(DType::F32, {filters});
    for (std::int64_t f = 0; f < filters; ++f) {
      float largest = 1e-9f;
      for (std::int64_t i = 0; i < columns; ++i)
        largest = std::max(
            largest, std::fabs(values.data<float>()[static_cast<std::size_t>(f * columns + i)]));
      scales.mutable_data<float>()[static_cast<std::size_t>(f)] = largest / 127;
    }
    QuantizeArgs args;
    args.rows = filters;
    args.columns = columns;
    args.x = values.data<float>().data();
    args.scales = scales.data<float>().data();
    const EncodedMatrix encoded = parse_format(format)->encode(args);
    Tensor codes(DType::U8, {filters, columns});
    std::copy(encoded.codes.begin(), encoded.codes.end(),
              codes.mutable_data<std::uint8_t>().begin());
    const auto add_state = [&](const std::string& suffix, const std::string& role, Tensor tensor) {
      Type type{tensor.dtype(), {}};
      for (const std::int64_t size : tensor.dims()) type.shape.emplace_back(size);
      const std::string full = name + suffix;
      state[full] = std::move(tensor);
      return Value{graph.insert_before(id, {.name = full,
                                            .op = "state",
                                            .inputs = {},
                                            .attributes = {{"role", role}},
                                            .types = {type}}),
                   0};
    };
    const Value codes_value = add_state(".codes", "codes", std::move(codes));
    const Value scales_value = add_state(".scale", "scale", std::move(scales));
    const NodeId decoded = graph.insert_before(id, {.name = name + "/decoded",
                                                    .op = "decode",
                                                    .inputs = {codes_value, kNone, scales_value},
                                                    .attributes = {{"axis", std::int64_t{0}},
                                                                   {"columns", columns},
                                                                   {"format", format},
                                                                   {"shape", values.dims()}},
                                                    .types = {graph.types(weight)[0]}});
    const NodeId rounded =
        graph.insert_before(id, {.name = graph.name(id) + "/rounded",
                                 .op = "quantize",
                                 .inputs = {graph.input(id, 0), {image_scale, 0}},
                                 .attributes = {{"format", std::string("int:8")}}});
    graph.set_input(id, 0, {rounded, 0});
    graph.set_input(id, 1, {decoded, 0});
    if (graph.uses(weight).empty()) {
      graph.erase(weight);
      state.erase(name);
    }
  }
}

int run(int argc, char** argv) {
  bench::ImageArguments arguments =
      bench::read_image_arguments(argc, argv, "bench_convolution MODEL.onnx", " [--integers]",
                                  [](engine::ExecutionOptions& options, const std::string& word) {
                                    return word == "--integers" && (options.uses_integers = true);
                                  });
  engine::ExecutionOptions& options = arguments.options;
  const std::int64_t batch = arguments.batch;
  ThreadPool pool(arguments.threads);
  options.pool = &pool;
  io::Model model = io::load_model(arguments.model);
  if (options.uses_integers) round_convolutions(model.graph, model.state);
  const auto start = std::chrono::steady_clock::now();
  const std::unique_ptr<engine::Executor> executor =
      engine::make_executor(model.graph, model.state, options);
  const Feed feed = made_up_images(model.graph, batch);
  const double compiling =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const Feed first = executor->run(feed);
  const Tensor& result = first.begin()->second;
  std::vector<double> row;
  for (std::int64_t i = 0; i < result.num_elements() / batch && i < 10; ++i)
    row.push_back(result.at(i));
  executor->set_timing(arguments.prints_steps);
  int count = 0;
  const bench::RoundTimes times = bench::time_rounds(arguments.rounds, [&] {
    executor->run(feed);
    ++count;
  });
  if (arguments.prints_steps) bench::print_steps(executor->report(), count);
  // From where the device reads it by itself, and of what lies there already.
  std::string on_device;
  if (options.device != "cpu") {
    const Feed placed = in_input_memory(feed, options.device);
    const bench::RoundTimes direct =
        bench::time_rounds(arguments.rounds, [&] { executor->run(placed); });
    on_device = fmt::format("\"pinned_seconds\": {:.6g}, ", direct.median());
  }
  std::vector<double> repeated = executor->repeat(9, true);
  std::ranges::sort(repeated);
  if (!repeated.empty())
    on_device += fmt::format("\"device_seconds\": {:.6g}, ", repeated[repeated.size() / 2]);
  fmt::print(
      "{{\"batch\": {}, \"threads\": {}, \"rounds\": {}, \"best_seconds\": {:.6g}, "
      "\"median_seconds\": {:.6g}, {}\"first_seconds\": {:.4g}, \"row\": [{:.6g}]}}\n",
      batch, arguments.threads, times.seconds.size(), times.best(), times.median(), on_device,
      compiling, fmt::join(row, ", "));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_convolution: {}\n", error.what());
    return 1;
  }
}
