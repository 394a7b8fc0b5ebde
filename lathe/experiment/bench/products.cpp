#include "lathe/experiment/bench/products.h"

#include <algorithm>
#include <cstdio>

#include "lathe/core/error.h"
#include "lathe/core/graph_text.h"

namespace lathe::experiment::bench {

ProductSize parse_product_size(const std::string& text) {
  long long rows = 0, n = 0, k = 0;
  int read = 0;
  if (std::sscanf(text.c_str(), "%lldx%lldx%lld%n", &rows, &n, &k, &read) != 3 ||
      read != static_cast<int>(text.size()) || std::min({rows, n, k}) < 1)
    fail("size \"{}\": expected ROWSxNxK, such as 128x1024x1024", text);
  return {rows, n, k};
}

Result time_products(const ProductOptions& options, const engine::ExecutionOptions& execution,
                     const Callbacks& callbacks) {
  Result result{.bench = "gemm", .title = "products of matrices", .device = device_name(execution)};
  std::int64_t done = 0;
  for (const ProductSize& size : options.sizes) {
    if (!callbacks.goes_on(
            {"timing", "sizes", done++, static_cast<std::int64_t>(options.sizes.size())}))
      throw Interrupted();
    const Graph graph = parse_graph(fmt::format(
        "x = input() : f32[{0},{2}]\nw = state() : f32[{1},{2}]\ny = linear(x, w)\noutput y <- y",
        size.rows, size.n, size.k));
    Tensor weight(DType::F32, {size.n, size.k});
    for (float& value : weight.mutable_data<float>()) value = 0.5f;
    const auto executor = engine::make_executor(graph, {{"w", std::move(weight)}}, execution);
    const auto floats = [](std::int64_t a, std::int64_t b) {
      return 4.0 * static_cast<double>(a * b);
    };
    result.rows.push_back(
        {.name = fmt::format("{}x{}x{}", size.rows, size.n, size.k),
         .time = time_runs(*executor, made_up_feed(graph, {}, 1), options.repeats, callbacks),
         .bytes = floats(size.rows, size.k) + floats(size.n, size.k) + floats(size.rows, size.n),
         .flops = 2 * static_cast<double>(size.rows * size.n) * static_cast<double>(size.k)});
  }
  result.limits = {copy_bandwidth(execution, callbacks), product_peak(execution, callbacks)};
  return result;
}

}  // namespace lathe::experiment::bench
