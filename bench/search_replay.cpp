// How soon samplers find what is good among recorded trials of a search of architectures.
//
//   bench_search_replay STUDY.db [SPACE] [NUM_SEEDS] [NUM_TRIALS] [NEIGHBORS]
//
// Every sampler runs on the space, with halving, once for each seed; a point that it proposes gets
// the reports of the recorded trial that is nearest to it (sizes by their place in their list,
// projections by the share that differ), or with NEIGHBORS the mean of so many. Rungs that the
// recorded trial was given up before are on the line through those that went on. Prints the mean of
// the best so far over the seeds after every ten trials, and in how many seeds `auto` is ahead of
// `random` by the mean of its curve.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "lathe/core/error.h"
#include "lathe/search/candidate_space.h"
#include "lathe/search/space_file.h"
#include "lathe/study/space_point.h"
#include "lathe/study/study.h"

namespace {

using namespace lathe;

constexpr std::array kRungs{1, 3, 9};
constexpr std::array kSamplers{"random", "tpe", "auto"};

struct Recorded {
  study::Assignment point;
  std::array<double, 3> reports = {};
};

// The least-squares line of y over x.
struct Line {
  double slope = 0, offset = 0;
  explicit Line(const std::vector<std::pair<double, double>>& points) {
    double x = 0, y = 0, xx = 0, xy = 0;
    const auto count = static_cast<double>(points.size());
    for (const auto& [a, b] : points) {
      x += a / count;
      y += b / count;
    }
    for (const auto& [a, b] : points) {
      xx += (a - x) * (a - x);
      xy += (a - x) * (b - y);
    }
    slope = xx > 0 ? xy / xx : 0;
    offset = y - slope * x;
  }
};

std::vector<Recorded> read(const std::string& path) {
  const auto storage = study::open_storage("sqlite:///" + path);
  std::vector<Recorded> result;
  std::vector<std::size_t> known;  // rungs of each
  for (const study::StudyRecord& record : storage->studies()) {
    std::vector<study::TrialRecord> trials;
    storage->refresh(record.id, trials);
    for (const study::TrialRecord& trial : trials) {
      if (!study::is_finished(trial.state) || trial.intermediate_values.empty()) continue;
      Recorded& each = result.emplace_back(Recorded{trial.parameters});
      known.push_back(0);
      for (std::size_t rung = 0; rung < kRungs.size(); ++rung)
        if (const auto found = trial.intermediate_values.find(kRungs[rung]);
            found != trial.intermediate_values.end() && known.back() == rung) {
          each.reports[rung] = found->second;
          ++known.back();
        }
    }
  }
  for (std::size_t rung = 1; rung < kRungs.size(); ++rung) {
    std::vector<std::pair<double, double>> points;
    for (std::size_t i = 0; i < result.size(); ++i)
      if (known[i] > rung)
        points.emplace_back(result[i].reports[rung - 1], result[i].reports[rung]);
    const Line line(points);
    for (std::size_t i = 0; i < result.size(); ++i)
      if (known[i] <= rung)
        result[i].reports[rung] = std::max(result[i].reports[rung - 1],
                                           line.offset + line.slope * result[i].reports[rung - 1]);
  }
  return result;
}

double distance(const study::Assignment& a, const study::Assignment& b) {
  double sizes = 0, differ = 0, projections = 0;
  for (const study::Parameter& each : a) {
    const study::Parameter* other = study::find_parameter(b, each.name);
    const auto& choices = std::get<study::CategoricalDistribution>(*each.distribution).choices;
    if (choices.size() > 2) {
      if (other != nullptr)
        sizes += std::abs(each.value - other->value) / static_cast<double>(choices.size() - 1);
    } else {
      ++projections;
      differ += other == nullptr || other->value != each.value;
    }
  }
  return sizes + (projections > 0 ? differ / projections : 0);
}

// The reports of the nearest recorded trial, or the mean of several, each by the inverse of its
// distance: a single trial's luck is nobody's merit.
std::array<double, 3> reports_at(const std::vector<Recorded>& recorded,
                                 const study::Assignment& point, int num_neighbors) {
  std::vector<std::pair<double, const Recorded*>> near;
  for (const Recorded& each : recorded) near.emplace_back(distance(point, each.point), &each);
  const auto count = std::min<std::size_t>(near.size(), static_cast<std::size_t>(num_neighbors));
  std::partial_sort(near.begin(), near.begin() + static_cast<std::ptrdiff_t>(count), near.end(),
                    [](const auto& a, const auto& b) { return a.first < b.first; });
  constexpr double kNear = 0.1;  // what a projection or two make of a distance
  std::array<double, 3> sums = {};
  double weights = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double weight = 1 / (near[i].first + kNear);
    weights += weight;
    for (std::size_t rung = 0; rung < sums.size(); ++rung)
      sums[rung] += weight * near[i].second->reports[rung];
  }
  for (double& sum : sums) sum /= weights;
  return sums;
}

