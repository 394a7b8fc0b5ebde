// A worker of the chaos test: trials that take some time, a thread that renews the lease.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "chaos.h"
#include "lathe/core/error.h"
#include "lathe/study/json_text.h"
#include "lathe/study/study.h"

namespace lathe::study {
namespace {

// Renews the lease of the present trial from a thread of its own, with its own connection.
class Heartbeats {
 public:
  Heartbeats(const std::string& url, std::chrono::milliseconds lease)
      : thread_([this, url, lease] { run(url, lease / 4); }) {}
  ~Heartbeats() {
    {
      const std::scoped_lock lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  void set(TrialId trial, const Owner& owner) {
    const std::scoped_lock lock(mutex_);
    trial_ = trial;
    owner_ = owner;
  }
  void clear() { set(-1, {}); }

 private:
  void run(const std::string& url, std::chrono::milliseconds interval) {
    std::unique_ptr<Storage> storage;
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, interval, [&] { return is_over_; })) {
      if (trial_ < 0) continue;
      const TrialId trial = trial_;
      const Owner owner = owner_;
      lock.unlock();
      try {
        if (!storage) storage = open_storage(url);
        storage->heartbeat(trial, owner);
      } catch (const UserError&) {
        // The server is away; the trial's own thread will hear of it.
        storage.reset();
      }
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  TrialId trial_ = -1;
  Owner owner_;
  std::thread thread_;  // last, since it uses the others
};

void append(const std::string& log, const std::string& line) {
  const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  if (file < 0 || write(file, line.data(), line.size()) < 0) fail("{}: cannot be written", log);
  close(file);
}

}  // namespace

int run_worker(const std::string& url, const Chaos& chaos, const std::string& log) {
  try {
    Heartbeats heartbeats(url, chaos.lease);
    Study study = Study::open(open_storage(url), kStudyName,
                              {.lease = chaos.lease, .max_trials = chaos.trials});
    while (static_cast<int>(study.history().finished().size()) < chaos.trials) {
      std::optional<Trial> trial = study.ask();
      if (!trial) {
        // What is left is in the hands of others, who may yet die.
        std::this_thread::sleep_for(chaos.lease / 8);
        continue;
      }
      heartbeats.set(trial->record().id, trial->owner());
      const double x = trial->suggest_float("x", 0, 1);
      trial->report(0, x);
      bool is_ours = trial->flush();
      std::this_thread::sleep_for(std::chrono::duration<double>(chaos.seconds));
      trial->set_user_attribute("result_of", to_json_text(trial->owner()));
      is_ours = study.tell(*trial, {.values = {2 * x}});
      heartbeats.clear();
      append(log,
             fmt::format("{} {} {} {}\n", trial->number(), trial->owner(), 2 * x, is_ours ? 1 : 0));
    }
  } catch (const UserError& error) {
    append(log + ".errors", std::string(error.what()) + "\n");
    return 1;
  }
  return 0;
}

}  // namespace lathe::study
