// Points of a low-discrepancy sequence: trial n is point n, so workers never take the same one and
// need not know of each other. Each parameter has a coordinate of its own, conditional ones too.
#include "lathe/core/registry.h"
#include "lathe/study/math/keyed_random.h"
#include "lathe/study/math/sobol.h"
#include "lathe/study/option_reader.h"
#include "lathe/study/samplers/known_space.h"
#include "lathe/study/samplers/sampler.h"
#include "lathe/study/space_point.h"
#include "lathe/study/uniform_value.h"
#include "lathe/study/unit_space.h"

namespace lathe::study {

namespace {

class QmcSampler final : public Sampler {
 public:
  explicit QmcSampler(bool is_scrambled) : is_scrambled_(is_scrambled) {}

  Assignment propose(const History& history, const Proposal& proposal) override {
    if (proposal.space == nullptr) known_.update(history);
    const Space space = full_space(proposal, known_);
    KeyedRandom random(proposal, "qmc");
    // A point that was turned down stays turned down: further attempts leave the sequence.
    if (proposal.attempt > 0) return complete_point(space, {}, random);
    Assignment point;
    for (int i = 0; i < static_cast<int>(space.size()) && i < kSobolDimensions; ++i) {
      const auto index = static_cast<std::uint32_t>(proposal.number);
      const double unit =
          is_scrambled_ ? scrambled_sobol(index, i, proposal.seed) : sobol(index, i) / 4294967296.0;
      point.push_back(
          {space[i].name, space[i].distribution, from_unit(*space[i].distribution, unit)});
    }
    // Dimensions beyond the table are random.
    return complete_point(space, point, random);
  }

  double suggest(const History& /*history*/, const Proposal& proposal, const Assignment& /*so_far*/,
                 std::string_view name, const Distribution& distribution) override {
    KeyedRandom random(proposal, name);
    return uniform_value(distribution, random);
  }

 private:
  bool is_scrambled_;
  KnownSpace known_;
};

std::unique_ptr<Sampler> make_qmc(const Options& options, std::uint64_t /*seed*/,
                                  const Space* /*space*/) {
  return std::make_unique<QmcSampler>(OptionReader(options).flag("scramble", true));
}

const Register qmc_sampler{SamplerKind{
    .name = "qmc",
    .summary = "walk along Sobol's sequence, which fills the space evenly",
    .options = {{"scramble", "shift the sequence by the study's seed [true]"}},
    .make = make_qmc,
}};

}  // namespace

}  // namespace lathe::study
