#include "lathe/data/text_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>

#include "lathe/core/error.h"

namespace lathe::data {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

}  // namespace

TextStore::TextStore() {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  std::string name = (folder / "lathe-texts-XXXXXX").string();
  file_ = error ? -1 : ::mkostemp(name.data(), O_CLOEXEC);
  if (file_ < 0)
    fail("{}: cannot hold the texts that do not fit memory: {}", folder.string(),
         std::strerror(errno));
  ::unlink(name.c_str());
}

TextStore::~TextStore() {
  if (file_ >= 0) ::close(file_);
}

std::int64_t TextStore::add(std::string_view text, std::string_view second) {
  if (text.size() > std::numeric_limits<std::uint32_t>::max() ||
      second.size() > std::numeric_limits<std::uint32_t>::max())
    fail("a text of {} bytes: expected less than 4 GB", std::max(text.size(), second.size()));
  places_.push_back({written_ + waiting_.size(), static_cast<std::uint32_t>(text.size()),
                     static_cast<std::uint32_t>(second.size())});
  waiting_ += text;
  waiting_ += second;
  if (waiting_.size() >= kPieceBytes) flush();
  return static_cast<std::int64_t>(places_.size()) - 1;
}

void TextStore::flush() {
  for (std::size_t done = 0; done < waiting_.size();) {
    const ssize_t count = ::pwrite(file_, waiting_.data() + done, waiting_.size() - done,
                                   static_cast<off_t>(written_ + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0)
      fail("the texts that do not fit memory cannot be written: {}", std::strerror(errno));
    done += static_cast<std::size_t>(count);
  }
  written_ += waiting_.size();
  waiting_.clear();
}

TextStore::Texts TextStore::read(std::int64_t number) const {
  const Place& place = places_.at(static_cast<std::size_t>(number));
  std::string bytes(std::size_t{place.length} + place.second_length, '\0');
  if (place.begin >= written_) {
    bytes = waiting_.substr(place.begin - written_, bytes.size());
  } else {
    for (std::size_t done = 0; done < bytes.size();) {
      const ssize_t count = ::pread(file_, bytes.data() + done, bytes.size() - done,
                                    static_cast<off_t>(place.begin + done));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0)
        fail("a text that did not fit memory cannot be read: {}", std::strerror(errno));
      done += static_cast<std::size_t>(count);
    }
  }
  return {bytes.substr(0, place.length), bytes.substr(place.length)};
}

}  // namespace lathe::data
