// Kills and freezes the workers of one study, and its server, and checks that nothing shows.
//
//   study_chaos sqlite|postgresql|journal [KEY=VALUE ...]
//
// Keys: workers, trials, seconds (that a trial takes), lease (milliseconds), kills, freezes,
// crashes (of the server), seed. What happens when is decided by how many trials are finished, so
// that everything happens however fast the machine is. Prints the number of violations of each
// invariant and ends with 1 when there is any; with 77 when there is no server to be had.
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>
#include <thread>

#include "chaos.h"
#include "lathe/core/error.h"
#include "lathe/study/storages/postgresql_connection.h"
#include "lathe/study/storages/sqlite_connection.h"
#include "lathe/study/study.h"
#include "lathe/study/testing/postgresql_server.h"

namespace lathe::study {
namespace {

using Clock = std::chrono::steady_clock;

Chaos parse_chaos(std::vector<std::string> words) {
  Chaos chaos;
  if (!words.empty()) chaos.kind = words.front();
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    const std::string key = words[i].substr(0, equals);
    const double value = std::atof(words[i].c_str() + std::min(equals + 1, words[i].size()));
    const int whole = static_cast<int>(value);
    if (key == "workers")
      chaos.workers = whole;
    else if (key == "trials")
      chaos.trials = whole;
    else if (key == "seconds")
      chaos.seconds = value;
    else if (key == "lease")
      chaos.lease = std::chrono::milliseconds(whole);
    else if (key == "kills")
      chaos.kills = whole;
    else if (key == "freezes")
      chaos.freezes = whole;
    else if (key == "crashes")
      chaos.crashes = whole;
    else if (key == "seed")
      chaos.seed = static_cast<unsigned>(whole);
    else
      fail("unknown key \"{}\"", key);
  }
  return chaos;
}

// The processes that work, and what is done to them.
class Workers {
 public:
  Workers(std::string url, std::string folder, const Chaos& chaos)
      : url_(std::move(url)), folder_(std::move(folder)), chaos_(chaos), random_(chaos.seed) {
    for (int i = 0; i < chaos.workers; ++i) start();
  }
  ~Workers() {
    for (const auto& [process, thaw] : processes_) kill(process, SIGKILL);
    for (const auto& [process, thaw] : processes_) waitpid(process, nullptr, 0);
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void kill_one() {
    const pid_t victim = choose();
    kill(victim, SIGKILL);
    waitpid(victim, nullptr, 0);
    processes_.erase(victim);
    start();
  }
  void freeze_one() {
    const pid_t victim = choose();
    kill(victim, SIGSTOP);
    processes_[victim] = Clock::now() + chaos_.lease * 3 / 2;
  }
  bool can_choose() const {
    return std::ranges::any_of(processes_, [](const auto& each) { return !each.second; });
  }
  // Thaws those whose time has come and replaces those that gave up.
  void look_after() {
    for (auto& [process, thaw] : processes_) {
      if (!thaw || Clock::now() < *thaw) continue;
      kill(process, SIGCONT);
      thaw.reset();
    }
    int status = 0;
    while (const pid_t process = waitpid(-1, &status, WNOHANG)) {
      if (process < 0) break;
      if (processes_.erase(process) == 0) continue;  // the server's
      if (status == 0) continue;
      ++num_restarts_;
      start();
    }
  }
  bool is_empty() const { return processes_.empty(); }
  int num_restarts() const { return num_restarts_; }

 private:
  void start() {
    std::vector<std::string> words = {"/proc/self/exe",
                                      "worker",
                                      url_,
                                      fmt::format("{}/{}.log", folder_, num_started_++),
                                      chaos_.kind,
                                      fmt::format("trials={}", chaos_.trials),
                                      fmt::format("seconds={}", chaos_.seconds),
                                      fmt::format("lease={}", chaos_.lease.count())};
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    const pid_t process = fork();
    if (process < 0) fail("cannot start a worker");
    if (process == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      execv(pointers.front(), pointers.data());
      _exit(127);
    }
    processes_[process] = {};
  }
  pid_t choose() {
    std::vector<pid_t> candidates;
    for (const auto& [process, thaw] : processes_)
      if (!thaw) candidates.push_back(process);
    check(!candidates.empty(), "a worker that is not frozen");
    return candidates[random_() % candidates.size()];
  }

  std::string url_;
  std::string folder_;
  Chaos chaos_;
  std::mt19937 random_;
  std::map<pid_t, std::optional<Clock::time_point>> processes_;  // and when to thaw it
  int num_started_ = 0;
  int num_restarts_ = 0;
};

// How many of `total` events are due when `done` of the trials are finished: all at nine tenths.
int due(int total, std::int64_t done, int trials) {
  return static_cast<int>(
      std::min<std::int64_t>(total, 10 * done * total / std::max(1, 9 * trials)));
}

int run_driver(const Chaos& chaos) {
  std::unique_ptr<PostgresqlServer> server;
  std::string folder = (std::filesystem::temp_directory_path() / "lathe_chaos_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) fail("{}: cannot be created", folder);
  const std::string tables = folder + "/studies.db";
  std::string url = "sqlite:///" + tables;
  if (chaos.kind == "postgresql") {
    server = PostgresqlServer::start();
    if (!server) {
      fmt::print("skipped: PostgreSQL is not installed\n");
      return 77;
    }
    url = server->new_database();
  } else if (chaos.kind == "journal") {
    url = fmt::format("journal:///{}/studies.journal", folder);
  } else if (chaos.kind != "sqlite") {
    fail("unknown storage \"{}\", expected sqlite, postgresql or journal", chaos.kind);
  }
  const std::shared_ptr<Storage> storage = open_storage(url);
  const StudyId study =
      Study::create(storage, kStudyName, {Direction::Minimize}, {.sampler = "random"}).record().id;

  const Clock::time_point start = Clock::now();
  int kills = 0, freezes = 0, crashes = 0;
  const int num_crashes = server ? chaos.crashes : 0;
  int num_restarts = 0;
  std::vector<TrialRecord> trials;
  {
    Workers workers(url, folder, chaos);
    while (!workers.is_empty()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      workers.look_after();
      storage->refresh(study, trials);
      const std::int64_t done =
          std::ranges::count(trials, TrialState::Complete, &TrialRecord::state);
      if (done == chaos.trials) continue;
      if (crashes < due(num_crashes, done, chaos.trials)) {
        server->crash();
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        server->restart();
        ++crashes;
      }
      if (freezes < due(chaos.freezes, done, chaos.trials) && workers.can_choose()) {
        workers.freeze_one();
        ++freezes;
      }
      if (kills < due(chaos.kills, done, chaos.trials) && workers.can_choose()) {
        workers.kill_one();
        ++kills;
      }
    }
    num_restarts = workers.num_restarts();
  }
  fmt::print(
      "{}: {} trials in {:.1f} s with {} workers: {} killed, {} frozen, server killed {} "
      "times, {} workers gave up and were replaced\n",
      chaos.kind, chaos.trials, std::chrono::duration<double>(Clock::now() - start).count(),
      chaos.workers, kills, freezes, crashes, num_restarts);
  if (chaos.kind == "journal") copy_to_tables(*storage, tables);
  const std::unique_ptr<SqlConnection> connection =
      server ? connect_postgresql(url) : connect_sqlite(tables);
  const int num_broken = check_invariants(*connection, folder, chaos.trials);
  const bool is_complete =
      kills >= chaos.kills && freezes >= chaos.freezes && crashes >= num_crashes;
  if (!is_complete) fmt::print("error: the trials were over before everything was done to them\n");
  if (num_broken == 0) std::filesystem::remove_all(folder);
  return num_broken == 0 && is_complete ? 0 : 1;
}

}  // namespace
}  // namespace lathe::study

int main(int argc, char** argv) {
  using namespace lathe::study;
  std::vector<std::string> words(argv + 1, argv + argc);
  try {
    if (words.size() > 3 && words.front() == "worker")
      return run_worker(words[1], parse_chaos({words.begin() + 3, words.end()}), words[2]);
    return run_driver(parse_chaos(words));
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}
