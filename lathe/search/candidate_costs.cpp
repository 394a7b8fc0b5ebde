#include "lathe/search/candidate_costs.h"

#include <algorithm>

#include "lathe/compress/hardware_profile.h"
#include "lathe/compress/layers.h"
#include "lathe/compress/packed_weights.h"
#include "lathe/compress/quantize_model.h"
#include "lathe/compress/quantizers.h"
#include "lathe/core/error.h"
#include "lathe/core/passes/profile.h"
#include "lathe/experiment/bench/time_graph.h"
#include "lathe/experiment/hardware/emit.h"
#include "lathe/models/family.h"
#include "lathe/search/compress_candidate.h"

namespace lathe::search {
namespace {

// One example; what else there is of symbols are its tokens.
SymbolValues one_example(const Size& size, std::int64_t length) {
  SymbolValues values;
  for (const std::string& symbol : size.symbols()) values[symbol] = symbol == "B" ? 1 : length;
  return values;
}

// Bits that a format stores beside its scales, which pruning leaves whole.
double element_bits(const std::string& format) {
  const auto parsed = parse_format(format);
  return parsed == nullptr ? 8.0 * sizeof(float) : parsed->facts().element_bits;
}

double sparsity_of(const Candidate& candidate, const Graph& graph, const std::string& layer) {
  for (const auto& [name, pruning] : candidate.pruning)
    if (is_meant(name, graph, layer)) return pruning.sparsity;
  return 0;
}

// The profile's rules, with the candidate's formats in front for the layers that it names.
std::vector<compress::QuantizationRule> rules_in_hardware(const Graph& graph,
                                                          const Candidate& candidate) {
  const std::vector<compress::QuantizationRule> usual = compress::hardware_rules(graph, {});
  std::vector<compress::QuantizationRule> rules;
  for (const compress::Layer& layer : compress::find_layers(graph)) {
    const std::string& name = graph.name(layer.node);
    const auto rule = std::ranges::find_if(usual, [&](const compress::QuantizationRule& each) {
      return each.matches(graph.op(layer.node).name, name);
    });
    compress::QuantizationRule own{.by = compress::MatchBy::Name, .match = name};
    if (rule != usual.end()) own.formats = rule->formats;
    for (const auto& [meant, formats] : candidate.formats) {
      if (!is_meant(meant, graph, name)) continue;
      for (const auto& [role, format] : formats)
        if (role != compress::TensorRole::Bias && format != "float") own.formats[role] = format;
    }
    rules.push_back(std::move(own));
  }
  rules.insert(rules.end(), usual.begin(), usual.end());
  return rules;
}

}  // namespace

const std::vector<CostKind>& cost_kinds() {
  static const std::vector<CostKind> kinds{
      {"weight-bits", "average stored bits of the layers' weights, scales included"},
      {"data-bits", "average bits of what the layers read"},
      {"bits", "the mean of both"},
      {"parameters", "numbers that are not pruned"},
      {"flops", "operations of one example"},
      {"bit-operations", "products of one example times the bits of both factors"},
      {"bytes", "of the stored parameters; what is pruned takes a bit of a mask"},
      {"latency", "milliseconds of one example on the device", true},
      {"lut", "of a design in hardware", true},
      {"dsp", "of a design in hardware", true},
      {"bram", "of a design in hardware, in blocks of 18 kbit", true},
      {"cycles", "from one example to the next of a design in hardware", true}};
  return kinds;
}

const CostKind& find_cost_kind(const std::string& name) {
  std::vector<std::string> names;
  for (const CostKind& kind : cost_kinds()) {
    if (kind.name == name) return kind;
    names.push_back(kind.name);
  }
  throw unknown_name("cost", name, names);
}

const CandidateCosts::Architecture& CandidateCosts::architecture(const Candidate& candidate) const {
  std::string key;
  for (const auto& [name, value] : candidate.architecture)
    key += fmt::format("{}={} ", name, to_text(value));
  const std::scoped_lock lock(mutex_);
  const auto found = built_.find(key);
  if (found != built_.end()) return found->second;
  Architecture built;
  if (base_.fresh.empty()) {
    built.graph = base_.graph;
  } else {
    Attributes config = base_.config;
    for (const auto& [name, value] : candidate.architecture) config[name] = value;
    built.graph = models::build(
        *base_.family, config,
        {.task = base_.task, .num_labels = static_cast<std::int64_t>(base_.label_names.size())});
  }
  built.layers = compress::layer_bits(built.graph);
  for (const compress::LayerBits& layer : built.layers) {
    const NodeId node = built.graph.at(layer.layer);
    const Size flops = built.graph.op(node).flops(built.graph.call(node));
    built.products.push_back(static_cast<double>(flops.evaluate(one_example(flops, length_))) / 2);
  }
  const Profile sums = profile(built.graph);
  built.parameters = static_cast<double>(sums.parameters);
  built.flops = static_cast<double>(sums.flops.evaluate(one_example(sums.flops, length_)));
  return built_.emplace(key, std::move(built)).first->second;
}

std::vector<compress::LayerBits> CandidateCosts::layers_of(const Architecture& built,
                                                           const Candidate& candidate) {
  std::vector<compress::LayerBits> layers = built.layers;
  for (compress::LayerBits& layer : layers)
    for (const auto& [name, formats] : candidate.formats) {
      if (!is_meant(name, built.graph, layer.layer)) continue;
      for (const auto& [role, format] : formats) {
        if (role == compress::TensorRole::Weights) layer.weights = format;
        if (role == compress::TensorRole::Inputs) layer.data = format;
      }
    }
  return layers;
}

compress::AverageBits CandidateCosts::average(const Candidate& candidate) const {
  return compress::average_bits(layers_of(architecture(candidate), candidate));
}

Costs CandidateCosts::known(const Candidate& candidate) const {
  const Architecture& built = architecture(candidate);
  const std::vector<compress::LayerBits> layers = layers_of(built, candidate);
  const compress::AverageBits bits = compress::average_bits(layers);
  double pruned = 0, dense = 0, stored_bits = 0, bit_operations = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const compress::LayerBits& layer = layers[i];
    const auto weights = static_cast<double>(layer.num_weights());
    const double sparsity = sparsity_of(candidate, built.graph, layer.layer);
    pruned += sparsity * weights;
    dense += weights;
    const double all = weights * layer.weight_bits();
    const double gone = sparsity * weights * element_bits(layer.weights);
    stored_bits += sparsity == 0 ? all : all - gone + weights;
    bit_operations += (1 - sparsity) * built.products[i] * layer.weight_bits() * layer.data_bits();
  }
  return {{"weight-bits", bits.weights},
          {"data-bits", bits.data},
          {"bits", (bits.weights + bits.data) / 2},
          {"parameters", built.parameters - pruned},
          {"flops", built.flops},
          {"bit-operations", bit_operations},
          {"bytes", (built.parameters - dense) * sizeof(float) + stored_bits / 8}};
}

