#include "lathe/experiment/quantize_summary.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "lathe/compress/packed_weights.h"
#include "lathe/compress/quantizers.h"
#include "lathe/compress/size_target.h"
#include "lathe/core/role.h"
#include "lathe/experiment/figures.h"
#include "lathe/io/model_size.h"

namespace lathe::experiment {
namespace {

struct PartKind {
  const char* what;
  const char* remedy;
};
constexpr PartKind kTables{"embeddings", "embeddings int:8"},
    kWeights{"weights", "weights int:8,channel"}, kBiases{"biases", "bias int:8"},
    kOthers{"other parameters", ""},
    kTwice{"tables that layers multiply with too", "embeddings in the format of --weights"};

// What a parameter is to whoever reads it, through masks and the like.
const PartKind& kind_of(const Graph& graph, NodeId id, int depth = 0) {
  for (const Use& use : graph.uses(id)) {
    if (use.kind != Use::Kind::Operand) continue;
    switch (operand_role(graph, use.user, static_cast<std::size_t>(use.operand))) {
      case OperandRole::Table:
        return kTables;
      case OperandRole::Weight:
        return kWeights;
      case OperandRole::Bias:
        return kBiases;
      default:
        break;
    }
    if (graph.is(use.user, "mul") && depth < 4) return kind_of(graph, use.user, depth + 1);
  }
  return kOthers;
}

// Whether rows are looked up in a parameter, rounded or not.
bool is_table(const Graph& graph, NodeId id) {
  return std::ranges::any_of(graph.uses(id), [&](const Use& use) {
    if (use.kind != Use::Kind::Operand) return false;
    return operand_role(graph, use.user, static_cast<std::size_t>(use.operand)) ==
               OperandRole::Table ||
           (graph.is(use.user, "quantize") && is_table(graph, use.user));
  });
}

// Layers have a weight and a bias; norms' are called the same and no format is for them.
bool is_of_norm(const Graph& graph, NodeId id) {
  return std::ranges::any_of(graph.uses(id), [&](const Use& use) {
    return use.kind == Use::Kind::Operand &&
           graph.op(use.user).name.find("norm") != std::string::npos;
  });
}

}  // namespace

std::vector<FloatPart> float_parts(const Quantized& quantized) {
  const Graph& graph = quantized.model.graph;
  std::set<std::string> rounded;
  for (const compress::Quantizer& quantizer : compress::find_quantizers(graph))
    if (quantizer.is_parameter) rounded.insert(quantizer.sources.begin(), quantizer.sources.end());
  // Rounded in two formats, or in one and not at all, a table is stored as it is.
  std::set<std::string> stored;
  for (const std::string& name : compress::packable_parameters(graph)) stored.insert(name);
  std::map<const PartKind*, std::int64_t> counts;
  for (const NodeId id : states_of(graph, StateRole::Parameter)) {
    const bool is_rounded = rounded.contains(graph.name(id));
    if (is_rounded && (stored.contains(graph.name(id)) || !is_table(graph, id))) continue;
    const PartKind* kind = is_rounded              ? &kTwice
                           : is_of_norm(graph, id) ? &kOthers
                                                   : &kind_of(graph, id);
    counts[kind] += quantized.model.state.at(graph.name(id)).num_elements();
  }
  std::vector<FloatPart> parts;
  for (const auto& [kind, count] : counts)
    parts.push_back({.what = kind->what,
                     .parameters = count,
                     .share = 32 * static_cast<double>(count) / quantized.bits.stored,
                     .remedy = kind->remedy});
  std::ranges::sort(parts, [](const FloatPart& a, const FloatPart& b) {
    return std::pair(-a.parameters, a.what) < std::pair(-b.parameters, b.what);
  });
  return parts;
}

QuantizeSummary summarize(const io::Model& original, const Quantized& quantized,
                          const io::Model& written, io::Storage storage,
                          const EvaluateOptions& evaluation,
                          const engine::ExecutionOptions& execution, const Callbacks& callbacks) {
  QuantizeSummary summary{.bytes_before = io::checkpoint_size(original, storage).bytes(),
                          .bytes_after = io::checkpoint_size(written, storage).bytes(),
                          .floats = float_parts(quantized)};
  if (evaluation.data.empty()) return summary;
  summary.before = evaluate_on(original, evaluation, execution, callbacks);
  summary.after = evaluate_on(written, evaluation, execution, callbacks);
  return summary;
}

std::vector<std::pair<std::string, std::string>> summary_facts(const QuantizeSummary& summary) {
  constexpr double kWorthALine = 0.005;
  const double ratio = static_cast<double>(summary.bytes_before) /
                       static_cast<double>(std::max<std::int64_t>(1, summary.bytes_after));
  std::vector<std::pair<std::string, std::string>> facts;
  facts.emplace_back(
      "size", fmt::format("{} before, {} after: {:.1f} times {}",
                          compress::bytes_text(summary.bytes_before),
                          compress::bytes_text(summary.bytes_after), ratio >= 1 ? ratio : 1 / ratio,
                          ratio >= 1 ? "smaller" : "larger"));
  for (const FloatPart& part : summary.floats) {
    if (part.share < kWorthALine) continue;
    facts.emplace_back(
        "float", fmt::format("{} are {:.0f} % of the parameters' bytes and stay float: {}",
                             part.what, 100 * part.share,
                             part.remedy.empty() ? "no format is for them" : "--" + part.remedy));
  }
  if (summary.before && summary.after)
    for (auto& line : compare_figures(*summary.before, *summary.after))
      facts.push_back(std::move(line));
  return facts;
}

}  // namespace lathe::experiment
