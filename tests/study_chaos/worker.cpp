// A worker of the chaos test: trials that take some time.
#include <fcntl.h>
#include <unistd.h>

#include <thread>

#include "chaos.h"
#include "lathe/core/error.h"
#include "lathe/study/json_text.h"
#include "lathe/study/work.h"

namespace lathe::study {
namespace {

void append(const std::string& log, const std::string& line) {
  const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  if (file < 0 || write(file, line.data(), line.size()) < 0) fail("{}: cannot be written", log);
  close(file);
}

}  // namespace

int run_worker(const std::string& url, const Chaos& chaos, const std::string& log) {
  try {
    Study study = Study::open(open_storage(url), kStudyName, {.lease = chaos.lease});
    Owner owner;
    const auto evaluate = [&](Trial& trial, const ShouldStop&) -> Outcome {
      const double x = trial.suggest_float("x", 0, 1);
      trial.report(0, x);
      [[maybe_unused]] const bool is_ours = trial.flush();  // who lost it is refused in the end
      std::this_thread::sleep_for(std::chrono::duration<double>(chaos.seconds));
      owner = trial.owner();
      trial.set_user_attribute("result_of", to_json_text(owner));
      return {.values = {2 * x}};
    };
    const auto ended = [&](const WorkedTrial& worked) {
      if (worked.ending == Ending::HandedBack) return;
      append(log, fmt::format("{} {} {} {}\n", worked.trial.number, owner,
                              2 * worked.trial.parameters.front().value,
                              worked.ending == Ending::Told ? 1 : 0));
    };
    work(study, evaluate, {.trials = chaos.trials}, ended);
  } catch (const UserError& error) {
    append(log + ".errors", std::string(error.what()) + "\n");
    return 1;
  }
  return 0;
}

}  // namespace lathe::study
