#include "lathe/cli/settings.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

namespace lathe::cli {
namespace {

// Written by the handler, read by everyone: the one piece of global state signals force on us.
std::atomic<int> received_signal{0};

void handle_signal(int number) {
  // 128 + number is what a shell reports; only async-signal-safe calls are allowed here.
  if (received_signal.exchange(number) != 0) ::_exit(128 + number);
}

}  // namespace

double Settings::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

engine::ExecutionOptions Settings::execution(ThreadPool& pool) const {
  return {.device = device,
          .pool = &pool,
          .isa = isa,
          .precision = precision,
          .plain_convolutions = plain_convolutions};
}

bool is_interrupted() {
  return received_signal.load() != 0;
}
int interrupting_signal() {
  return received_signal.load();
}

void install_signal_handlers() {
  struct sigaction action = {};
  action.sa_handler = handle_signal;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  // A file-size limit should be an error line, not a silent death.
  std::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace lathe::cli
