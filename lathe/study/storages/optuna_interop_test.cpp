// Studies that Lathe and Optuna write in turns, in every storage that both have.
//
// Optuna runs twice for all storages together, since it takes seconds to start: in between and
// before, Lathe has its turns.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "lathe/study/json_text.h"
#include "lathe/study/storages/time_text.h"
#include "lathe/study/study.h"
#include "lathe/study/testing/storage_places.h"

namespace lathe::study {
namespace {

using nlohmann::json;

// Reads places and the turn from a file, does Optuna's part and prints what it sees as JSON.
constexpr const char* kPython = R"(
import json, sys, warnings
import optuna
from optuna.distributions import distribution_to_json
from optuna.trial import TrialState

warnings.simplefilter("ignore")
optuna.logging.set_verbosity(optuna.logging.ERROR)


def storage_of(place, ours):
    if place["kind"] == "journal":
        path = place["url"][len("journal:///"):]
        return optuna.storages.JournalStorage(optuna.storages.JournalFileStorage(path))
    # Optuna 3.1 expects v3.0.0.d, which is what it made itself and Lathe must have left alone.
    return optuna.storages.RDBStorage(place["url"], skip_compatibility_check=ours)


def objective(trial):
    x = trial.suggest_float("x", 0, 1)
    trial.suggest_float("lr", 1e-5, 1e-1, log=True)
    trial.suggest_float("q", 0, 2, step=0.25)
    n = trial.suggest_int("n", 2, 16, step=2)
    trial.suggest_int("m", 1, 1024, log=True)
    trial.suggest_categorical("c", [None, True, 8, 2.5, "gelu"])
    trial.report(x, 0)
    return (x - 0.3) ** 2 + n / 100


def dump(study):
    def text(time):
        return None if time is None else time.strftime("%Y-%m-%d %H:%M:%S.%f")

    return {
        # With infinite values, which SQL keeps as NULL, Optuna 3.1 takes one of those for the best.
        "best": study.best_trial.number if study.study_name != "infinite" else None,
        "user": study.user_attrs,
        "trials": [
            {
                "number": t.number,
                "state": t.state.name,
                "values": t.values,
                "params": t.params,
                "distributions": {k: json.loads(distribution_to_json(d)) for k, d in t.distributions.items()},
                "reports": {str(k): v for k, v in t.intermediate_values.items()},
                "user": t.user_attrs,
                "system": t.system_attrs,
                "start": text(t.datetime_start),
                "complete": text(t.datetime_complete),
            }
            for t in study.trials
        ],
    }


def add_every_kind(study):
    def fail(trial):
        trial.suggest_float("x", 0, 1)
        raise ValueError("no")

    def prune(trial):
        trial.report(trial.suggest_float("x", 0, 1), 7)
        raise optuna.TrialPruned()

    def diverge(trial):
        trial.report(float("inf"), 0)
        trial.report(float("-inf"), 1)
        trial.set_user_attr("loss", float("nan"))
        trial.set_user_attr("notes", {"k\u00e4se": [1, 2.5, None, True, "x"]})
        return 5

