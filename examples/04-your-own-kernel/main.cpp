// Loads the plugin and calls its op from a graph.

#include <fmt/core.h>
#include <lathe/core/error.h>
#include <lathe/core/graph_text.h>
#include <lathe/core/plugin.h>
#include <lathe/engine/backend.h>
#include <lathe/engine/executor.h>

#include <cmath>

namespace {

using namespace lathe;

int run() {
  fmt::print("plugin {}\n", load_plugin(SOFT_CLIP_PLUGIN));
  const Graph graph = parse_graph(R"(
    x = input() : f32[T,3]
    h = soft_clip(x) {limit=2.0}
    y = relu(h)
    output y <- y
  )");
  fmt::print("{}", print(graph));
  const Feed feed{{"x", Tensor::from<float>({2, 3}, {0.125f, 1.f, 8.f, -0.125f, -1.f, -8.f})}};
  const Tensor y = engine::make_executor(graph, {}, {.device = "cpu"})->run(feed).at("y");
  for (std::int64_t i = 0; i < y.num_elements(); ++i) fmt::print("{:.4f} ", y.at(i));
  fmt::print("\n");

  // Where there is a GPU and the plugin was built with its kernel, both must agree.
  const std::string device = engine::fastest_device();
  if (device == "cpu" || !engine::count_fallbacks(graph, engine::find_backend(device)).empty())
    return 0;
  const Tensor other = engine::make_executor(graph, {}, {.device = device})->run(feed).at("y");
  for (std::int64_t i = 0; i < y.num_elements(); ++i)
    if (std::fabs(y.at(i) - other.at(i)) > 1e-6) fail("element {} differs on {}", i, device);
  return 0;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const lathe::UserError& error) {
    fmt::print(stderr, "error: {}\n", error.message());
    return 1;
  }
}
