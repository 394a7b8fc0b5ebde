#pragma once

#include "lathe/experiment/bench/time_graph.h"

namespace lathe::experiment::bench {

/// x[rows, k] times a weight [n, k].
struct ProductSize {
  std::int64_t rows = 0, n = 0, k = 0;
};
/// Reads "ROWSxNxK".
ProductSize parse_product_size(const std::string& text);

struct ProductOptions {
  std::vector<ProductSize> sizes = {{128, 128, 128}, {512, 512, 512}, {1024, 1024, 1024}};
  Repeats repeats = {};
};
/// The engine's linear, as a graph of its own.
Result time_products(const ProductOptions& options, const engine::ExecutionOptions& execution,
                     const Callbacks& callbacks = {});

}  // namespace lathe::experiment::bench