    study.set_user_attr("author", "python")
    study.optimize(fail, n_trials=1, catch=(ValueError,))
    study.optimize(prune, n_trials=1)
    study.optimize(diverge, n_trials=1)


places, turn = json.load(open(sys.argv[1])), sys.argv[2]
result = []
for place in places:
    seen = {}
    ours = storage_of(place["ours"], True)
    theirs = storage_of(place["theirs"], False)
    sampler = optuna.samplers.TPESampler(seed=1, n_startup_trials=3)
    if turn == "first":
        study = optuna.load_study(study_name="ours", storage=ours, sampler=sampler)
        seen["ours"] = dump(study)
        study.optimize(objective, n_trials=20)
        seen["more"] = dump(study)
        study = optuna.create_study(study_name="theirs", storage=theirs, sampler=sampler)
        add_every_kind(study)
        study.optimize(objective, n_trials=8)
        study.enqueue_trial({"x": 0.125, "c": None})
        seen["theirs"] = dump(study)
        seen["infinite"] = dump(optuna.load_study(study_name="infinite", storage=ours))
        study = optuna.create_study(study_name="infinite", storage=theirs)
        study.optimize(lambda trial: float("inf"), n_trials=1)
        study.optimize(lambda trial: float("-inf"), n_trials=1)
    else:
        seen["ours"] = dump(optuna.load_study(study_name="ours", storage=ours))
        study = optuna.load_study(study_name="theirs", storage=theirs, sampler=sampler)
        seen["theirs"] = dump(study)
        study.optimize(objective, n_trials=1)
    result.append(seen)
json.dump(result, open(sys.argv[3], "w"))
)";

std::filesystem::path own_folder() {
  const auto folder =
      std::filesystem::temp_directory_path() / fmt::format("lathe_interop_{}", getpid());
  std::filesystem::create_directories(folder);
  return folder;
}

// Python's watch over heartbeats, in a session whose time zone is not ours.
constexpr const char* kWatch = R"(
import sys
import optuna

storage = optuna.storages.RDBStorage(sys.argv[1], skip_compatibility_check=True,
                                     heartbeat_interval=60, grace_period=120)
study = optuna.load_study(study_name="leased", storage=storage)
optuna.storages.fail_stale_trials(study)
)";

json run_optuna(const json& places, const std::string& turn) {
  const std::filesystem::path folder = own_folder();
  std::ofstream(folder / "script.py") << kPython;
  std::ofstream(folder / "places.json") << places.dump();
  const std::string command = fmt::format(
      "cd {} && TZ=UTC /usr/bin/python3 script.py places.json {} seen.json > output 2>&1",
      folder.string(), turn);
  const int status = std::system(command.c_str());
  const auto read = [&](const char* name) {
    std::stringstream text;
    text << std::ifstream(folder / name).rdbuf();
    return text.str();
  };
  if (status != 0) {
    ADD_FAILURE() << read("output");
    return json::array();
  }
  return parse_json(read("seen.json"));
}

// The trials as the script prints them.
json dump(Study& study) {
  const auto text = [](const std::optional<Time>& time) {
    return time ? json(to_text(*time)) : json(nullptr);
  };
  const auto object = [](const Attributes& attributes) {
    json result = json::object();
    for (const auto& [key, value] : attributes) result[key] = parse_json(value);
    return result;
  };
  json trials = json::array();
  for (const TrialRecord& trial : study.history().trials()) {
    json line = {{"number", trial.number},
                 {"state", std::string(name(trial.state))},
                 {"values", trial.values.empty() ? json(nullptr) : json(trial.values)},
                 {"params", json::object()},
                 {"distributions", json::object()},
                 {"reports", json::object()},
                 {"user", object(trial.user_attributes)},
                 {"system", object(trial.system_attributes)},
                 {"start", text(trial.start)},
                 {"complete", text(trial.complete)}};
    for (const Parameter& each : trial.parameters) {
      line["params"][each.name] = parse_json(to_json(to_external(*each.distribution, each.value)));
      line["distributions"][each.name] = parse_json(to_json(*each.distribution));
    }
    for (const auto& [step, value] : trial.intermediate_values)
      line["reports"][std::to_string(step)] = value;
    trials.push_back(std::move(line));
  }
  const bool has_best = study.record().name != "infinite";
  return {{"best", has_best ? json(study.best()->number) : json(nullptr)},
          {"user", object(study.record().user_attributes)},
          {"trials", std::move(trials)}};
}

// Trial by trial, so that a difference can be found in the message. As text, since NaN differs
// from itself.
void expect_same(const json& found, const json& expected) {
  EXPECT_EQ(found.at("best"), expected.at("best"));
  EXPECT_EQ(to_json_text(found.at("user")), to_json_text(expected.at("user")));
  ASSERT_EQ(found.at("trials").size(), expected.at("trials").size());
  for (std::size_t i = 0; i < found.at("trials").size(); ++i)
    EXPECT_EQ(to_json_text(found.at("trials")[i]), to_json_text(expected.at("trials")[i]));
}

