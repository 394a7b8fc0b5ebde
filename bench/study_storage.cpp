// What keeping a study costs: SQLite beside memory, many workers on PostgreSQL, long studies.
//
//   bench_study_storage [memory|sqlite] [TRIALS] [PARAMETERS]
//   bench_study_storage postgresql [TRIALS] [PARAMETERS] [WORKERS]
//   bench_study_storage long sqlite|postgresql [TRIALS] [PARAMETERS]
//   bench_study_storage server COMMAND ...     (runs it, with a database's URL for the word URL)
//
// Random sampler, empty objective, a declared space of categorical parameters. PostgreSQL is a
// server of our own with fsync on. `bench/study_storage_rival.py` does the same with Optuna.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "lathe/core/error.h"
#include "lathe/study/study.h"
#include "lathe/study/testing/postgresql_server.h"

namespace {

using namespace lathe::study;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Space space_of(int num_parameters) {
  const auto widths = std::make_shared<const Distribution>(CategoricalDistribution{
      {std::int64_t{2}, std::int64_t{4}, std::int64_t{8}, std::int64_t{16}}});
  Space space;
  for (int i = 0; i < num_parameters; ++i)
    space.push_back({.name = fmt::format("layer.{}.width", i), .distribution = widths});
  return space;
}

Study open_study(const std::string& url, int num_parameters, std::optional<int> max_trials = {}) {
  return Study::create(open_storage(url), "bench", {Direction::Maximize},
                       {.sampler = "random",
                        .seed = 1,
                        .space = space_of(num_parameters),
                        .max_trials = max_trials});
}

int run_trials(Study& study, int count) {
  int done = 0;
  while (done < count) {
    std::optional<Trial> trial = study.ask();
    if (!trial) break;
    if (!study.tell(*trial, {.values = {0.5}})) lathe::fail("a result was refused");
    ++done;
  }
  return done;
}

// A file of its own for the time of a measurement, on the disk of the present folder.
struct TemporaryFile {
  std::string path = fmt::format("bench_study_{}.db", getpid());
  ~TemporaryFile() {
    for (const char* ending : {"", "-wal", "-shm"}) std::remove((path + ending).c_str());
  }
};

double milliseconds_per_trial(const std::string& url, int num_trials, int num_parameters) {
  Study study = open_study(url, num_parameters);
  run_trials(study, 20);  // statements are prepared, pages are there
  const Clock::time_point start = Clock::now();
  run_trials(study, num_trials);
  return 1000 * seconds_since(start) / num_trials;
}

void measure_one(const std::string& kind, int num_trials, int num_parameters) {
  const TemporaryFile file;
  const double memory = milliseconds_per_trial("memory:", num_trials, num_parameters);
  fmt::print("memory: {:.3f} ms per trial of {} parameters, {} trials\n", memory, num_parameters,
             num_trials);
  if (kind == "memory") return;
  const double sqlite =
      milliseconds_per_trial("sqlite:///" + file.path, num_trials, num_parameters);
  fmt::print("sqlite: {:.3f} ms per trial, {:.3f} ms more than memory\n", sqlite, sqlite - memory);
}

std::unique_ptr<PostgresqlServer> start_server() {
  auto server = PostgresqlServer::start();
  if (!server) lathe::fail("PostgreSQL is not installed");
  return server;
}

void measure_workers(int num_trials, int num_parameters, int num_workers) {
  const auto server = start_server();
  const std::string url = server->new_database();
  open_study(url, num_parameters);
  const Clock::time_point start = Clock::now();
  std::vector<pid_t> workers;
  for (int i = 0; i < num_workers; ++i) {
    const pid_t worker = fork();
    if (worker == 0) {
      int status = 1;
      try {
        Study study = open_study(url, num_parameters, num_trials);
        run_trials(study, num_trials);
        status = 0;
      } catch (const lathe::UserError& error) {
        fmt::print(stderr, "error: {}\n", error.what());
      }
      _exit(status);
    }
    workers.push_back(worker);
  }
  bool is_good = true;
  for (const pid_t worker : workers) {
    int status = 0;
    waitpid(worker, &status, 0);
    is_good = is_good && status == 0;
  }
  const double seconds = seconds_since(start);
  Study study = open_study(url, num_parameters);
  const std::size_t finished = study.history().finished().size();
  if (!is_good || finished != static_cast<std::size_t>(num_trials)) lathe::fail("a worker failed");
  fmt::print("postgresql: {:.0f} trials/s: {} workers, {} trials of {} parameters in {:.2f} s\n",
             num_trials / seconds, num_workers, num_trials, num_parameters, seconds);
}

// For the rival, which cannot start a server by itself.
void run_with_server(const std::vector<std::string>& words) {
  const auto server = start_server();
  std::string command;
  for (const std::string& word : words)
    command += fmt::format("'{}' ", word == "URL" ? server->new_database() : word);
  if (std::system(command.c_str()) != 0) lathe::fail("{}: failed", command);
}

void measure_long(const std::string& kind, int num_trials, int num_parameters) {
  const TemporaryFile file;
  const auto server = kind == "postgresql" ? start_server() : nullptr;
  const std::string url = server ? server->new_database() : "sqlite:///" + file.path;
  Study study = open_study(url, num_parameters);
  run_trials(study, num_trials);

  Clock::time_point start = Clock::now();
  std::vector<TrialRecord> known;
  const auto reader = open_storage(url);
  reader->refresh(study.record().id, known);
  fmt::print("{}: {} trials of {} parameters: first read {:.1f} ms\n", kind, known.size(),
             num_parameters, 1000 * seconds_since(start));
  constexpr int kRepeats = 200;
  start = Clock::now();
  for (int i = 0; i < kRepeats; ++i) reader->refresh(study.record().id, known);
  fmt::print("  with nothing new: {:.3f} ms\n", 1000 * seconds_since(start) / kRepeats);
  start = Clock::now();
  run_trials(study, kRepeats);
  fmt::print("  ask and tell: {:.3f} ms\n", 1000 * seconds_since(start) / kRepeats);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const auto number = [&](std::size_t place, int standard) {
    return place < words.size() ? std::max(1, std::atoi(words[place].c_str())) : standard;
  };
  try {
    if (words.empty() || words[0] == "memory" || words[0] == "sqlite")
      measure_one(words.empty() ? "sqlite" : words[0], number(1, 500), number(2, 14));
    else if (words[0] == "postgresql")
      measure_workers(number(1, 2000), number(2, 14), number(3, 8));
    else if (words.size() > 1 && words[0] == "server")
      run_with_server({words.begin() + 1, words.end()});
    else if (words.size() > 1 && words[0] == "long")
      measure_long(words[1], number(2, 10000), number(3, 14));
    else
      lathe::fail(
          "expected memory, sqlite, postgresql, long or server; see the head of the source");
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
  return 0;
}
