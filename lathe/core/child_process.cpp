#include "lathe/core/child_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "lathe/core/error.h"

extern char** environ;

namespace lathe {
namespace {

// The three streams are files in memory rather than pipes: both sides can be of any length without
// a deadlock, and a program that does not read its input raises no SIGPIPE here.
class MemoryFile {
 public:
  MemoryFile() {
    const int first = memfd_create("lathe", MFD_CLOEXEC);
    if (first < 0) fail("cannot make a file in memory: {}", std::strerror(errno));
    // Above the standard streams, or setting up the child's would overwrite it.
    descriptor_ = fcntl(first, F_DUPFD_CLOEXEC, 3);
    close(first);
    if (descriptor_ < 0) fail("cannot make a file in memory: {}", std::strerror(errno));
  }
  ~MemoryFile() { close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int descriptor() const { return descriptor_; }

  void write(std::string_view text) {
    while (!text.empty()) {
      const ssize_t written = ::write(descriptor_, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail("cannot write a file in memory: {}", std::strerror(errno));
      text.remove_prefix(static_cast<std::size_t>(written));
    }
    lseek(descriptor_, 0, SEEK_SET);
  }

  std::string read() {
    lseek(descriptor_, 0, SEEK_SET);
    std::string text;
    char buffer[65536];
    while (true) {
      const ssize_t count = ::read(descriptor_, buffer, sizeof buffer);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail("cannot read a file in memory: {}", std::strerror(errno));
      if (count == 0) return text;
      text.append(buffer, static_cast<std::size_t>(count));
    }
  }

 private:
  int descriptor_ = -1;
};

struct SpawnActions {
  SpawnActions() { posix_spawn_file_actions_init(&actions); }
  ~SpawnActions() { posix_spawn_file_actions_destroy(&actions); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  posix_spawn_file_actions_t actions;
};

}  // namespace

std::optional<ProcessResult> run_program(const std::vector<std::string>& arguments,
                                         std::string_view input) {
  check(!arguments.empty(), "a program to run");
  MemoryFile in, out, errors;
  in.write(input);
  SpawnActions spawn;
  posix_spawn_file_actions_adddup2(&spawn.actions, in.descriptor(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&spawn.actions, out.descriptor(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&spawn.actions, errors.descriptor(), STDERR_FILENO);

  std::vector<char*> pointers;
  for (const std::string& argument : arguments)
    pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  pid_t child = 0;
  const int error =
      posix_spawnp(&child, pointers[0], &spawn.actions, nullptr, pointers.data(), environ);
  if (error == ENOENT) return std::nullopt;
  if (error != 0) fail("cannot run {}: {}", arguments[0], std::strerror(error));

  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) fail("cannot wait for {}: {}", arguments[0], std::strerror(errno));
  return ProcessResult{
      .exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
      .output = out.read(),
      .errors = errors.read(),
  };
}

}  // namespace lathe
