#include "lathe/search/twin_trial.h"

#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <thread>

#include "lathe/io/testing/scratch_directory.h"
#include "lathe/search/search_studies.h"
#include "lathe/search/space_file.h"

namespace lathe::search {
namespace {

constexpr const char* kTwoPoints = "[architecture]\nlayers = [1, 2]\n";

// Every trial takes a while, so that four jobs are at work on two points at the same time.
TEST(TwinTrial, TwoJobsThatDrawTheSamePointTrainItOnce) {
  const io::ScratchDirectory scratch;
  SearchOptions options;
  options.samplers = {"random"};
  options.halving = 0;
  options.jobs = 4;
  options.out = scratch.path();
  options.space_text = kTwoPoints;
  const CandidateSpace space(parse_search_space(kTwoPoints, "s.toml"));
  SearchStudies studies(options, space);
  std::mutex mutex;
  std::map<std::string, int> trained;
  studies.run(options.samplers, 12,
              [&](const std::string&, study::Trial& trial, const engine::ExecutionOptions&,
                  const experiment::Callbacks&) -> study::Outcome {
                const Candidate candidate = space.candidate(trial.record().parameters);
                if (const auto known = studies.known().find(candidate))
                  return {.values = {*known->accuracy}};
                {
                  const std::scoped_lock lock(mutex);
                  ++trained[to_json(candidate).dump()];
                }
                std::this_thread::sleep_for(std::chrono::milliseconds(200));
                return {.values = {0.5}};
              },
              {}, {}, {}, {});
  EXPECT_EQ(studies.read().front().history.finished().size(), 12U);
  ASSERT_EQ(trained.size(), 2U);
  for (const auto& [candidate, times] : trained) EXPECT_EQ(times, 1) << candidate;
}

}  // namespace
}  // namespace lathe::search
