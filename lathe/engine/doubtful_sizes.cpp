#include "lathe/engine/doubtful_sizes.h"

#include "lathe/core/error.h"

namespace lathe::engine {

void DoubtfulSizes::add(const Graph& graph, NodeId id) {
  with_place(fmt::format("node \"{}\"", graph.name(id)), [&] {
    for (const Type& type : graph.types(id)) {
      for (const Size& size : type.shape) {
        if (!size.is_monotone())
          fail("size {} of {} shrinks where a symbol grows: no memory can be planned for it",
               size.text(), to_text(type));
        SymbolValues least;
        for (const std::string& symbol : size.symbols()) least[symbol] = 0;
        if (size.evaluate(least) >= 0) continue;
        if (size.is_constant()) fail("size {} of {} is negative", size.text(), to_text(type));
        sizes_.emplace_back(id, size);
      }
    }
  });
}

void DoubtfulSizes::check(const Graph& graph, const SymbolValues& symbols) const {
  for (const auto& [node, size] : sizes_)
    if (const std::int64_t value = size.evaluate(symbols); value < 0)
      fail("node \"{}\": size {} is negative: {}", graph.name(node), size.text(), value);
}

}  // namespace lathe::engine
