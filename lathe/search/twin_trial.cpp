#include "lathe/search/twin_trial.h"

#include <chrono>
#include <thread>

namespace lathe::search {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBetweenLooks(100);
// A worker says that it lives several times within a lease of half a minute.
constexpr std::chrono::seconds kSilence(40);

// What changes in a trial's record as long as its worker lives.
std::string sign_of_life(const study::TrialRecord& trial) {
  const auto found = trial.system_attributes.find("lathe:heartbeat");
  return fmt::format("{} {}", trial.intermediate_values.size(),
                     found == trial.system_attributes.end() ? "" : found->second);
}

}  // namespace

void await_twin(study::Study& study, const std::string& name, const study::Trial& trial,
                const CandidateSpace& space, KnownResults& known, const ShouldStop& should_stop) {
  const Candidate candidate = space.candidate(trial.record().parameters);
  std::string heard;
  Clock::time_point heard_at = Clock::now();
  while (true) {
    const study::TrialRecord* twin = nullptr;
    for (const study::TrialRecord& each : study.history().trials()) {
      if (each.number >= trial.number()) break;
      const bool is_over = study::is_finished(each.state);
      if ((each.state != study::TrialState::Running && !is_over) || each.parameters.empty())
        continue;
      const std::optional<Candidate> other = space.find_candidate(each.parameters);
      if (!other || *other != candidate) continue;
      if (is_over)
        known.add(name, each);
      else
        twin = &each;
    }
    if (twin == nullptr) return;
    if (should_stop && should_stop()) throw Interrupted();
    if (std::string now = sign_of_life(*twin); now != heard) {
      heard = std::move(now);
      heard_at = Clock::now();
    }
    if (Clock::now() - heard_at > kSilence) return;
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

}  // namespace lathe::search
