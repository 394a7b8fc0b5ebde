// How soon samplers find what is good among recorded trials of a search of architectures.
//
//   bench_search_replay STUDY.db|TRIALS.csv [SPACE] [NUM_SEEDS] [NUM_TRIALS] [NEIGHBORS]
//   bench_search_replay NB201.csv - [NUM_SEEDS] [NUM_TRIALS]
//   bench_search_replay STUDY.db SPACE --record TRIALS.csv
//
// Every sampler runs on the space, with halving unless --no-halving is given, once for each seed
// from 0 or --first-seed N. A point of a study's space gets what a model of all recorded trials
// says of it (trial_surrogate.h); with NEIGHBORS the mean of so many of the nearest ones (sizes by
// their place in their list, projections by the share that differ). One neighbour is a poor judge:
// every point near a lucky record is as lucky, so whoever draws widely finds it first. Rungs that a
// recorded trial was given up before are on the line through those that went on. The table of
// NAS-Bench-201 has every point; its accuracies on CIFAR-10, CIFAR-100 and ImageNet16-120 are the
// three reports of a trial. Prints the mean of the best so far over the seeds after every ten
// trials, and in how many seeds `auto` is ahead of `random` by the mean of its curve. --record
// writes the trials of a study as a small table.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <memory>

#include "bench/nasbench_table.h"
#include "bench/recorded_trials.h"
#include "bench/trial_surrogate.h"
#include "lathe/core/error.h"
#include "lathe/search/candidate_space.h"
#include "lathe/search/space_file.h"
#include "lathe/study/space_point.h"
#include "lathe/study/study.h"

