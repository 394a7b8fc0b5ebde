#include "lathe/io/stored_archive.h"

#include <cstring>
#include <limits>
#include <optional>

#include "lathe/core/error.h"
#include "lathe/core/quote_text.h"

namespace lathe::io {
namespace {

constexpr std::uint32_t kLocalHeader = 0x04034b50;
constexpr std::uint32_t kCentralHeader = 0x02014b50;
constexpr std::uint32_t kEnd = 0x06054b50;
constexpr std::uint32_t kLargeEnd = 0x06064b50;
constexpr std::uint32_t kLargeEndLocator = 0x07064b50;
constexpr std::size_t kEndBytes = 22, kLocatorBytes = 20, kLargeEndBytes = 56;
constexpr std::size_t kCentralBytes = 46, kLocalBytes = 30;
constexpr std::uint32_t kElsewhere = std::numeric_limits<std::uint32_t>::max();

template <typename T>
T number_at(std::span<const std::byte> bytes, std::uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T))
    fail("ends inside a record at byte {}", offset);
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

std::string_view text_at(std::span<const std::byte> bytes, std::uint64_t offset, std::size_t size) {
  if (offset > bytes.size() || bytes.size() - offset < size)
    fail("ends inside a name at byte {}", offset);
  return {reinterpret_cast<const char*>(bytes.data()) + offset, size};
}

// Where the list of entries lies, and how many it has.
struct Directory {
  std::uint64_t offset = 0, size = 0, count = 0;
};

// The record at the very end, behind which there is nothing but a comment as long as it says.
std::uint64_t find_end(std::span<const std::byte> bytes) {
  constexpr std::size_t kMostComment = 65535;
  if (bytes.size() >= kEndBytes)
    for (std::size_t comment = 0; comment <= std::min(kMostComment, bytes.size() - kEndBytes);
         ++comment) {
      const std::size_t at = bytes.size() - kEndBytes - comment;
      if (number_at<std::uint32_t>(bytes, at) == kEnd &&
          number_at<std::uint16_t>(bytes, at + 20) == comment)
        return at;
    }
  fail("has no end of a zip archive: is it whole?");
}

Directory find_directory(std::span<const std::byte> bytes) {
  const std::uint64_t end = find_end(bytes);
  Directory found{.offset = number_at<std::uint32_t>(bytes, end + 16),
                  .size = number_at<std::uint32_t>(bytes, end + 12),
                  .count = number_at<std::uint16_t>(bytes, end + 10)};
  if (end >= kLocatorBytes &&
      number_at<std::uint32_t>(bytes, end - kLocatorBytes) == kLargeEndLocator) {
    const auto large = number_at<std::uint64_t>(bytes, end - kLocatorBytes + 8);
    if (large > bytes.size() || bytes.size() - large < kLargeEndBytes ||
        number_at<std::uint32_t>(bytes, large) != kLargeEnd)
      fail("its record of large sizes is not where it should be, at byte {}", large);
    found = {.offset = number_at<std::uint64_t>(bytes, large + 48),
             .size = number_at<std::uint64_t>(bytes, large + 40),
             .count = number_at<std::uint64_t>(bytes, large + 32)};
  }
  if (found.offset > bytes.size() || found.size > bytes.size() - found.offset)
    fail("its list of {} bytes at byte {} lies outside its {} bytes", found.size, found.offset,
         bytes.size());
  if (found.count > found.size / kCentralBytes)
    fail("states {} entries, but their list has {} bytes", found.count, found.size);
  return found;
}

// A size that did not fit its field stands in an extra one, in a fixed order.
class LargeNumbers {
 public:
  LargeNumbers(std::span<const std::byte> bytes, std::uint64_t begin, std::size_t size) {
    for (std::uint64_t at = begin; at + 4 <= begin + size;) {
      const auto kind = number_at<std::uint16_t>(bytes, at);
      const std::size_t length = number_at<std::uint16_t>(bytes, at + 2);
      if (length > begin + size - at - 4) fail("an extra field at byte {} is too long", at);
      if (kind == 1) numbers_ = bytes.subspan(at + 4, length);
      at += 4 + length;
    }
  }
  std::uint64_t resolve(std::uint32_t field) {
    if (field != kElsewhere) return field;
    const auto value = number_at<std::uint64_t>(numbers_, next_);
    next_ += sizeof(value);
    return value;
  }

