#include "lathe/cli/trial_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

#include "lathe/core/error.h"

extern char** environ;

namespace lathe::cli {
namespace {

constexpr std::size_t kLongestLine = 1 << 20;  // of a program that writes no new lines

struct Pipe {
  Pipe() {
    if (pipe2(ends, O_CLOEXEC) != 0) fail("cannot make a pipe: {}", std::strerror(errno));
  }
  ~Pipe() {
    for (const int end : ends)
      if (end >= 0) ::close(end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int take_reader() { return std::exchange(ends[0], -1); }
  void close_writer() { ::close(std::exchange(ends[1], -1)); }
  int ends[2] = {-1, -1};
};

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Only what is safe between fork and exec in a process with other threads.
[[noreturn]] void become(char** words, char** variables, int output, int errors, int failure,
                         pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // gone before we asked to be told
  std::signal(SIGXFSZ, SIG_DFL);
  const int input = open("/dev/null", O_RDONLY);
  if (input >= 0 && dup2(input, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0 &&
      dup2(errors, STDERR_FILENO) >= 0)
    execvpe(words[0], words, variables);
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(failure, &error, sizeof error);
  _exit(127);
}

}  // namespace

TrialProcess::TrialProcess(const std::vector<std::string>& command,
                           const std::vector<std::pair<std::string, std::string>>& environment) {
  check(!command.empty(), "a command to run");
  std::vector<std::string> words = command, variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const bool is_ours = std::any_of(environment.begin(), environment.end(), [&](const auto& each) {
      return text.starts_with(each.first + "=");
    });
    if (!is_ours) variables.emplace_back(text);
  }
  for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
  const std::vector<char*> word_pointers = pointers_to(words);
  const std::vector<char*> variable_pointers = pointers_to(variables);

  Pipe output, errors, failure;
  const pid_t parent = getpid();
  process_ = fork();
  if (process_ < 0) fail("cannot start {}: {}", command[0], std::strerror(errno));
  if (process_ == 0)
    become(const_cast<char**>(word_pointers.data()), const_cast<char**>(variable_pointers.data()),
           output.ends[1], errors.ends[1], failure.ends[1], parent);
  setpgid(process_, process_);  // here as well: whoever is first
  output.close_writer();
  errors.close_writer();
  failure.close_writer();
  int error = 0;
  ssize_t count = 0;
  while ((count = ::read(failure.ends[0], &error, sizeof error)) < 0 && errno == EINTR) {
  }
  if (count == sizeof error) {
    reap(true);
    fail("cannot run {}: {}", command[0], std::strerror(error));
  }
  output_.descriptor = output.take_reader();
  errors_.descriptor = errors.take_reader();
  for (const Stream* stream : {&output_, &errors_}) fcntl(stream->descriptor, F_SETFL, O_NONBLOCK);
}

TrialProcess::~TrialProcess() {
  if (!has_ended_) {
    kill(-process_, SIGKILL);
    reap(true);
  }
  for (const Stream* stream : {&output_, &errors_})
    if (stream->descriptor >= 0) ::close(stream->descriptor);
}

bool TrialProcess::reap(bool wait) {
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

void TrialProcess::read(Stream& stream, std::vector<std::string>* lines) {
  char buffer[65536];
  while (stream.descriptor >= 0) {
    const ssize_t count = ::read(stream.descriptor, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) {
      close(stream, lines);
      return;
    }
    for (const char c : std::string_view(buffer, static_cast<std::size_t>(count))) {
      if (c != '\n') {
        if (stream.partial.size() < kLongestLine) stream.partial += c;
        continue;
      }
      if (stream.partial.find_first_not_of(" \t\r") != std::string::npos) {
        stream.last = stream.partial;
        if (lines != nullptr) lines->push_back(stream.partial);
      }
      stream.partial.clear();
    }
  }
}

// The last line may lack its new line.
void TrialProcess::close(Stream& stream, std::vector<std::string>* lines) {
  if (stream.partial.find_first_not_of(" \t\r") != std::string::npos) {
    stream.last = stream.partial;
    if (lines != nullptr) lines->push_back(stream.partial);
  }
  stream.partial.clear();
  ::close(std::exchange(stream.descriptor, -1));
}

std::vector<std::string> TrialProcess::read_lines(std::chrono::milliseconds timeout) {
  std::vector<std::string> lines;
  if (is_finished_) return lines;
  pollfd waiting[2] = {{output_.descriptor, POLLIN, 0}, {errors_.descriptor, POLLIN, 0}};
  const bool is_silent = output_.descriptor < 0 && errors_.descriptor < 0;
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  if (!is_silent) poll(waiting, 2, static_cast<int>(timeout.count()));
  // It closed its streams and will end at once, as a rule.
  while (is_silent && !reap(false) && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const bool had_ended = reap(false);
  read(output_, &lines);
  read(errors_, nullptr);
  if (!had_ended) return lines;
  // What it started may hold its streams open; nobody waits for that.
  for (Stream* stream : {&output_, &errors_})
    if (stream->descriptor >= 0) close(*stream, stream == &output_ ? &lines : nullptr);
  is_finished_ = true;
  return lines;
}

void TrialProcess::terminate() {
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

}  // namespace lathe::cli