double measure_cost(const std::string& kind, const io::Model& model, const Candidate& candidate,
                    std::int64_t length, train::ExampleSource* calibration,
                    const engine::ExecutionOptions& execution,
                    const experiment::Callbacks& callbacks) {
  if (kind == "latency") {
    io::Model stored = model;
    compress_candidate(stored, candidate, calibration, 0, execution);
    if (compress::is_quantized(stored.graph)) compress::pack_model(stored, false);
    const std::unique_ptr<engine::Executor> executor =
        engine::make_executor(stored.graph, stored.state, execution);
    const Feed feed = experiment::bench::made_up_feed(stored.graph, {{"B", 1}, {"L", length}}, 0);
    return 1e3 * experiment::bench::time_runs(*executor, feed, {}, callbacks).median;
  }
  io::Model rounded = model;
  compress::quantize_model(rounded, {.rules = rules_in_hardware(model.graph, candidate)},
                           calibration, execution);
  const hardware::Design design = experiment::design_model(rounded, {.length = length});
  if (kind == "lut") return static_cast<double>(design.resources.lut);
  if (kind == "dsp") return static_cast<double>(design.resources.dsp);
  if (kind == "bram") return static_cast<double>(design.resources.bram18);
  check(kind == "cycles", "a cost that is measured");
  return static_cast<double>(design.frame_interval);
}

}  // namespace lathe::search
