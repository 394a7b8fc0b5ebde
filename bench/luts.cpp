// What the estimates of LUTs are fitted to, and how near they are: random networks and encoders as
// a whole, blocks of networks and of attention alone, synthesized by Yosys.
//
//   bench_luts [--rows] [--networks FIRST COUNT]... [--blocks FIRST COUNT]... [--attentions N]
//              [--encoders N]
//
// --networks looks at whole networks of these seeds, where Yosys sees across the boundaries of
// blocks, --blocks at each of their blocks. Prints the share that estimates have of what was made,
// and the weights that fit all of it best beside those of lut_model.cpp. --rows prints every
// example. Synthesis takes about ten seconds a network, once: its results are cached.

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
#include "lathe/hardware/testing/random_encoder.h"
#include "lathe/hardware/testing/random_network.h"

namespace {

using namespace lathe;
using namespace lathe::hardware;

// A weight's place: its block, and which of its parts it is of.
using Place = std::pair<std::string, std::size_t>;

struct Row {
  std::string group;  // a block, or "whole designs"
  std::map<Place, double> parts = {};
  double found = 0;

  double estimate(const std::map<Place, double>& weights) const {
    double luts = 0;
    for (const auto& [place, size] : parts) luts += weights.at(place) * size;
    return luts;
  }
};

std::vector<Row> rows;
bool prints_rows = false;

void add_parts(Row& row, const BlockCall& call) {
  const auto* model = Registry<LutModel>::instance().find(call.block.name);
  if (model == nullptr) return;
  const std::vector<double> parts = model->parts(call);
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (parts[i] != 0) row.parts[{call.block.name, i}] += parts[i];
}

void add_row(Row row, const std::string& label, const Resources& made, const Resources& estimate) {
  row.found = static_cast<double>(made.lut);
  if (made.dsp != estimate.dsp || made.bram18 != estimate.bram18)
    fmt::print("{}: {} estimated, {} made\n", label, to_text(estimate), to_text(made));
  else if (prints_rows)
    fmt::print("{}: {} LUTs estimated, {} made\n", label, estimate.lut, made.lut);
  rows.push_back(std::move(row));
  std::fflush(stdout);
}

void add_design(const Netlist& netlist, const std::string& label) {
  Row row{.group = "whole designs"};
  const std::vector<int> bits = changing_bits(netlist);
  for (std::size_t i = 0; i < netlist.instances().size(); ++i)
    add_parts(row, narrowed(netlist.call(i), bits));
  add_row(std::move(row), label, synthesize(emit(netlist), SynthesisTarget::Xilinx7).resources,
          resources(netlist));
}

void add_blocks(const Netlist& netlist, const std::string& label) {
  const Emission emission = emit(netlist);
  const std::map<std::string, Resources> found = synthesize_blocks(emission);
  for (std::size_t i = 0; i < netlist.instances().size(); ++i) {
    const BlockCall call = netlist.call(i);
    const auto made =
        found.find(call.outputs.size() == 1 ? emission.stream_names[call.instance.outputs[0]]
                                            : call.instance.name);
    if (made == found.end()) continue;
    Row row{.group = call.block.name};
    add_parts(row, call);
    add_row(std::move(row), fmt::format("{}, {}", label, call.block.name), made->second,
            resources_of(call));
  }
}

// Least squares of the relative errors, by coordinates, no weight negative. Small blocks count
// less, because a LUT more or less is nothing, and each weight is held where it was by a little, so
// that those of which the examples say nothing stay there.
std::map<Place, double> fitted(const std::map<Place, double>& before) {
  constexpr double kSmall = 40, kHold = 0.05, kBlock = 0.4;
  constexpr int kRounds = 400;
  std::map<Place, double> weights = before;
  std::vector<double> errors, scales;
  std::map<Place, std::vector<std::pair<std::size_t, double>>> readers;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool is_whole = rows[i].group == "whole designs";
    errors.push_back(rows[i].found - rows[i].estimate(weights));
    scales.push_back((is_whole ? 1 : kBlock) / std::pow(std::max(rows[i].found, kSmall), 2));
    for (const auto& [place, size] : rows[i].parts) readers[place].push_back({i, size});
  }
  for (int round = 0; round < kRounds; ++round)
    for (const auto& [place, uses] : readers) {
      double& weight = weights.at(place);
      const double first = before.at(place), hold = kHold / (first * first / 4 + 0.05);
      double slope = hold * (first - weight), curve = hold;
      for (const auto& [i, size] : uses) {
        slope += errors[i] * size * scales[i];
        curve += size * size * scales[i];
      }
      const double step = std::max(-weight, slope / curve);
      weight += step;
      for (const auto& [i, size] : uses) errors[i] -= step * size;
    }
  return weights;
}

// Estimates over what was made.
void print_shares(const char* label, std::vector<double> shares) {
  std::sort(shares.begin(), shares.end());
  const auto near = std::count_if(shares.begin(), shares.end(),
                                  [](double share) { return std::abs(share - 1) <= 0.25; });
  fmt::print("  {}: {} of {} within 25 %, {:.2f} to {:.2f}, middle {:.2f}\n", label, near,
             shares.size(), shares.front(), shares.back(), shares[shares.size() / 2]);
}

void print_fit() {
  std::map<Place, double> before;
  for (const auto& [block, model] : Registry<LutModel>::instance().all())
    for (std::size_t i = 0; i < model.weights.size(); ++i) before[{block, i}] = model.weights[i];
  const std::map<Place, double> after = fitted(before);
  std::map<std::string, std::vector<const Row*>> groups;
  for (const Row& row : rows) groups[row.group].push_back(&row);
  for (const auto& [group, members] : groups) {
    std::vector<double> now, then;
    double most = 0;
    for (const Row* row : members) {
      now.push_back(row->estimate(before) / std::max(1.0, row->found));
      then.push_back(row->estimate(after) / std::max(1.0, row->found));
      most = std::max(most, row->found);
    }
    fmt::print("{}, up to {} LUTs\n", group, most);
    print_shares("estimated", now);
    print_shares("fitted", then);
  }
  for (const auto& [block, model] : Registry<LutModel>::instance().all()) {
    std::vector<double> weights;
    for (std::size_t i = 0; i < model.weights.size(); ++i) weights.push_back(after.at({block, i}));
    fmt::print("{}\n  weights {:.3g}\n  fitted  {:.3g}\n", block, fmt::join(model.weights, ", "),
               fmt::join(weights, ", "));
  }
}

}  // namespace

int main(int count, char** words) {
  const auto number = [&](int i) { return i < count ? std::stoull(words[i]) : 0; };
  for (int i = 1; i < count; ++i) prints_rows = prints_rows || std::string(words[i]) == "--rows";
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--networks" || word == "--blocks")
      for (std::uint64_t seed = number(i + 1); seed < number(i + 1) + number(i + 2); ++seed) {
        hardware::testing::RandomNetwork network(seed);
        const Netlist netlist = network.draw_design().netlist;
        if (hardware::testing::has_constant(netlist)) continue;
        (word == "--blocks" ? add_blocks : add_design)(netlist, fmt::format("network {}", seed));
      }
    if (word == "--attentions")
      for (std::uint64_t seed = 0; seed < number(i + 1); ++seed)
        add_blocks(hardware::testing::random_attention(seed), fmt::format("attention {}", seed));
    if (word == "--encoders")
      for (std::uint64_t seed = 0; seed < number(i + 1); ++seed)
        add_design(hardware::testing::random_encoder(seed).netlist,
                   fmt::format("encoder {}", seed));
  }
  print_fit();
}
