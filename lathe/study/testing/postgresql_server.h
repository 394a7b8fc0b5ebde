#pragma once

#include <fcntl.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "lathe/core/error.h"

namespace lathe::study {

/// A real PostgreSQL server of our own, reached through a socket in a temporary folder, with fsync
/// on; for tests and benches. It ends with the process that started it.
class PostgresqlServer {
 public:
  /// Nothing where PostgreSQL is not installed.
  static std::unique_ptr<PostgresqlServer> start() {
    const std::string programs = find_programs();
    if (programs.empty()) return nullptr;
    if (geteuid() == 0 && getpwnam("postgres") == nullptr) return nullptr;
    return std::unique_ptr<PostgresqlServer>(new PostgresqlServer(programs));
  }
  /// The one that all tests of a program share.
  static PostgresqlServer* shared() {
    static const std::unique_ptr<PostgresqlServer> server = start();
    return server.get();
  }
  PostgresqlServer(const PostgresqlServer&) = delete;
  PostgresqlServer& operator=(const PostgresqlServer&) = delete;
  ~PostgresqlServer() {
    kill(process_, SIGQUIT);  // without writing everything to a disk that is cleared next
    waitpid(process_, nullptr, 0);
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  /// The URL of a database; SQLAlchemy and libpq read it alike.
  std::string url(const std::string& database) const {
    return fmt::format("postgresql://lathe@/{}?host={}", database, folder_.string());
  }
  /// Makes an empty database and gives its URL.
  std::string new_database() {
    const std::string name = fmt::format("base{}", ++num_places_);
    execute("CREATE DATABASE " + name);
    return url(name);
  }
  /// The same in a tenth of the time: a place for tables inside one database.
  std::string new_schema() {
    const std::string name = fmt::format("place{}", ++num_places_);
    execute("CREATE SCHEMA " + name);
    return fmt::format("{}&options=-csearch_path%3D{}", url("postgres"), name);
  }
  const std::filesystem::path& folder() const { return folder_; }

  /// Ends the server as a power failure would end it, as far as its processes can tell.
  void crash() {
    // The backends first, in their midst; they are children of the server.
    for (const pid_t child : children()) kill(child, SIGKILL);
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  /// Starts it again and waits until it answers.
  void restart() {
    using namespace std::chrono_literals;
    for (int i = 0; i < 600; ++i) {
      // Its predecessor's backends may need a moment to go; until then it refuses.
      process_ = launch({programs_ + "/postgres", "-D", (folder_ / "data").string(), "-k",
                         folder_.string(), "-c", "listen_addresses=", "-c", "fsync=on", "-c",
                         "max_connections=60", "-c", "unix_socket_permissions=0777"});
      for (;;) {
        if (PQping(url("postgres").c_str()) == PQPING_OK) return;
        if (waitpid(process_, nullptr, WNOHANG) != 0) break;
        std::this_thread::sleep_for(10ms);
      }
      std::this_thread::sleep_for(100ms);
    }
    fail("the test server does not start; see {}", (folder_ / "log").string());
  }

 private:
  explicit PostgresqlServer(std::string programs) : programs_(std::move(programs)) {
    std::string pattern = (std::filesystem::temp_directory_path() / "lathe_pg_XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) fail("{}: cannot be created", pattern);
    folder_ = pattern;
    if (geteuid() == 0) {
      const passwd* user = getpwnam("postgres");
      if (chown(pattern.c_str(), user->pw_uid, user->pw_gid) != 0)
        fail("{}: cannot be given to postgres", pattern);
    }
    std::filesystem::permissions(folder_, std::filesystem::perms(0755));
    const pid_t initdb = launch({programs_ + "/initdb", "-D", (folder_ / "data").string(), "-U",
                                 "lathe", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"});
    int status = 0;
    waitpid(initdb, &status, 0);
    if (status != 0) fail("initdb failed; see {}", (folder_ / "log").string());
    restart();
  }

  void execute(const std::string& statement) const {
    const std::unique_ptr<PGconn, void (*)(PGconn*)> connection(
        PQconnectdb(url("postgres").c_str()), PQfinish);
    const std::unique_ptr<PGresult, void (*)(PGresult*)> result(
        PQexec(connection.get(), statement.c_str()), PQclear);
    if (PQresultStatus(result.get()) != PGRES_COMMAND_OK)
      fail("{}", PQerrorMessage(connection.get()));
  }

  static std::string find_programs() {
    std::error_code ignored;
    std::vector<std::string> found;
    for (const auto& each : std::filesystem::directory_iterator("/usr/lib/postgresql", ignored))
      if (std::filesystem::exists(each.path() / "bin/initdb"))
        found.push_back((each.path() / "bin").string());
    std::ranges::sort(found);
    return found.empty() ? "" : found.back();
  }

  // Runs a program as the user postgres (it refuses to be root), its output in a file.
  pid_t launch(std::vector<std::string> arguments) const {
    const std::string log = (folder_ / "log").string();
    std::vector<char*> pointers;
    for (std::string& each : arguments) pointers.push_back(each.data());
    pointers.push_back(nullptr);
    const passwd* user = geteuid() == 0 ? getpwnam("postgres") : nullptr;
    const pid_t child = fork();
    if (child < 0) fail("cannot start a process");
    if (child > 0) return child;
    if (user != nullptr && (setgid(user->pw_gid) != 0 || setuid(user->pw_uid) != 0)) _exit(126);
    prctl(PR_SET_PDEATHSIG, SIGQUIT);
    const int output = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    dup2(output, 1);
    dup2(output, 2);
    if (chdir(folder_.c_str()) != 0) _exit(126);
    execv(pointers.front(), pointers.data());
    _exit(127);
  }

  std::vector<pid_t> children() const {
    std::vector<pid_t> result;
    const std::string file = fmt::format("/proc/{0}/task/{0}/children", process_);
    if (FILE* list = fopen(file.c_str(), "r")) {
      int child = 0;
      while (fscanf(list, "%d", &child) == 1) result.push_back(child);
      fclose(list);
    }
    return result;
  }

  std::string programs_;
  std::filesystem::path folder_;
  pid_t process_ = -1;
  int num_places_ = 0;
};

}  // namespace lathe::study
