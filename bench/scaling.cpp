// How BERT runs on more and more threads: a table, and a chart of it.
//
//   bench_scaling [--threads 1,2,4,8,16] [--rounds N | --seconds S] [--warm-up S] [--turns N]
//   [--rates FILE] [--svg FILE] CASE...
//
// CASE is MODEL:inference:ROWSxLENGTH or MODEL:training:ROWSxLENGTH, with :bf16 behind it for that
// precision. Runs bench_inference and bench_training, which lie beside this program, once for each
// number of threads, for so many rounds or seconds each: seconds where cases of milliseconds and of
// seconds come together. The share of a row is its speed over that of one thread times the threads.
// Where others use the machine from minute to minute, all numbers of threads take several turns,
// and the best one of each counts.
//
// A file of rates keeps every rate, a line each, and those that it holds already count too. So what
// takes long may be measured apart, with fewer rounds, and with --turns 0 nothing is measured: the
// table and the chart are of the file, with a dash where it has no rate.

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "lathe/core/error.h"
#include "lathe/core/json_reader.h"
#include "lathe/report/plot.h"

namespace {

using namespace lathe;

std::vector<std::string> split(const std::string& text, char mark) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, mark);) parts.push_back(part);
  return parts;
}

int parse_turns(const std::string& text) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos)
    fail("--turns {}: expected a number", text);
  return std::atoi(text.c_str());
}

struct Case {
  std::string model, work, shape, precision = "float32";

  explicit Case(const std::string& text) {
    const std::vector<std::string> parts = split(text, ':');
    if (parts.size() < 3 || parts.size() > 4 || (parts[1] != "inference" && parts[1] != "training"))
      fail("{}: expected MODEL:inference|training:ROWSxLENGTH[:PRECISION]", text);
    model = parts[0], work = parts[1], shape = parts[2];
    if (parts.size() == 4) precision = parts[3];
  }

  std::string command(const std::string& folder, int threads, const std::string& rounds) const {
    return fmt::format("'{}/bench_{}' '{}' {}:{} --threads {} {} --precision {}", folder, work,
                       model, work == "inference" ? "padded" : "full", shape, threads, rounds,
                       precision);
  }
  std::string title() const {
    return fmt::format("{} {} {}{}", model, work == "inference" ? "forward" : "step", shape,
                       precision == "float32" ? "" : " " + precision);
  }
};

double tokens_per_second(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  if (pipe == nullptr) fail("{}: cannot be run", command);
  std::string output;
  std::array<char, 4096> piece{};
  while (const std::size_t count = std::fread(piece.data(), 1, piece.size(), pipe.get()))
    output.append(piece.data(), count);
  return parse_json(output, command).at("tokens_per_second").get<double>();
}

// The best rate of each case and number of threads, and the file that keeps them, if there is one.
class Rates {
 public:
  Rates(std::string file, bool is_all) : file_(std::move(file)) {
    std::ifstream lines(file_);
    if (!lines && is_all) fail("{}: cannot be read", file_);
    for (std::string line; std::getline(lines, line);) {
      const nlohmann::json read = parse_json(line, file_);
      count(read.at("case").get<std::string>(), read.at("threads").get<int>(),
            read.at("tokens_per_second").get<double>());
    }
  }
  void add(const std::string& title, int threads, double rate) {
    count(title, threads, rate);
    if (file_.empty()) return;
    std::ofstream lines(file_, std::ios::app);
    lines << fmt::format("{{\"case\": \"{}\", \"threads\": {}, \"tokens_per_second\": {:.0f}}}\n",
                         title, threads, rate);
    if (!lines.flush()) fail("{}: cannot be written", file_);
  }
  /// Or 0 where nothing was measured.
  double best(const std::string& title, int threads) const {
    const auto found = best_.find({title, threads});
    return found == best_.end() ? 0 : found->second;
  }

 private:
  void count(const std::string& title, int threads, double rate) {
    double& best = best_[{title, threads}];
    best = std::max(best, rate);
  }

  std::string file_;
  std::map<std::pair<std::string, int>, double> best_;
};

int run(int argc, char** argv) {
  std::vector<int> threads;
  int turns = 1;
  std::string counts = "1,2,4,8,16", svg, kept, length = "--rounds 5", warm_up = "0.3";
  std::vector<Case> cases;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--threads" && i + 1 < argc)
      counts = argv[++i];
    else if ((word == "--rounds" || word == "--seconds") && i + 1 < argc)
      length = word + " " + argv[++i];
    else if (word == "--warm-up" && i + 1 < argc)
      warm_up = argv[++i];
    else if (word == "--turns" && i + 1 < argc)
      turns = parse_turns(argv[++i]);
    else if (word == "--rates" && i + 1 < argc)
      kept = argv[++i];
    else if (word == "--svg" && i + 1 < argc)
      svg = argv[++i];
    else
      cases.emplace_back(word);
  }
  for (const std::string& count : split(counts, ',')) threads.push_back(std::atoi(count.c_str()));
  if (cases.empty() || threads.empty() || threads.front() < 1 || turns < (kept.empty() ? 1 : 0))
    fail(
        "usage: bench_scaling [--threads 1,2,4,8,16] [--rounds N | --seconds S] [--warm-up S] "
        "[--turns N] [--rates FILE] [--svg FILE] CASE...");
  const std::string folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();

  Rates rates(kept, turns == 0);
  for (int turn = 0; turn < turns; ++turn)
    for (const Case& one : cases)
      for (const int count : threads) {
        const double rate = tokens_per_second(
            one.command(folder, count, fmt::format("{} --warm-up {}", length, warm_up)));
        fmt::print(stderr, "turn {}: {}, {} threads: {:.0f}\n", turn + 1, one.title(), count, rate);
        rates.add(one.title(), count, rate);
      }

  fmt::print("| work |");
  for (const int count : threads) fmt::print(" {} |", count);
  fmt::print("\n| --- |");
  for (std::size_t i = 0; i < threads.size(); ++i) fmt::print(" --- |");
  fmt::print("\n");
  std::vector<report::Series> lines;
  for (const Case& one : cases) {
    report::Series& line = lines.emplace_back(report::Series{.name = one.title()});
    fmt::print("| {} |", one.title());
    // Of one thread, by the first count.
    const double single = rates.best(one.title(), threads.front()) / threads.front();
    for (const int count : threads) {
      const double rate = rates.best(one.title(), count), speed = rate / single;
      if (rate == 0 || single == 0) {
        fmt::print(" {} |", rate == 0 ? "-" : fmt::format("{:.0f}", rate));
        continue;
      }
      fmt::print(" {:.0f} ({:.0f} %) |", rate, 100 * speed / count);
      line.x.push_back(count);
      line.y.push_back(speed);
    }
    fmt::print("\n");
  }
  if (svg.empty()) return 0;
  report::Series all{.name = "as many times as threads"};
  for (const int count : threads) {
    all.x.push_back(count);
    all.y.push_back(count);
  }
  lines.push_back(std::move(all));
  std::ofstream file(svg);
  file << report::line_chart({.title = "Speed on more threads",
                              .x = {.label = "threads"},
                              .y = {.label = "times the speed of one thread"}},
                             lines);
  if (!file.flush()) fail("{}: cannot be written", svg);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const lathe::UserError& error) {
    fmt::print(stderr, "error: {}\n", error.message());
    return 1;
  }
}
