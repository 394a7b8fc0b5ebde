#include "lathe/search/search_flow.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <tuple>

#include "lathe/compress/layer_match.h"
#include "lathe/compress/layers.h"
#include "lathe/core/error.h"
#include "lathe/core/passes/profile.h"
#include "lathe/experiment/evaluate.h"
#include "lathe/experiment/side_by_side.h"
#include "lathe/io/output_directory.h"
#include "lathe/search/allocation.h"
#include "lathe/search/narrowed_grid.h"
#include "lathe/search/precision_costs.h"
#include "lathe/search/search_directory.h"
#include "lathe/search/search_report.h"
#include "lathe/search/search_studies.h"
#include "lathe/search/space_file.h"
#include "lathe/search/train_candidate.h"
#include "lathe/study/samplers/sampler.h"
#include "lathe/train/answers.h"

namespace lathe::search {
namespace {

namespace fs = std::filesystem;

// A name for files: `tpe:gamma=0.3` has characters that some file systems refuse.
std::string file_name(std::string text) {
  for (char& each : text)
    if (each == ':' || each == '/' || each == '=' || each == ',') each = '-';
  return text;
}

// The layers that choose a format.
std::vector<std::string> layers_of(const SearchSpace& space, const Graph& graph) {
  std::vector<std::string> layers;
  if (!space.precision) return layers;
  for (const compress::Layer& layer : compress::find_layers(graph))
    if (compress::matches(compress::MatchBy::Regex, space.precision->layers,
                          graph.op(layer.node).name, graph.name(layer.node)))
      layers.push_back(graph.name(layer.node));
  if (layers.empty()) fail("layers \"{}\": match no layer of the model", space.precision->layers);
  return layers;
}

SearchSpace space_for(const SearchOptions& options) {
  SearchSpace space = options.space_text.empty()
                          ? read_search_space(options.space)
                          : parse_search_space(options.space_text, options.space);
  if (options.model.empty()) {
    if (space.precision)
      throw UserError(
          fmt::format("space {}: has formats, which are of a trained model", options.space),
          "lathe search precision --model DIR");
  } else if (!space.precision) {
    throw UserError(fmt::format("space {}: has no formats to choose from", options.space),
                    "add a table [precision.families], or take lab3");
  }
  return space;
}

class Search {
 public:
  Search(const SearchOptions& options, const engine::ExecutionOptions& execution,
         const experiment::Callbacks& callbacks)
      : options_(options),
        execution_(execution),
        callbacks_(callbacks),
        file_(space_for(options)),
        data_(options, file_.architecture.model, execution, callbacks),
        space_(file_, layers_of(file_, data_.base().graph)),
        costs_(data_.base().graph) {
    if (space_.parameters().empty())
      fail("space {}: there is nothing to choose: every value is fixed", options.space);
    for (const std::string& sampler : options.samplers)
      with_place("sampler",
                 [&] { study::make_sampler(sampler, options.seed, &space_.parameters()); });
    check_budget();
    directory_.emplace(options);
    studies_.emplace(options, space_, [this](const study::Assignment& point) {
      return !has_budget() || is_within_budget(point);
    });
  }

  // Trials alone.
  void work() {
    if (space_.space().precision && options_.is_damage_measured) start_by_damage();
    run_studies();
  }

  // A trial's model once more, to the same bits.
  TrainedCandidate rebuild(const std::string& sampler, int number) {
    for (const SearchStudies::Record& record : studies_->read()) {
      if (record.sampler != sampler) continue;
      if (number < 0 || number >= std::ssize(record.history.trials()))
        fail("trial {}: the study {} has {}", number, sampler, record.history.trials().size());
      const study::TrialRecord& trial = record.history.trials()[static_cast<std::size_t>(number)];
      return *train_candidate(
          data_, space_.candidate(trial.parameters), options_.seed, rungs(),
          directory_->path() / "trials" / fmt::format("{}-{}-again", file_name(sampler), number),
          false, execution_, {.callbacks = callbacks_});
    }
    throw unknown_name("sampler", sampler, options_.samplers);
  }

