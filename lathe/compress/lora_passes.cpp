#include "lathe/compress/lora.h"
#include "lathe/core/pass.h"

namespace lathe::compress {
namespace {

PassResult run_insert(Graph& graph, PassContext& context) {
  const AttributeReader options(context.options,
                                PassRegistry::instance().find("insert-lora")->options);
  const std::int64_t rank = options.integer("rank");
  if (rank < 1 || rank > 65536) fail("rank={}: expected 1 to 65536", rank);
  return insert_lora(graph, *context.state,
                     {.rank = static_cast<int>(rank),
                      .alpha = options.real("alpha"),
                      .dropout = options.real("dropout"),
                      .targets = {options.text("targets")}},
                     static_cast<std::uint64_t>(options.integer("seed")));
}

const Register insert{Pass{
    .name = "insert-lora",
    .summary = "add a path of low rank beside linears, which trains in place of their weights",
    .run = run_insert,
    .options = {{"rank", std::int64_t{8}, "rows of A"},
                {"alpha", 16.0, "the path is multiplied by alpha/rank"},
                {"dropout", 0.0, "of what A reads, in training"},
                {"targets", std::string(kNumberedLayers), "pattern in the names of the linears"},
                {"seed", std::int64_t{0}, "of A's start"}},
    .is_idempotent = false,
    .needs_state = true,
}};

const Register fuse{Pass{
    .name = "fuse-lora",
    .summary = "add the paths of low rank to the weights beside them and take them away",
    .run = [](Graph& graph,
              PassContext& context) { return PassResult(fuse_lora(graph, *context.state)); },
    .needs_state = true,
}};

}  // namespace
}  // namespace lathe::compress