namespace {

using namespace lathe;

using namespace lathe::bench;

constexpr std::array kSamplers{"random", "tpe", "auto"};

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
std::array<double, 3> reports_at(const std::vector<RecordedTrial>& recorded,
                                 const study::Assignment& point, int num_neighbors) {
  std::vector<std::pair<double, const RecordedTrial*>> near;
  for (const RecordedTrial& each : recorded) near.emplace_back(distance(point, each.point), &each);
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

// What a replay's points come from, and what their reports are.
struct Replay {
  study::Space space;
  std::function<bool(const study::Assignment&)> is_possible;
  std::function<std::array<double, 3>(const study::Assignment&)> reports;
};

Replay replay_of_trials(const std::string& path, const std::string& space_name, int num_neighbors) {
  const auto space =
      std::make_shared<const search::CandidateSpace>(search::read_search_space(space_name));
  const auto recorded = std::make_shared<std::vector<RecordedTrial>>(
      path.ends_with(".csv") ? read_table(path, space->parameters()) : read_study(path));
  if (recorded->empty()) fail("{}: has no trials with reports", path);
  fmt::print("{} recorded trials, {} to their end\n", recorded->size(),
             std::ranges::count(*recorded, kRungs.size(), &RecordedTrial::num_reports));
  complete_reports(*recorded);
  Replay replay{
      .space = space->parameters(),
      .is_possible = [=](const study::Assignment& point) { return space->is_possible(point); },
      .reports =
          [=](const study::Assignment& point) {
            return reports_at(*recorded, point, num_neighbors);
          }};
  if (num_neighbors > 0) return replay;
  const auto surrogate = std::make_shared<const TrialSurrogate>(*recorded);
  fmt::print("rank correlation of each record with what the others foretell, by rung:");
  for (std::size_t rung = 0; rung < kRungs.size(); ++rung)
    fmt::print(" {:.2f}", surrogate->rank_correlation(*recorded, rung));
  fmt::print("\n");
  replay.reports = [=](const study::Assignment& point) { return surrogate->reports(point); };
  return replay;
}

// Rungs are the accuracies on three data sets, the cheapest first: they agree about as far as short
// trainings agree with long ones.
Replay replay_of_table(const std::string& path) {
  study::CategoricalDistribution operations;
  for (int i = 0; i < kNasbenchOperations; ++i) operations.choices.emplace_back(std::int64_t{i});
  const auto distribution = std::make_shared<const study::Distribution>(operations);
  Replay replay;
  for (int edge = 0; edge < kNasbenchEdges; ++edge)
    replay.space.push_back({fmt::format("e{}", edge), distribution});
  replay.is_possible = [](const study::Assignment&) { return true; };
  replay.reports = [tables = std::array{
                        read_nasbench(path, "cifar10_valid"), read_nasbench(path, "cifar100_valid"),
                        read_nasbench(path, "imagenet16_valid")}](const study::Assignment& point) {
    std::size_t cell = 0;
    for (const study::Parameter& each : point)
      cell = cell * kNasbenchOperations + static_cast<std::size_t>(each.value);
    return std::array{tables[0][cell] / 100, tables[1][cell] / 100, tables[2][cell] / 100};
  };
  return replay;
}

std::vector<double> best_so_far(const Replay& replay, const std::string& sampler,
                                std::uint64_t seed, int num_trials, bool halves) {
  study::Study study = study::Study::create(
      study::open_storage("memory:"), "replay", {study::Direction::Maximize},
      {.sampler = sampler,
       .pruner = halves ? "successive-halving:min-resource=1,factor=3" : "none",
       .seed = seed,
       .space = replay.space,
       .is_allowed = replay.is_possible});
  std::vector<double> curve;
  for (int i = 0; i < num_trials; ++i) {
    std::optional<study::Trial> trial = study.ask();
    if (!trial) break;
    const std::array<double, 3> reports = replay.reports(trial->record().parameters);
    study::Outcome outcome{.values = {reports.back()}};
    for (std::size_t rung = 0; rung + 1 < kRungs.size(); ++rung) {
      trial->report(kRungs[rung], reports[rung]);
      if (trial->verdict() == study::Verdict::Continue) continue;
      outcome = {.state = study::TrialState::Pruned};
      break;
    }
    const double before = curve.empty() ? 0 : curve.back();
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
    std::vector<std::string> words(argv + 1, argv + argc);
    const bool halves = std::erase(words, "--no-halving") == 0;
    const auto take = [&](const char* name) -> std::optional<std::string> {
      const auto found = std::ranges::find(words, name);
      if (found == words.end()) return std::nullopt;
      if (found + 1 == words.end()) fail("{}: expected a value", name);
      std::string value = found[1];
      words.erase(found, found + 2);
      return value;
    };
    const std::uint64_t first_seed = std::stoull(take("--first-seed").value_or("0"));
    const std::optional<std::string> record = take("--record");
    if (words.empty())
      fail("expected STUDY.db|TRIALS.csv|NB201.csv [SPACE] [NUM_SEEDS] [NUM_TRIALS] [NEIGHBORS]");
    const auto number = [&](std::size_t index, int otherwise) {
      return index < words.size() ? std::atoi(words[index].c_str()) : otherwise;
    };
    const std::string space = words.size() > 1 ? words[1] : "lab2";
    if (record) {
      write_table(*record, read_study(words[0]),
                  search::CandidateSpace(search::read_search_space(space)).parameters());
      return 0;
    }
    const Replay replay =
        space == "-" ? replay_of_table(words[0]) : replay_of_trials(words[0], space, number(4, 0));
    const int num_seeds = number(2, 20), num_trials = number(3, 100);
    fmt::print("{} seeds from {}{}; mean of the best so far after 10, 20, ... trials\n", num_seeds,
               first_seed, halves ? "" : ", without halving");
    std::map<std::string, std::vector<double>> area;
    for (const char* const sampler : kSamplers) {
      std::vector<double> mean(static_cast<std::size_t>(num_trials), 0);
      for (int seed = 0; seed < num_seeds; ++seed) {
        const std::vector<double> curve = best_so_far(
            replay, sampler, first_seed + static_cast<std::uint64_t>(seed), num_trials, halves);
        double sum = 0;
        for (std::size_t i = 0; i < curve.size(); ++i) {
          mean[i] += curve[i] / num_seeds;
          sum += curve[i] / static_cast<double>(curve.size());
        }
        area[sampler].push_back(sum);
      }
      fmt::print("{:>8}", sampler);
      for (std::size_t i = 9; i < mean.size(); i += 10) fmt::print(" {:.5f}", mean[i]);
      double all = 0;
      for (const double each : mean) all += each / static_cast<double>(mean.size());
      fmt::print("  mean of all {:.5f}\n", all);
    }
    int ahead = 0;
    double sum = 0, squares = 0;
    for (std::size_t seed = 0; seed < area["auto"].size(); ++seed) {
      const double difference = area["auto"][seed] - area["random"][seed];
      ahead += difference > 0;
      sum += difference;
      squares += difference * difference;
    }
    const double mean = sum / num_seeds;
    fmt::print(
        "auto is ahead of random in {} of {} seeds, by {:.5f} in the mean, whose deviation is "
        "{:.5f}\n",
        ahead, num_seeds, mean, std::sqrt((squares / num_seeds - mean * mean) / num_seeds));
    return 0;
  } catch (const UserError& error) {
    fmt::print(stderr, "error: {}\n", error.message());
    return 1;
  }
}
