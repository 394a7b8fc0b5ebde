#include "lathe/train/event_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>

#include "lathe/core/error.h"

namespace lathe::train {
namespace {

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? 0x82F63B78u : 0u);
    table[byte] = value;
  }
  return table;
}
constexpr std::array<std::uint32_t, 256> kCrcTable = make_crc_table();

// Little-endian whatever the machine.
template <typename Bits>
void put_fixed(std::string& out, Bits bits) {
  for (std::size_t i = 0; i < sizeof(Bits); ++i) out.push_back(static_cast<char>(bits >> 8 * i));
}

// Protobuf, of which an event needs three kinds of field.
void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}
void put_tag(std::string& out, std::uint32_t field, std::uint32_t wire_type) {
  put_varint(out, field << 3 | wire_type);
}
void put_integer(std::string& out, std::uint32_t field, std::int64_t value) {
  put_tag(out, field, 0);
  put_varint(out, static_cast<std::uint64_t>(value));
}
void put_double(std::string& out, std::uint32_t field, double value) {
  put_tag(out, field, 1);
  put_fixed(out, std::bit_cast<std::uint64_t>(value));
}
void put_float(std::string& out, std::uint32_t field, float value) {
  put_tag(out, field, 5);
  put_fixed(out, std::bit_cast<std::uint32_t>(value));
}
void put_bytes(std::string& out, std::uint32_t field, std::string_view bytes) {
  put_tag(out, field, 2);
  put_varint(out, bytes.size());
  out.append(bytes);
}

// Fields of tensorflow.Event, Summary, Summary.Value and SessionLog.
constexpr std::uint32_t kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;
constexpr std::uint32_t kValue = 1, kTag = 1, kSimpleValue = 2, kStatus = 1;
constexpr std::int64_t kStatusStart = 1;

std::string make_event(std::int64_t step) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  std::string event;
  put_double(event, kWallTime, std::chrono::duration<double>(now).count());
  put_integer(event, kStep, step);
  return event;
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == 0) return "localhost";
  return name.data();
}

}  // namespace

std::uint32_t masked_crc32c(std::string_view bytes) {
  std::uint32_t crc = 0xFFFFFFFFu;
  for (const char byte : bytes)
    crc = crc >> 8 ^ kCrcTable[(crc ^ static_cast<std::uint8_t>(byte)) & 0xFF];
  return std::rotr(~crc, 15) + 0xA282EAD8u;
}

EventFile::EventFile(const std::filesystem::path& directory, std::int64_t resumed_step) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(
                           std::chrono::system_clock::now().time_since_epoch())
                           .count();
  // Two runs may start in one second, in one process even.
  for (int attempt = 0; !file_.is_open(); ++attempt) {
    path_ = directory / fmt::format("events.out.tfevents.{:010}.{}.{}.{}", seconds, host_name(),
                                    ::getpid(), attempt);
    file_ = io::FileDescriptor(
        ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666));
    if (!file_.is_open() && (errno != EEXIST || attempt == 1000))
      io::fail_with_errno(path_, "create", errno);
  }
  std::string version = make_event(0);
  put_bytes(version, kFileVersion, "brain.Event:2");
  append(version);
  if (resumed_step == 0) return;
  std::string restart = make_event(resumed_step + 1), status;
  put_integer(status, kStatus, kStatusStart);
  put_bytes(restart, kSessionLog, status);
  append(restart);
}

void EventFile::write(std::int64_t step, const std::map<std::string, double>& scalars) {
  std::string summary;
  for (const auto& [tag, value] : scalars) {
    std::string entry;
    put_bytes(entry, kTag, tag);
    put_float(entry, kSimpleValue, static_cast<float>(value));
    put_bytes(summary, kValue, entry);
  }
  std::string event = make_event(step);
  put_bytes(event, kSummary, summary);
  append(event);
}

// One write for the whole record, so that a killed run leaves at most one torn record at the end.
void EventFile::append(const std::string& event) {
  std::string record;
  put_fixed(record, static_cast<std::uint64_t>(event.size()));
  put_fixed(record, masked_crc32c(record));
  record += event;
  put_fixed(record, masked_crc32c(event));
  for (std::string_view rest = record; !rest.empty();) {
    const ssize_t count = ::write(file_.number(), rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) io::fail_with_errno(path_, "write", errno);
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
}

}  // namespace lathe::train
