#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::data {

/// Texts that lie in a file instead of memory: of data that is larger. The file has no name and
/// goes when the store does. Any number of threads may read.
class TextStore {
 public:
  TextStore();
  ~TextStore();
  TextStore(const TextStore&) = delete;
  TextStore& operator=(const TextStore&) = delete;

  /// Adds a text, or a pair of them, and gives its number. Fails where the disk is full.
  std::int64_t add(std::string_view text, std::string_view second);
  struct Texts {
    std::string text, second;
  };
  Texts read(std::int64_t number) const;

 private:
  struct Place {
    std::uint64_t begin;
    std::uint32_t length, second_length;
  };

  void flush();

  int file_ = -1;
  std::vector<Place> places_;
  std::string waiting_;  // written when there is enough of it
  std::uint64_t written_ = 0;
};

}  // namespace lathe::data
