// What the estimates of LUTs are fitted to, and how near they are: random networks and single
// blocks of attention, synthesized by Yosys with the boundaries of their blocks kept.
//
//   bench_luts [--rows] [--whole] [--networks N] [--attentions N]
//
// For each block: how many were made, the estimates' share of what Yosys makes of them, and the
// weights that fit best beside those of lut_model.cpp. --rows prints every block, --whole estimates
// the networks too, where Yosys looks across the boundaries. Synthesis takes about ten seconds a
// network, once: its results are cached.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "lathe/core/registry.h"
#include "lathe/hardware/lut_model.h"
#include "lathe/hardware/synthesis/synthesize.h"
#include "lathe/hardware/testing/random_attention.h"
#include "lathe/hardware/testing/random_network.h"

namespace {

using namespace lathe;
using namespace lathe::hardware;

struct Row {
  std::vector<double> parts;
  double found = 0, estimated = 0;
};

std::map<std::string, std::vector<Row>> table;

void add_rows(const Netlist& netlist, bool prints) {
  const Emission emission = emit(netlist);
  const std::map<std::string, Resources> found = synthesize_blocks(emission);
  for (std::size_t i = 0; i < netlist.instances().size(); ++i) {
    const BlockCall call = netlist.call(i);
    const std::string name = call.outputs.size() == 1
                                 ? emission.stream_names[call.instance.outputs[0]]
                                 : call.instance.name;
    const auto* model = Registry<LutModel>::instance().find(call.block.name);
    if (!found.contains(name) || model == nullptr) continue;
    const Resources &made = found.at(name), estimate = resources_of(call);
    const Row row{.parts = model->parts(call),
                  .found = static_cast<double>(made.lut),
                  .estimated = static_cast<double>(estimate.lut)};
    std::string parameters;
    for (const auto& [parameter, value] : call.block.module_parameters(call).integers)
      parameters += fmt::format(" {}={}", parameter, value);
    if (made.dsp != estimate.dsp || made.bram18 != estimate.bram18)
      fmt::print("{}:{}\n  {} estimated, {} made\n", call.block.name, parameters, to_text(estimate),
                 to_text(made));
    if (prints)
      fmt::print("{} made {} estimated {} parts {:.4g}{}\n", call.block.name, made.lut,
                 estimate.lut, fmt::join(row.parts, " "), parameters);
    table[call.block.name].push_back(row);
  }
  std::fflush(stdout);
}

// The weights, none negative, of least squares of the relative errors, by coordinates; small blocks
// count less, because a LUT more or less is nothing.
std::vector<double> fitted(const std::vector<Row>& rows, std::vector<double> weights) {
  constexpr double kSmall = 20;
  constexpr int kRounds = 20000;
  for (int round = 0; round < kRounds; ++round)
    for (std::size_t k = 0; k < weights.size(); ++k) {
      double slope = 0, curve = 1e-12;
      for (const Row& row : rows) {
        const double scale = 1 / std::max(row.found, kSmall);
        double error = row.found;
        for (std::size_t j = 0; j < weights.size(); ++j) error -= weights[j] * row.parts[j];
        slope += error * row.parts[k] * scale * scale;
        curve += row.parts[k] * row.parts[k] * scale * scale;
      }
      weights[k] = std::max(0.0, weights[k] + slope / curve);
    }
  return weights;
}

// Estimates over what was made, sorted.
void print_shares(const char* label, std::vector<double> shares) {
  std::sort(shares.begin(), shares.end());
  const auto near = std::count_if(shares.begin(), shares.end(),
                                  [](double share) { return std::abs(share - 1) <= 0.25; });
  fmt::print("  {}: {} of {} within 25 %, {:.2f} to {:.2f}, middle {:.2f}\n", label, near,
             shares.size(), shares.front(), shares.back(), shares[shares.size() / 2]);
}

}  // namespace

int main(int count, char** words) {
  int networks = 24, attentions = 12;
  bool prints = false, is_whole = false;
  std::vector<double> whole;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--rows") prints = true;
    if (word == "--whole") is_whole = true;
    if (word == "--networks") networks = std::stoi(words[++i]);
    if (word == "--attentions") attentions = std::stoi(words[++i]);
  }
  for (int i = 0; i < std::max(networks, attentions); ++i) {
    if (i < networks) {
      hardware::testing::RandomNetwork network(20000 + static_cast<std::uint64_t>(i));
      const Netlist netlist = network.draw_design().netlist;
      add_rows(netlist, prints);
      if (is_whole) {
        const Resources estimate = resources(netlist),
                        made = synthesize(emit(netlist), SynthesisTarget::Xilinx7).resources;
        fmt::print("network {}: {} estimated, {} made\n", i, to_text(estimate), to_text(made));
        whole.push_back(static_cast<double>(estimate.lut) / static_cast<double>(made.lut));
      }
    }
    if (i < attentions)
      add_rows(hardware::testing::random_attention(static_cast<std::uint64_t>(i)), prints);
  }
  if (!whole.empty()) {
    fmt::print("whole networks\n");
    print_shares("estimated", whole);
  }
  for (const auto& [block, rows] : table) {
    const auto* model = Registry<LutModel>::instance().find(block);
    const std::vector<double> weights = fitted(rows, model->weights);
    std::vector<double> now, then;
    double most = 0;
    for (const Row& row : rows) {
      double luts = 0;
      for (std::size_t k = 0; k < weights.size(); ++k) luts += weights[k] * row.parts[k];
      now.push_back(row.estimated / std::max(1.0, row.found));
      then.push_back(luts / std::max(1.0, row.found));
      most = std::max(most, row.found);
    }
    fmt::print("{}, up to {} LUTs\n", block, most);
    print_shares("estimated", now);
    print_shares("fitted", then);
    fmt::print("  weights {:.3g}\n  fitted  {:.3g}\n", fmt::join(model->weights, ", "),
               fmt::join(weights, ", "));
  }
}