  SearchResult run() {
    const auto start = std::chrono::steady_clock::now();
    work();
    SearchResult result{.measured_on = data_.measured_on(),
                        .chance_level = data_.chance_level(),
                        .is_precision = space_.space().precision.has_value()};
    for (SearchStudies::Record& record : studies_->read())
      result.studies.push_back({std::move(record.sampler), std::move(record.history)});
    for (SearchStudies::Record& record : studies_->read_listed())
      result.studies.push_back({std::move(record.sampler), std::move(record.history)});
    result.finalists = best_trials(result);
    if (!result.finalists.empty()) {
      train_again(result.finalists);
      result.test_accuracy = test(result.finalists.front());
    }
    result.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    write_report(result, options_, directory_->path());
    return result;
  }

 private:
  bool has_budget() const { return options_.max_weight_bits || options_.max_data_bits; }
  BitBudget budget() const {
    return {.weights = options_.max_weight_bits, .data = options_.max_data_bits};
  }
  bool is_within_budget(const study::Assignment& point) const {
    const std::optional<Candidate> candidate = space_.find_candidate(point);
    if (!candidate) return true;  // not decided yet
    const compress::AverageBits bits = costs_.average(*candidate);
    return bits.weights <= options_.max_weight_bits.value_or(bits.weights) &&
           bits.data <= options_.max_data_bits.value_or(bits.data);
  }

  // A budget that nothing meets is an error before any work.
  void check_budget() const {
    if (!has_budget()) return;
    if (!space_.space().precision)
      fail("max-weight-bits: needs a model, whose formats are searched");
    const BitBudget smallest =
        Allocation(file_, space_.layers(), costs_,
                   [](const std::string&, const TensorChoices&, const std::string&) { return 0.0; })
            .smallest();
    for (const auto& [name, most, least] :
         {std::tuple("max-weight-bits", options_.max_weight_bits, *smallest.weights),
          std::tuple("max-data-bits", options_.max_data_bits, *smallest.data)})
      if (most && *most < least)
        fail("{} {}: no point of the space has so few; the smallest possible is {:.4g}", name,
             *most, least);
  }

  // Measures how far answers move with one layer's tensors alone in a format, all of them once.
  void start_by_damage() {
    const train::Answers plain = answer(data_.base());
    std::int64_t done = 0;
    for (const std::string& layer : space_.layers()) {
      std::map<std::string, double> found;
      for (const TensorChoices& tensors : file_.precision->tensors)
        for (const FormatChoices& family : tensors.families)
          for (const std::string& format : family.formats) {
            const std::string name = damage_name(layer, tensors, format);
            if (directory_->find(name) || found.contains(name)) continue;
            Candidate one;
            for (const compress::TensorRole role : tensors.roles) one.formats[layer][role] = format;
            found[name] =
                format == "float"
                    ? 0
                    : train::mean_divergence(
                          plain.logits,
                          answer(build_candidate(data_, one, options_.seed, execution_)).logits);
          }
      directory_->keep(found);
      callbacks_.tell({.activity = "measuring damage",
                       .unit = "layers",
                       .done = ++done,
                       .total = std::ssize(space_.layers())});
    }
    allocation_.emplace(
        file_, space_.layers(), costs_,
        [this](const std::string& layer, const TensorChoices& tensors, const std::string& format) {
          return *directory_->find(damage_name(layer, tensors, format));
        });
    find_starts();
  }

  static std::string damage_name(const std::string& layer, const TensorChoices& tensors,
                                 const std::string& format) {
    return fmt::format("damage of {} to {}{}{}", format, layer, tensors.name.empty() ? "" : " ",
                       tensors.name);
  }

  train::Answers answer(const io::Model& model) const {
    train::Classifier classifier(model, {.execution = execution_});
    return train::answer_all(
        classifier, *data_.calibration(),
        {.progress = [&](std::int64_t, std::int64_t) { return !callbacks_.stops(); }});
  }

  // The best by damage within the budget, or within some where there is none.
  void find_starts() {
    const auto add = [&](const BitBudget& within) {
      if (auto point = allocation_->best(within))
        if (std::ranges::find(starts_, *point) == starts_.end())
          starts_.push_back(std::move(*point));
    };
    if (has_budget()) return add(budget());
    for (const double bits : {8.0, 6.0, 4.0, 3.0, 2.5, 2.0, 1.5})
      add({.weights = bits, .data = std::max(4.0, bits)});
  }

