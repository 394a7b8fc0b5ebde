#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>

#include "lathe/core/error.h"

namespace lathe::study {

/// Stands between libpq and a server's socket and breaks the connection around a commit.
class CuttingProxy {
 public:
  enum class Cut {
    None,
    Request,  ///< the commit never gets to the server
    Answer,   ///< it does, but its answer never gets back
  };

  /// `folder` holds the server's socket; the proxy's is made in a folder below it.
  explicit CuttingProxy(const std::filesystem::path& folder)
      : server_(folder / ".s.PGSQL.5432"), folder_(folder / "proxy") {
    std::filesystem::create_directories(folder_);
    std::filesystem::remove(folder_ / ".s.PGSQL.5432");
    listener_ = socket(AF_UNIX, SOCK_STREAM, 0);
    const sockaddr_un address = address_of(folder_ / ".s.PGSQL.5432");
    if (bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        listen(listener_, 8) != 0)
      fail("{}: no socket", folder_.string());
    thread_ = std::thread([this] { serve(); });
  }
  ~CuttingProxy() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  CuttingProxy(const CuttingProxy&) = delete;
  CuttingProxy& operator=(const CuttingProxy&) = delete;

  const std::filesystem::path& folder() const { return folder_; }
  /// Cuts at the next commit, once.
  void arm(Cut cut) { next_ = cut; }
  bool is_armed() const { return next_ != Cut::None; }

 private:
  static sockaddr_un address_of(const std::filesystem::path& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.string().copy(address.sun_path, sizeof address.sun_path - 1);
    return address;
  }

  // One connection after the other: a storage has one at a time.
  void serve() {
    for (;;) {
      const int client = accept(listener_, nullptr, nullptr);
      if (client < 0) return;
      const int server = socket(AF_UNIX, SOCK_STREAM, 0);
      const sockaddr_un address = address_of(server_);
      if (connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
        pump(client, server);
      close(server);
      close(client);
    }
  }

  void pump(int client, int server) {
    std::array<char, 65536> buffer{};
    bool is_answer_cut = false;
    for (;;) {
      std::array<pollfd, 3> ends = {{{client, POLLIN, 0}, {server, POLLIN, 0}, {listener_, 0, 0}}};
      if (poll(ends.data(), ends.size(), -1) < 0) return;
      if ((ends[2].revents & POLLHUP) != 0) return;
      if (ends[0].revents != 0) {
        const ssize_t size = read(client, buffer.data(), buffer.size());
        if (size <= 0) return;
        // The name of the prepared statement, which a batch that commits has in it.
        const std::string_view chunk(buffer.data(), static_cast<std::size_t>(size));
        const bool is_commit = chunk.find("commit") != std::string_view::npos;
        const Cut cut = is_commit ? next_.exchange(Cut::None) : Cut::None;
        if (cut == Cut::Request) return;
        is_answer_cut = cut == Cut::Answer;
        if (write(server, buffer.data(), static_cast<std::size_t>(size)) != size) return;
      }
      if (ends[1].revents != 0) {
        const ssize_t size = read(server, buffer.data(), buffer.size());
        if (size <= 0) return;
        // The batch is answered all at once, when it is done.
        if (is_answer_cut) return;
        if (write(client, buffer.data(), static_cast<std::size_t>(size)) != size) return;
      }
    }
  }

  std::filesystem::path server_;
  std::filesystem::path folder_;
  int listener_ = -1;
  std::atomic<Cut> next_ = Cut::None;
  std::thread thread_;
};

}  // namespace lathe::study
