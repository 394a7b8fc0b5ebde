#include "lathe/study/samplers/random_sampler.h"

#include <algorithm>
#include <cmath>

#include "lathe/core/registry.h"
#include "lathe/study/math/keyed_random.h"
#include "lathe/study/option_reader.h"
#include "lathe/study/uniform_value.h"

namespace lathe::study {

double OptunaRandom::draw(const Distribution& distribution) {
  if (const std::size_t count = num_choices(distribution); count > 0) {
    // One number per choice; the choice of the largest wins.
    std::size_t best = 0;
    double largest = -1;
    for (std::size_t i = 0; i < count; ++i) {
      const double number = random_.uniform(0, 1);
      if (number > largest) best = i;
      largest = std::max(largest, number);
    }
    return static_cast<double>(best);
  }
  const NumericRange range = *numeric_range(distribution);
  double value = range.to_internal(random_.uniform(range.low, range.high));
  // Without steps the upper end itself is left out.
  if (!range.step && range.first < range.last)
    value = std::min(value, std::nextafter(range.last, range.last - 1));
  return value;
}

Assignment RandomSampler::propose(const History& /*history*/, const Proposal& /*proposal*/) {
  return {};
}

double RandomSampler::suggest(const History& /*history*/, const Proposal& proposal,
                              const Assignment& /*so_far*/, std::string_view name,
                              const Distribution& distribution) {
  KeyedRandom random(proposal, name);
  return uniform_value(distribution, random);
}

namespace {

class OptunaRandomSampler final : public Sampler {
 public:
  explicit OptunaRandomSampler(std::uint64_t seed) : random_(seed) {}
  Assignment propose(const History& /*history*/, const Proposal& /*proposal*/) override {
    return {};
  }
  double suggest(const History& /*history*/, const Proposal& /*proposal*/,
                 const Assignment& /*so_far*/, std::string_view /*name*/,
                 const Distribution& distribution) override {
    return random_.draw(distribution);
  }

 private:
  OptunaRandom random_;
};

std::unique_ptr<Sampler> make_random(const Options& options, std::uint64_t seed,
                                     const Space* /*space*/) {
  const std::string preset =
      OptionReader(options).word("preset", "lathe", {"lathe", "optuna-3", "optuna-4", "optuna-5"});
  if (preset == "lathe") return std::make_unique<RandomSampler>();
  return std::make_unique<OptunaRandomSampler>(seed);
}

const Register random_sampler{SamplerKind{
    .name = "random",
    .summary = "draw every parameter evenly and by itself",
    .options = {{"preset", "lathe, or the numbers of optuna-3, optuna-4 or optuna-5 [lathe]"}},
    .make = make_random,
}};

}  // namespace

}  // namespace lathe::study