const std::vector<Choice> kChoices = {std::monostate{}, true, std::int64_t{8}, 2.5,
                                      std::string("gelu")};

Outcome objective(Trial& trial) {
  const double x = trial.suggest_float("x", 0, 1);
  trial.suggest_float("lr", 1e-5, 1e-1, true);
  trial.suggest_float("q", 0, 2, false, 0.25);
  const auto n = static_cast<double>(trial.suggest_int("n", 2, 16, false, 2));
  trial.suggest_int("m", 1, 1024, true);
  trial.suggest_categorical("c", kChoices);
  trial.report(0, x);
  return {.values = {(x - 0.3) * (x - 0.3) + n / 100}};
}

void run_trials(Study& study, int count) {
  for (int i = 0; i < count; ++i) {
    std::optional<Trial> trial = study.ask();
    ASSERT_TRUE(trial);
    ASSERT_TRUE(study.tell(*trial, objective(*trial)));
  }
}

// A study with everything that a study can have.
void write_every_kind(const std::string& url) {
  Study study = Study::create(open_storage(url), "ours", {Direction::Minimize},
                              {.sampler = "random", .seed = 7});
  study.storage().set_study_attributes(study.record().id, {{"author", "\"k\\u00e4se\""}}, {});
  run_trials(study, 6);
  study.add({.state = TrialState::Complete,
             .values = {5},
             .intermediate_values = {{0, NAN}, {1, INFINITY}, {2, -INFINITY}, {3, 0.1 + 0.2}},
             .user_attributes = {{"loss", "NaN"}, {"notes", "{\"a\": [1, 2.5, null, true]}"}},
             .start = now(),
             .complete = now()});
  std::optional<Trial> pruned = study.ask();
  pruned->report(5, pruned->suggest_float("x", 0, 1));
  ASSERT_TRUE(study.tell(*pruned, {.state = TrialState::Pruned}));
  std::optional<Trial> failed = study.ask();
  failed->suggest_categorical("c", kChoices);
  ASSERT_TRUE(study.tell(*failed, {.state = TrialState::Fail, .reason = "out of memory"}));
  std::optional<Trial> running = study.ask();
  running->suggest_int("n", 2, 16, false, 2);
  ASSERT_TRUE(running->flush());
  std::optional<Trial> handed_back = study.ask();
  handed_back->suggest_float("x", 0, 1);
  study.release(*handed_back);
  study.enqueue({{"x", 0.25}, {"c", std::monostate{}}});

  Study infinite =
      Study::create(open_storage(url), "infinite", {Direction::Minimize}, {.sampler = "random"});
  for (const double value : {INFINITY, -INFINITY})
    infinite.add(
        {.state = TrialState::Complete, .values = {value}, .start = now(), .complete = now()});
}

json dump_study(const json& place, const std::string& name) {
  Study study = Study::open(open_storage(place["url"]), name, {.sampler = "random"});
  return dump(study);
}