  // Starts first. Within a budget most points that a sampler draws at random cost too much, so that
  // others are drawn from near the best by damage: all of a random study's, and of one that learns
  // the first and every other.
  std::optional<Allocation::Point> propose(const std::string& sampler, int number) const {
    if (!allocation_ || sampler.starts_with("grid")) return std::nullopt;
    if (static_cast<std::size_t>(number) < starts_.size())
      return starts_[static_cast<std::size_t>(number)];
    if (!has_budget()) return std::nullopt;
    const bool learns = !sampler.starts_with("random");
    if (learns && number >= kFirstDrawn && number % 2 == 1) return std::nullopt;
    return allocation_->sample(budget(), options_.seed + static_cast<std::uint64_t>(number));
  }
  static constexpr int kFirstDrawn = 12;

  void run_studies() {
    run_studies(options_.samplers, options_.trials,
                [&](const std::string& study, int number) { return propose(study, number); });
    if (options_.narrow > 0) run_narrowed();
    if (options_.tries_uniform) run_listed(kUniform, affordable(space_.uniform_points()));
  }

  // Those of the points that are within the budget.
  std::vector<Allocation::Point> affordable(std::vector<Allocation::Point> points) const {
    std::erase_if(points, [&](const Allocation::Point& point) {
      study::Assignment known;
      for (const study::SpaceParameter& each : space_.parameters())
        for (const auto& [name, value] : point)
          if (name == each.name)
            known.push_back(
                {name, each.distribution, study::to_internal(*each.distribution, value, name)});
      return has_budget() && !is_within_budget(known);
    });
    return points;
  }

  void run_listed(const char* study, const std::vector<Allocation::Point>& points) {
    run_studies({study}, static_cast<int>(points.size()), [&](const std::string&, int number) {
      return std::optional(points[static_cast<std::size_t>(number)]);
    });
  }

  void run_studies(const std::vector<std::string>& samplers, int trials,
                   const ProposePoint& proposal) {
    studies_->run(
        samplers, trials,
        [&](const std::string& study, study::Trial& trial,
            const engine::ExecutionOptions& execution, const experiment::Callbacks& callbacks) {
          return evaluate(study, trial, execution, callbacks);
        },
        proposal, execution_, callbacks_, [&](const EndedTrial& ended) { tell(ended, trials); });
  }

  // The grid follows from the studies, which are over: a run that goes on makes the same.
  void run_narrowed() {
    const std::vector<SearchStudies::Record> records = studies_->read();
    std::vector<const study::History*> histories;
    for (const SearchStudies::Record& record : records) histories.push_back(&record.history);
    const auto points = narrowed_grid(space_, histories, options_.narrow, options_.above);
    run_listed(kNarrowed, points);
  }

  void tell(const EndedTrial& ended, int trials) const {
    callbacks_.tell({.activity = "searching by " + ended.study,
                     .unit = "trials",
                     .done = ended.num_finished,
                     .total = trials,
                     .note = ended.best ? fmt::format("best {:.4f}", *ended.best) : ""});
  }

  // What the candidate's bits cost, in accuracy.
  double cost_of(const compress::AverageBits& bits) const {
    return options_.bit_cost * (bits.weights + bits.data) / 2;
  }
  compress::AverageBits bits_of(const Candidate& candidate) const {
    return space_.space().precision ? costs_.average(candidate) : compress::AverageBits{};
  }

  study::Outcome evaluate(const std::string& study, study::Trial& trial,
                          const engine::ExecutionOptions& execution,
                          const experiment::Callbacks& callbacks) {
    const Candidate candidate = space_.candidate(trial.record().parameters);
    const compress::AverageBits bits = bits_of(candidate);
    const double cost = space_.space().precision ? cost_of(bits) : 0;
    if (space_.space().precision) {
      trial.set_user_attribute("weight_bits", fmt::format("{:.6g}", bits.weights));
      trial.set_user_attribute("data_bits", fmt::format("{:.6g}", bits.data));
      trial.set_user_attribute("rounded_weights", fmt::format("{:.6g}", bits.rounded_weights));
    }
    const auto goes_on = [&](int resource, double score) {
      trial.report(resource, score);
      return trial.verdict() == study::Verdict::Continue;
    };
    if (const std::optional<KnownResult> known = studies_->known().find(candidate))
      if (const auto outcome = replay(*known, trial, cost, goes_on)) return *outcome;
    const std::optional<TrainedCandidate> trained = train_candidate(
        data_, candidate, options_.seed, rungs(),
        directory_->path() / "trials" / fmt::format("{}-{}", file_name(study), trial.number()),
        false, execution,
        {.goes_on = [&](int resource,
                        double accuracy) { return goes_on(resource, accuracy - cost); },
         .callbacks = {.notice = callbacks.notice, .should_stop = callbacks.should_stop}});
    if (!trained) return given_up(trial, cost);
    const double score = trained->accuracy - cost;
    trial.report(rungs().resource(rungs().count - 1), score);
    trial.set_user_attribute("accuracy", fmt::format("{:.6g}", trained->accuracy));
    trial.set_user_attribute("seconds", fmt::format("{:.3f}", trained->seconds));
    label_chance(trial, trained->accuracy);
    return {.values = {score}};
  }