 private:
  std::span<const std::byte> numbers_;
  std::size_t next_ = 0;
};

}  // namespace

StoredArchive::StoredArchive(std::shared_ptr<const MappedFile> file) : file_(std::move(file)) {
  entries_ = std::make_shared<const Entries>(
      with_place(file_->path().string(), [&] { return read_entries(); }));
}

bool StoredArchive::recognizes(const MappedFile& file) {
  return file.size() >= kLocalBytes && number_at<std::uint32_t>(file.bytes(), 0) == kLocalHeader;
}

StoredArchive::Entries StoredArchive::read_entries() const {
  const std::span<const std::byte> all = file_->bytes();
  const Directory directory = find_directory(all);
  const std::span<const std::byte> list = all.subspan(directory.offset, directory.size);
  Entries entries;
  std::uint64_t at = 0;
  for (std::uint64_t i = 0; i < directory.count; ++i) {
    if (number_at<std::uint32_t>(list, at) != kCentralHeader)
      fail("entry {} of its list is none", i);
    const auto flags = number_at<std::uint16_t>(list, at + 8);
    const auto method = number_at<std::uint16_t>(list, at + 10);
    const auto packed = number_at<std::uint32_t>(list, at + 20);
    const auto size = number_at<std::uint32_t>(list, at + 24);
    const std::size_t name_size = number_at<std::uint16_t>(list, at + 28);
    const std::size_t extra_size = number_at<std::uint16_t>(list, at + 30);
    const std::size_t comment_size = number_at<std::uint16_t>(list, at + 32);
    const auto offset = number_at<std::uint32_t>(list, at + 42);
    const std::string name(text_at(list, at + kCentralBytes, name_size));
    text_at(list, at + kCentralBytes + name_size, extra_size);
    LargeNumbers large(list, at + kCentralBytes + name_size, extra_size);
    Entry entry{.size = large.resolve(size)};
    const std::uint64_t packed_size = large.resolve(packed);
    entry.offset = large.resolve(offset);
    constexpr int kEncrypted = 1;
    entry.is_plain = method == 0 && (flags & kEncrypted) == 0 && packed_size == entry.size;
    if (!entries.emplace(name, entry).second) fail("has two entries {}", quote_text(name));
    at += kCentralBytes + name_size + extra_size + comment_size;
  }
  return entries;
}

std::span<const std::byte> StoredArchive::bytes(std::string_view name) const {
  return with_place(file_->path().string(), [&] {
    const auto found = entries_->find(name);
    if (found == entries_->end()) fail("has no entry {}", quote_text(name));
    const Entry& entry = found->second;
    if (!entry.is_plain)
      fail("entry {} is compressed or encrypted, expected it stored as it is", quote_text(name));
    const std::span<const std::byte> all = file_->bytes();
    if (number_at<std::uint32_t>(all, entry.offset) != kLocalHeader)
      fail("entry {} is not where the list says, at byte {}", quote_text(name), entry.offset);
    const std::size_t name_size = number_at<std::uint16_t>(all, entry.offset + 26);
    const std::size_t extra_size = number_at<std::uint16_t>(all, entry.offset + 28);
    if (text_at(all, entry.offset + kLocalBytes, name_size) != name)
      fail("entry {} has another name where it lies", quote_text(name));
    const std::uint64_t begin = entry.offset + kLocalBytes + name_size + extra_size;
    if (begin > all.size() || entry.size > all.size() - begin)
      fail("entry {} of {} bytes at byte {} lies outside the {} bytes", quote_text(name),
           entry.size, begin, all.size());
    return all.subspan(begin, entry.size);
  });
}

const std::string& StoredArchive::only_entry(std::string_view ending) const {
  const std::string* found = nullptr;
  for (const auto& [name, entry] : *entries_) {
    if (!name.ends_with(ending)) continue;
    if (found)
      fail("{}: has {} and {}, expected one of them", file_->path().string(), quote_text(*found),
           quote_text(name));
    found = &name;
  }
  if (!found) fail("{}: has no entry {}", file_->path().string(), quote_text(ending));
  return *found;
}

}  // namespace lathe::io