TEST(OptunaInterop, TakesTurnsOnTheSameStudies) {
  if (std::system("/usr/bin/python3 -c 'import optuna, psycopg2' >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "python3-optuna or python3-psycopg2 is not installed";
  json places = json::array();
  std::vector<StoragePlace> kept;  // they are cleared when they go
  for (const std::string kind : {"sqlite", "postgresql", "journal"}) {
    json place = json::object();
    for (const char* whose : {"ours", "theirs"}) {
      std::optional<StoragePlace> made = storage_place(kind);
      if (!made) continue;
      kept.push_back(*made);
      place[whose] = {{"kind", kind}, {"url", made->url}};
    }
    if (place.size() == 2) places.push_back(place);
  }

  std::vector<json> written;
  for (const json& place : places) {
    write_every_kind(place["ours"]["url"]);
    written.push_back(dump_study(place["ours"], "ours"));
  }
  const json first = run_optuna(places, "first");
  ASSERT_EQ(first.size(), places.size());
  std::vector<json> continued;
  for (std::size_t i = 0; i < places.size(); ++i) {
    SCOPED_TRACE(places[i].dump());
    expect_same(first[i]["ours"], written[i]);
    expect_same(first[i]["infinite"], dump_study(places[i]["ours"], "infinite"));
    const json infinite = dump_study(places[i]["theirs"], "infinite");
    EXPECT_EQ(infinite["trials"][0]["values"][0], INFINITY);
    EXPECT_EQ(infinite["trials"][1]["values"][0], -INFINITY);

    Study ours = Study::open(open_storage(places[i]["ours"]["url"]), "ours", {.sampler = "tpe"});
    expect_same(dump(ours), first[i]["more"]);
    // 12 of ours, and 18 new ones: two of the 20 were waiting.
    EXPECT_EQ(ours.history().trials().size(), 12 + 18);
    const TrialRecord& handed_back = ours.history().trials()[10];
    EXPECT_EQ(handed_back.state, TrialState::Complete) << "Python took it";
    EXPECT_EQ(handed_back.parameters.at(0).value,
              written[i]["trials"][10]["params"]["x"].get<double>());
    EXPECT_EQ(ours.history().trials()[11].find("x")->value, 0.25);
    EXPECT_EQ(ours.history().trials()[11].find("c")->value, 0);
    run_trials(ours, 5);

    Study theirs =
        Study::open(open_storage(places[i]["theirs"]["url"]), "theirs", {.sampler = "tpe"});
    expect_same(dump(theirs), first[i]["theirs"]);
    run_trials(theirs, 6);
    const TrialRecord& enqueued = theirs.history().trials()[3 + 8];
    EXPECT_EQ(enqueued.state, TrialState::Complete);
    EXPECT_EQ(enqueued.find("x")->value, 0.125);
    EXPECT_EQ(enqueued.find("c")->value, 0);
    theirs.enqueue({{"x", 0.75}});
    continued.push_back({{"ours", dump_study(places[i]["ours"], "ours")},
                         {"theirs", dump_study(places[i]["theirs"], "theirs")}});
  }

  const json second = run_optuna(places, "second");
  ASSERT_EQ(second.size(), places.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    SCOPED_TRACE(places[i].dump());
    expect_same(second[i]["ours"], continued[i]["ours"]);
    expect_same(second[i]["theirs"], continued[i]["theirs"]);
    Study theirs =
        Study::open(open_storage(places[i]["theirs"]["url"]), "theirs", {.sampler = "random"});
    EXPECT_EQ(theirs.history().trials().back().state, TrialState::Complete);
    EXPECT_EQ(theirs.history().trials().back().find("x")->value, 0.75) << "Python took ours";
  }
  std::filesystem::remove_all(own_folder());
}

// Optuna 3.1 fails every running trial whose heartbeat is, by its own clock and zone, too far off
// in either direction, so a lease of ours must not look like one of its heartbeats.
TEST(OptunaInterop, DoesNotFailATrialThatIsLeasedInAnotherTimeZone) {
  if (std::system("/usr/bin/python3 -c 'import optuna, psycopg2' >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "python3-optuna or python3-psycopg2 is not installed";
  const std::optional<StoragePlace> place = storage_place("postgresql");
  if (!place) GTEST_SKIP() << "PostgreSQL is not installed";
  const std::filesystem::path script = own_folder() / "watch.py";
  std::ofstream(script) << kWatch;
  for (const char* zone : {"Asia/Tokyo", "America/Los_Angeles", "UTC"}) {
    Study study = Study::create(open_storage(place->url), "leased", {Direction::Minimize},
                                {.sampler = "random", .lease = std::chrono::milliseconds(600'000)});
    std::optional<Trial> trial = study.ask();
    ASSERT_EQ(std::system(fmt::format("PGTZ={} /usr/bin/python3 {} '{}' >{}.output 2>&1", zone,
                                      script.string(), place->url, script.string())
                              .c_str()),
              0);
    EXPECT_TRUE(study.tell(*trial, {.values = {1}})) << zone;
  }
  std::filesystem::remove_all(own_folder());
}

}  // namespace
}  // namespace lathe::study