  // What the same model came to before, judged by this study; nothing where it must go on further
  // than it did.
  std::optional<study::Outcome> replay(const KnownResult& known, study::Trial& trial, double cost,
                                       const std::function<bool(int, double)>& goes_on) const {
    trial.set_user_attribute("copied_from", nlohmann::json(known.from).dump());
    const int last = rungs().resource(rungs().count - 1);
    for (const auto& [resource, accuracy] : known.reports) {
      if (resource == last)
        trial.report(resource, accuracy);
      else if (!goes_on(resource, accuracy))
        return given_up(trial, cost);
    }
    if (!known.accuracy) return std::nullopt;
    for (const char* const key : {"accuracy", "collapsed", "seconds"})
      if (const auto found = known.attributes.find(key); found != known.attributes.end())
        trial.set_user_attribute(key, found->second);
    return study::Outcome{.values = {*known.accuracy}};
  }

  study::Outcome given_up(study::Trial& trial, double cost) const {
    const std::map<int, double>& reports = trial.record().intermediate_values;
    if (!reports.empty()) label_chance(trial, reports.rbegin()->second + cost);
    return {.state = study::TrialState::Pruned};
  }

  // No result that guessing has too goes unlabelled.
  void label_chance(study::Trial& trial, double accuracy) const {
    if (accuracy <= data_.chance_level()) trial.set_user_attribute("collapsed", "true");
  }

  Rungs rungs() const {
    return options_.halving == 0 ? Rungs{.factor = 1, .count = 1}
                                 : Rungs{.factor = options_.halving, .count = options_.rungs};
  }

  // The best complete trials of all studies, each model once.
  std::vector<Finalist> best_trials(const SearchResult& result) const {
    std::vector<Finalist> best;
    for (const SearchResult::Study& study : result.studies)
      for (const study::TrialRecord& trial : study.history.trials()) {
        if (trial.state != study::TrialState::Complete) continue;
        Finalist finalist{.sampler = study.sampler,
                          .trial = trial.number,
                          .candidate = space_.candidate(trial.parameters)};
        finalist.bits = bits_of(finalist.candidate);
        finalist.cost = space_.space().precision ? cost_of(finalist.bits) : 0;
        finalist.found = trial.values.front() + finalist.cost;
        const auto is_same = [&](const Finalist& each) {
          return each.candidate == finalist.candidate;
        };
        if (std::ranges::none_of(best, is_same)) best.push_back(std::move(finalist));
      }
    std::ranges::stable_sort(best, std::greater(),
                             [](const Finalist& each) { return each.found - each.cost; });
    if (best.size() > static_cast<std::size_t>(options_.finalists))
      best.resize(static_cast<std::size_t>(options_.finalists));
    return best;
  }

  // With seeds that the studies have not seen: what was best by luck is not so again.
  std::uint64_t seed_of(int index) const {
    return options_.seed + 1 + static_cast<std::uint64_t>(index);
  }
  fs::path path_of(const Finalist& finalist, int seed) const {
    return directory_->path() / "finalists" /
           fmt::format("{}-{}-seed-{}", file_name(finalist.sampler), finalist.trial, seed_of(seed));
  }

  void train_again(std::vector<Finalist>& finalists) {
    std::vector<experiment::Job> jobs;
    for (Finalist& finalist : finalists) {
      finalist.accuracies.resize(static_cast<std::size_t>(options_.seeds));
      for (int seed = 0; seed < options_.seeds; ++seed)
        jobs.emplace_back([&, seed](const engine::ExecutionOptions& execution,
                                    const experiment::Callbacks& callbacks) {
          finalist.accuracies[static_cast<std::size_t>(seed)] =
              train_again(finalist, seed, execution, callbacks);
          callbacks.tell({.activity = "training the best again", .unit = "runs"});
        });
    }
    experiment::do_side_by_side(jobs, options_.jobs, execution_, callbacks_);
    for (Finalist& finalist : finalists) {
      Candidate plain = finalist.candidate;
      plain.formats.clear();
      Graph graph = build_candidate(data_, plain, options_.seed, execution_).graph;
      finalist.parameters = profile(graph).parameters;
    }
    std::ranges::stable_sort(finalists, std::greater(),
                             [](const Finalist& each) { return each.mean() - each.cost; });
  }

