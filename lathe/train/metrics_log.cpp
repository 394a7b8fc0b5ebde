#include "lathe/train/metrics_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "lathe/core/error.h"
#include "lathe/core/json_reader.h"
#include "lathe/io/atomic_file.h"
#include "lathe/io/mapped_file.h"

namespace lathe::train {
namespace {

// The step of a line; none when it is no object with one: it is not ours or was torn.
std::optional<std::int64_t> step_of(std::string_view line) try {
  const nlohmann::json parsed = parse_json(line);
  if (!parsed.is_object()) return std::nullopt;
  const auto step = parsed.find("step");
  if (step == parsed.end() || !step->is_number_integer()) return std::nullopt;
  return step->get<std::int64_t>();
} catch (const UserError&) {
  return std::nullopt;
}

// The lines worth keeping.
std::string lines_up_to(std::string_view text, std::int64_t last_step) {
  std::string kept;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) break;
    const std::string_view line = text.substr(0, end + 1);
    text.remove_prefix(end + 1);
    if (const auto step = step_of(line); step && *step <= last_step) kept += line;
  }
  return kept;
}

}  // namespace

MetricsLog::MetricsLog(std::filesystem::path path, std::int64_t last_step)
    : path_(std::move(path)) {
  std::error_code error;
  std::string kept;
  if (std::filesystem::exists(path_, error))
    kept = lines_up_to(io::MappedFile::open(path_)->text(), last_step);
  io::write_atomically(path_, kept);
  file_ = io::FileDescriptor(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!file_.is_open()) io::fail_with_errno(path_, "open", errno);
}

void MetricsLog::write(const nlohmann::ordered_json& line) {
  const std::string text =
      line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t count = ::write(file_.number(), rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) io::fail_with_errno(path_, "write", errno);
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
}

}  // namespace lathe::train
