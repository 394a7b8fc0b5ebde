// Two workers on one search: how much sooner they are done than one, and what a dead one costs.
//
//   bench_search_workers LATHE [NUM_TRIALS] [ROWS]
//
// LATHE is the program. A PostgreSQL server of our own has the studies. A small search of
// architectures on the built-in reviews is worked on by one process of one thread, then by two;
// then by two of which one is killed in the middle of a trial. Prints the times and their ratio,
// and for each search how many trials ended, how often a model was trained and which trials were
// begun again.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "lathe/core/error.h"
#include "lathe/study/storages/storage.h"
#include "lathe/study/testing/postgresql_server.h"

namespace {

using namespace lathe;
using Clock = std::chrono::steady_clock;

constexpr const char* kSpace = R"([architecture]
layers = [1, 2]
heads = [1, 2, 4]
hidden = [32, 48, 64]
intermediate = [64, 128]
projections = ["linear", "identity"]
[recipe]
epochs = 2
batch-size = 8
)";

pid_t launch(const std::vector<std::string>& arguments, const std::filesystem::path& log) {
  const pid_t child = fork();
  if (child != 0) return child;
  const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  dup2(file, 1);
  dup2(file, 2);
  std::vector<char*> texts;
  for (const std::string& each : arguments) texts.push_back(const_cast<char*>(each.c_str()));
  texts.push_back(nullptr);
  execv(texts.front(), texts.data());
  _exit(127);
}

void await(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) fail("a process ended with {}", status);
}

class Searches {
 public:
  Searches(std::string lathe, int num_trials, int num_rows)
      : lathe_(std::move(lathe)),
        num_trials_(num_trials),
        data_(fmt::format("reviews:train={},test=20", num_rows)),
        server_(study::PostgresqlServer::start()) {
    if (server_ == nullptr) fail("PostgreSQL is not installed");
    std::string pattern = "/tmp/lathe-workers-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    std::ofstream(folder_ / "space.toml") << kSpace;
    url_ = server_->new_database();
  }
  ~Searches() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  // Makes the search's study; no trial is begun.
  void begin(const std::string& name) {
    await(launch({lathe_,
                  "search",
                  "architecture",
                  "--data",
                  data_,
                  "--space",
                  (folder_ / "space.toml").string(),
                  "--length",
                  "64",
                  "--sampler",
                  "random",
                  "--trials",
                  std::to_string(num_trials_),
                  "--halving",
                  "0",
                  "--time",
                  "1ms",
                  "--storage",
                  url_,
                  "--study",
                  name,
                  "--threads",
                  "1",
                  "--quiet",
                  "--out",
                  (folder_ / name).string()},
                 folder_ / "log"));
  }
  pid_t work(const std::string& name, int worker) {
    return launch({lathe_, "search", "worker", "--storage", url_, "--study", name, "--threads", "1",
                   "--quiet", "--out", (folder_ / fmt::format("{}-{}", name, worker)).string()},
                  folder_ / "log");
  }
  std::vector<study::TrialRecord> trials(const std::string& name) const {
    const auto storage = study::open_storage(url_);
    std::vector<study::TrialRecord> result;
    if (const auto id = storage->find_study(name + " random")) storage->refresh(*id, result);
    return result;
  }

  // What the trials say of who worked on them.
  void report(const std::string& name) const {
    int finished = 0, trained = 0;
    std::string again;
    for (const study::TrialRecord& trial : trials(name)) {
      finished += study::is_finished(trial.state);
      const bool is_copied = trial.user_attributes.contains("copied_from");
      const int attempts = std::stoi(trial.system_attributes.at("lathe:attempt"));
      trained += is_copied ? 0 : attempts;
      if (attempts > 1) again += fmt::format(" {} ({} times)", trial.number, attempts);
    }
    fmt::print("{:>8}: {} of {} trials ended, models trained {} times, begun again:{}\n", name,
               finished, num_trials_, trained, again.empty() ? " none" : again);
  }

 private:
  std::string lathe_;
  int num_trials_;
  std::string data_;
  std::unique_ptr<study::PostgresqlServer> server_;
  std::filesystem::path folder_;
  std::string url_;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc < 2) fail("expected LATHE [NUM_TRIALS] [ROWS]");
    Searches searches(argv[1], argc > 2 ? std::atoi(argv[2]) : 16,
                      argc > 3 ? std::atoi(argv[3]) : 2000);
    searches.begin("one");
    Clock::time_point start = Clock::now();
    await(searches.work("one", 0));
    const double one = seconds_since(start);
    searches.report("one");
    searches.begin("two");
    start = Clock::now();
    const pid_t first = searches.work("two", 0), second = searches.work("two", 1);
    await(first);
    await(second);
    const double two = seconds_since(start);
    searches.report("two");
    fmt::print("one worker {:.1f} s, two {:.1f} s: {:.2f} of the time\n", one, two, two / one);
    searches.begin("killed");
    const pid_t doomed = searches.work("killed", 0), other = searches.work("killed", 1);
    const auto num_ended = [&] {
      int count = 0;
      for (const study::TrialRecord& trial : searches.trials("killed"))
        count += study::is_finished(trial.state);
      return count;
    };
    while (num_ended() < 3) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    kill(doomed, SIGKILL);
    waitpid(doomed, nullptr, 0);
    await(other);
    searches.report("killed");
    return 0;
  } catch (const UserError& error) {
    fmt::print(stderr, "error: {}\n", error.message());
    return 1;
  }
}
