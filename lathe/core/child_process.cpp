#include "lathe/core/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

#include "lathe/core/error.h"

extern char** environ;

namespace lathe {
namespace {

using Clock = std::chrono::steady_clock;

// A file descriptor that closes itself, and that no program we start keeps open.
class Descriptor {
 public:
  // Above the standard streams, or setting up the child's would overwrite it.
  Descriptor(int descriptor, std::string_view what) : value_(descriptor) {
    if (value_ >= 0 && value_ <= STDERR_FILENO) {
      value_ = fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
      ::close(descriptor);
    }
    if (value_ < 0) fail("cannot make a {}: {}", what, std::strerror(errno));
  }
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return value_; }
  int take() { return std::exchange(value_, -1); }
  void close() {
    if (value_ >= 0) ::close(take());
  }

 private:
  int value_;
};

struct Pipe {
  explicit Pipe(std::array<int, 2> ends = make())
      : reader(ends[0], "pipe"), writer(ends[1], "pipe") {}
  static std::array<int, 2> make() {
    std::array<int, 2> ends = {-1, -1};
    [[maybe_unused]] const int status = pipe2(ends.data(), O_CLOEXEC);  // Descriptor looks at them
    return ends;
  }
  Descriptor reader, writer;
};

// A file in memory rather than a pipe: an input of any length cannot block, and a program that does
// not read it raises no SIGPIPE here.
void write_input(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("cannot write a file in memory: {}", std::strerror(errno));
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  lseek(file, 0, SEEK_SET);
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> merged_environment(
    const std::vector<std::pair<std::string, std::string>>& added) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const bool is_replaced = std::ranges::any_of(
        added, [&](const auto& each) { return text.starts_with(each.first + "="); });
    if (!is_replaced) variables.emplace_back(text);
  }
  for (const auto& [name, value] : added) variables.push_back(name + "=" + value);
  return variables;
}

struct ChildEnds {
  int input, output, errors, failure;
};

// Only what is safe between fork and exec in a process with other threads.
[[noreturn]] void become(char** words, char** variables, const ChildEnds& ends, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // gone before we asked to be told
  std::signal(SIGXFSZ, SIG_DFL);
  if (dup2(ends.input, STDIN_FILENO) >= 0 && dup2(ends.output, STDOUT_FILENO) >= 0 &&
      dup2(ends.errors, STDERR_FILENO) >= 0)
    execvpe(words[0], words, variables);
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(ends.failure, &error, sizeof error);
  _exit(127);
}

// Reads all that is there; closes the descriptor at its end.
void read_available(int& descriptor, std::string& text) {
  char buffer[65536];
  while (descriptor >= 0) {
    const ssize_t count = ::read(descriptor, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) {
      ::close(std::exchange(descriptor, -1));
      return;
    }
    text.append(buffer, static_cast<std::size_t>(count));
  }
}

}  // namespace

std::unique_ptr<ChildProcess> ChildProcess::start(
    const std::vector<std::string>& words, std::string_view input,
    const std::vector<std::pair<std::string, std::string>>& environment) {
  check(!words.empty(), "a program to run");
  std::vector<std::string> own_words = words;
  std::vector<std::string> variables = merged_environment(environment);
  std::vector<char*> word_pointers = pointers_to(own_words);
  std::vector<char*> variable_pointers = pointers_to(variables);

  Descriptor file(memfd_create("lathe", MFD_CLOEXEC), "file in memory");
  write_input(file.get(), input);
  Pipe output, errors, failure;
  const ChildEnds ends = {file.get(), output.writer.get(), errors.writer.get(),
                          failure.writer.get()};
  const pid_t parent = getpid();
  std::unique_ptr<ChildProcess> child(new ChildProcess);
  child->process_ = fork();
  if (child->process_ == 0) become(word_pointers.data(), variable_pointers.data(), ends, parent);
  if (child->process_ < 0) {
    child->has_ended_ = true;
    fail("cannot start {}: {}", words[0], std::strerror(errno));
  }
  setpgid(child->process_, child->process_);  // here as well: whoever is first
  output.writer.close();
  errors.writer.close();
  failure.writer.close();
  int error = 0;
  ssize_t count = 0;
  while ((count = ::read(failure.reader.get(), &error, sizeof error)) < 0 && errno == EINTR) {
  }
  if (count == sizeof error) {
    child->reap(true);
    if (error == ENOENT) return nullptr;
    fail("cannot run {}: {}", words[0], std::strerror(error));
  }
  child->output_ = output.reader.take();
  child->errors_ = errors.reader.take();
  for (const int descriptor : {child->output_, child->errors_})
    fcntl(descriptor, F_SETFL, O_NONBLOCK);
  return child;
}

ChildProcess::~ChildProcess() {
  if (!has_ended_) {
    kill(-process_, SIGKILL);
    reap(true);
  }
  for (const int descriptor : {output_, errors_})
    if (descriptor >= 0) ::close(descriptor);
}

bool ChildProcess::reap(bool wait) {
  if (has_ended_) return true;
  int status = 0;
  pid_t ended = 0;
  while ((ended = waitpid(process_, &status, wait ? 0 : WNOHANG)) < 0 && errno == EINTR) {
  }
  if (ended == 0) return false;
  has_ended_ = true;
  exit_status_ = ended < 0 ? 127 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return true;
}

ChildProcess::Written ChildProcess::read(std::chrono::milliseconds timeout) {
  Written written;
  if (is_finished_) return written;
  const bool is_silent = output_ < 0 && errors_ < 0;
  const Clock::time_point deadline = Clock::now() + timeout;
  pollfd waiting[2] = {{output_, POLLIN, 0}, {errors_, POLLIN, 0}};
  if (!is_silent) poll(waiting, 2, static_cast<int>(timeout.count()));
  // It closed its streams and will end at once, as a rule.
  while (is_silent && !reap(false) && Clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const bool had_ended = reap(false);
  read_available(output_, written.output);
  read_available(errors_, written.errors);
  if (!had_ended) return written;
  // What it started may hold its streams open; nobody waits for that.
  for (int* descriptor : {&output_, &errors_})
    if (*descriptor >= 0) ::close(std::exchange(*descriptor, -1));
  is_finished_ = true;
  return written;
}

void ChildProcess::terminate() {
  if (has_ended_) return;
  kill(-process_, SIGTERM);
  // It is not waited for before the whole group is gone: until then its number is not given to
  // another process.
  siginfo_t ended = {};
  for (int i = 0; i < 200 && ended.si_pid == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (waitid(P_PID, static_cast<id_t>(process_), &ended, WEXITED | WNOHANG | WNOWAIT) != 0) break;
  }
  kill(-process_, SIGKILL);
  reap(true);
}

std::optional<ProcessResult> run_program(const std::vector<std::string>& words,
                                         std::string_view input, const ShouldStop& should_stop) {
  const std::unique_ptr<ChildProcess> child = ChildProcess::start(words, input);
  if (!child) return std::nullopt;
  ProcessResult result;
  while (!child->is_finished()) {
    if (should_stop && should_stop()) throw Interrupted();
    const ChildProcess::Written written = child->read(std::chrono::milliseconds(100));
    result.output += written.output;
    result.errors += written.errors;
  }
  result.exit_status = child->exit_status();
  return result;
}

}  // namespace lathe