  double train_again(const Finalist& finalist, int seed, const engine::ExecutionOptions& execution,
                     const experiment::Callbacks& callbacks) {
    const fs::path path = path_of(finalist, seed);
    const std::string name = path.filename().string();
    if (const auto known = directory_->find(name)) return *known;
    const auto trained = train_candidate(data_, finalist.candidate, seed_of(seed), rungs(), path,
                                         true, execution, {.callbacks = callbacks});
    directory_->keep(name, trained->accuracy);
    return trained->accuracy;
  }

  // The chosen candidate's model of the seed that did best on the rows that were held out.
  std::optional<double> test(const Finalist& chosen) {
    const auto best = std::ranges::max_element(chosen.accuracies) - chosen.accuracies.begin();
    const io::Model model = io::load_model(path_of(chosen, static_cast<int>(best)).string());
    const fs::path target = directory_->path() / "best";
    std::error_code ignored;
    fs::remove_all(target, ignored);
    io::write_checkpoint(target, model);
    const std::string name =
        "test of " + path_of(chosen, static_cast<int>(best)).filename().string();
    if (const auto known = directory_->find(name)) return known;
    if (!options_.is_tested || !data::has_split(options_.data, "test")) return std::nullopt;
    const double accuracy =
        experiment::evaluate_on(model,
                                {.data = options_.data, .split = "test", .length = options_.length},
                                execution_, callbacks_)
            .classes->accuracy;
    directory_->keep(name, accuracy);
    return accuracy;
  }

  const SearchOptions& options_;
  const engine::ExecutionOptions& execution_;
  const experiment::Callbacks& callbacks_;
  const SearchSpace file_;
  const TrialData data_;
  const CandidateSpace space_;
  const PrecisionCosts costs_;
  // Once all that may be wrong with those is known: a mistake must not leave a directory.
  std::optional<SearchDirectory> directory_;
  std::optional<SearchStudies> studies_;
  std::optional<Allocation> allocation_;
  std::vector<Allocation::Point> starts_;
};

}  // namespace

double Finalist::mean() const {
  return std::accumulate(accuracies.begin(), accuracies.end(), 0.0) /
         static_cast<double>(accuracies.size());
}

SearchResult run_search(const SearchOptions& options, const engine::ExecutionOptions& execution,
                        const experiment::Callbacks& callbacks) {
  check_options(options);
  return Search(options, execution, callbacks).run();
}

void work_on_search(const std::string& storage, const std::string& study,
                    const std::function<void(SearchOptions&)>& change,
                    const engine::ExecutionOptions& execution,
                    const experiment::Callbacks& callbacks) {
  SearchOptions options = read_stored_search(storage, study);
  if (change) change(options);
  check_options(options);
  Search(options, execution, callbacks).work();
}

std::optional<double> export_trial(const ExportOptions& options,
                                   const engine::ExecutionOptions& execution,
                                   const experiment::Callbacks& callbacks) {
  SearchOptions search = read_search(options.search);
  io::check_output_directory(options.target, options.replaces, {options.search});
  const auto write = [&](const io::Model& model) {
    io::write_output_directory(options.target, options.replaces,
                               [&](const fs::path& path) { io::write_checkpoint(path, model); });
  };
  if (!options.trial) {
    const fs::path best = options.search / "best";
    if (!fs::exists(best))
      fail("{}: the search has not chosen a model yet", options.search.string());
    write(io::load_model(best.string()));
    return std::nullopt;
  }
  std::string sampler = options.sampler;
  if (sampler.empty() && search.samplers.size() == 1) sampler = search.samplers.front();
  if (sampler.empty())
    fail("sampler: the search has several: {}", fmt::join(search.samplers, ", "));
  const TrainedCandidate trained =
      Search(search, execution, callbacks).rebuild(sampler, *options.trial);
  write(as_stored(trained.model));
  return trained.accuracy;
}

}  // namespace lathe::search
