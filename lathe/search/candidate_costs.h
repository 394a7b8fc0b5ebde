#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "lathe/compress/average_bits.h"
#include "lathe/engine/executor.h"
#include "lathe/experiment/callbacks.h"
#include "lathe/io/model.h"
#include "lathe/search/candidate_space.h"
#include "lathe/train/example_source.h"

namespace lathe::search {

/// What a candidate costs, by name.
using Costs = std::map<std::string, double>;

/// Something that a candidate costs.
struct CostKind {
  std::string name, summary;
  bool is_measured = false;  ///< of the built model; others follow from sizes and formats
};
/// weight-bits, data-bits, bits, parameters, flops, bit-operations, bytes; latency, lut, dsp, bram,
/// cycles.
const std::vector<CostKind>& cost_kinds();
/// The kind of that name; fails with the nearest one.
const CostKind& find_cost_kind(const std::string& name);

/// Costs that follow from sizes and formats, known before anything is trained. Threads may share
/// it.
class CandidateCosts {
 public:
  /// Of a trained `base` only formats and sparsities change, of any other the architecture too.
  /// Operations are those of one example of `length` tokens.
  CandidateCosts(const io::Model& base, std::int64_t length) : base_(base), length_(length) {}

  Costs known(const Candidate& candidate) const;
  /// The bits of all layers with the candidate's formats; layers that it does not name are floats.
  compress::AverageBits average(const Candidate& candidate) const;

 private:
  struct Architecture {
    Graph graph;
    std::vector<compress::LayerBits> layers;
    std::vector<double> products;  ///< of each layer for one example
    double parameters = 0, flops = 0;
  };
  const Architecture& architecture(const Candidate& candidate) const;
  static std::vector<compress::LayerBits> layers_of(const Architecture& built,
                                                    const Candidate& candidate);

  const io::Model& base_;
  const std::int64_t length_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, Architecture> built_;  // by the architecture's JSON
};

/// A cost that is measured, of a float model that is compressed as the candidate says: milliseconds
/// of one example of `length` tokens on the device, or what a design in hardware takes. That has
/// the candidate's formats where it names layers, and the profile `hardware`'s everywhere else;
/// fails, naming the node, on formats that are none of integers.
double measure_cost(const std::string& kind, const io::Model& model, const Candidate& candidate,
                    std::int64_t length, train::ExampleSource* calibration,
                    const engine::ExecutionOptions& execution,
                    const experiment::Callbacks& callbacks);

}  // namespace lathe::search