std::vector<double> best_so_far(const std::vector<Recorded>& recorded,
                                const search::CandidateSpace& space, const std::string& sampler,
                                std::uint64_t seed, int num_trials, int num_neighbors) {
  study::Study study = study::Study::create(
      study::open_storage("memory:"), "replay", {study::Direction::Maximize},
      {.sampler = sampler,
       .pruner = "successive-halving:min-resource=1,factor=3",
       .seed = seed,
       .space = space.parameters(),
       .is_allowed = [&](const study::Assignment& point) { return space.is_possible(point); }});
  std::vector<double> curve;
  for (int i = 0; i < num_trials; ++i) {
    std::optional<study::Trial> trial = study.ask();
    if (!trial) break;
    const std::array<double, 3> reports =
        reports_at(recorded, trial->record().parameters, num_neighbors);
    study::Outcome outcome{.values = {reports.back()}};
    for (std::size_t rung = 0; rung + 1 < kRungs.size(); ++rung) {
      trial->report(kRungs[rung], reports[rung]);
      if (trial->verdict() == study::Verdict::Continue) continue;
      outcome = {.state = study::TrialState::Pruned};
      break;
    }
    const double before = curve.empty() ? 0.5 : curve.back();
    curve.push_back(outcome.state == study::TrialState::Complete
                        ? std::max(before, outcome.values.front())
                        : before);
    if (!study.tell(*trial, outcome)) fail("the replay's trial was lost");
  }
  return curve;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc < 2) fail("expected STUDY.db [SPACE] [NUM_SEEDS] [NUM_TRIALS] [NEIGHBORS]");
    const std::vector<Recorded> recorded = read(argv[1]);
    const search::CandidateSpace space(search::read_search_space(argc > 2 ? argv[2] : "lab2"));
    const int num_seeds = argc > 3 ? std::atoi(argv[3]) : 20;
    const int num_trials = argc > 4 ? std::atoi(argv[4]) : 100;
    const int num_neighbors = argc > 5 ? std::atoi(argv[5]) : 1;
    if (recorded.empty()) fail("{}: has no trials with reports", argv[1]);
    fmt::print("{} recorded trials, {} seeds; mean of the best so far after 10, 20, ... trials\n",
               recorded.size(), num_seeds);
    std::map<std::string, std::vector<double>> area;
    for (const char* const sampler : kSamplers) {
      std::vector<double> mean(static_cast<std::size_t>(num_trials), 0);
      for (int seed = 0; seed < num_seeds; ++seed) {
        const std::vector<double> curve = best_so_far(
            recorded, space, sampler, static_cast<std::uint64_t>(seed), num_trials, num_neighbors);
        double sum = 0;
        for (std::size_t i = 0; i < curve.size(); ++i) {
          mean[i] += curve[i] / num_seeds;
          sum += curve[i] / static_cast<double>(curve.size());
        }
        area[sampler].push_back(sum);
      }
      fmt::print("{:>8}", sampler);
      for (std::size_t i = 9; i < mean.size(); i += 10) fmt::print(" {:.4f}", mean[i]);
      double all = 0;
      for (const double each : mean) all += each / static_cast<double>(mean.size());
      fmt::print("  mean of all {:.4f}\n", all);
    }
    int ahead = 0;
    for (int seed = 0; seed < num_seeds; ++seed)
      ahead += area["auto"][static_cast<std::size_t>(seed)] >
               area["random"][static_cast<std::size_t>(seed)];
    fmt::print("auto is ahead of random in {} of {} seeds\n", ahead, num_seeds);
    return 0;
  } catch (const UserError& error) {
    fmt::print(stderr, "error: {}\n", error.message());
    return 1;
  }
}
