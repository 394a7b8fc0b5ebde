#include "lathe/compress/low_rank/low_rank.h"
#include "lathe/core/pass.h"

namespace lathe::compress {
namespace {

PassResult run_low_rank(Graph& graph, PassContext& context) {
  const AttributeReader options(context.options,
                                PassRegistry::instance().find("factorize-weights")->options);
  LowRankOptions chosen{.targets = {options.text("targets")},
                        .rank = options.integer("rank"),
                        .energy = options.real("energy"),
                        .share = options.real("share")};
  if (chosen.rank == 0 && chosen.energy == 0 && chosen.share == 0) chosen.rank = 32;
  const LowRankReport report = factorize_weights(graph, *context.state, chosen);
  std::string text;
  for (const FactorizedWeight& weight : report.weights)
    text += fmt::format("{}: {}x{} at rank {}, {:.2f} % of its energy\n", weight.state, weight.rows,
                        weight.columns, weight.rank, 100 * weight.energy);
  for (const std::string& note : report.notes) text += note + "\n";
  return {static_cast<int>(report.weights.size()), std::move(text)};
}

const Register low_rank_pass{Pass{
    .name = "factorize-weights",
    .summary = "make weights and tables products of two narrow matrices",
    .run = run_low_rank,
    .options = {{"targets", std::string("embeddings"),
                 "pattern in the names of layers and lookups"},
                {"rank", std::int64_t{0},
                 "columns of the one, rows of the other; 0: 32 where no other is given"},
                {"energy", 0.0, "or the least share of squared singular values to keep"},
                {"share", 0.0, "or the most numbers that both may have, of the weight's"}},
    .is_idempotent = false,
    .needs_state = true,
}};

}  // namespace
}  // namespace lathe::compress
