#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace lathe::data {

/// The contents of a text file to be read from front to back: of a plain file the file itself,
/// mapped, so that it may be larger than memory; of a compressed one what it unpacks to.
class TextContents {
 public:
  explicit TextContents(const std::filesystem::path& path);
  ~TextContents();
  TextContents(const TextContents&) = delete;
  TextContents& operator=(const TextContents&) = delete;

  std::string_view view() const { return view_; }

 private:
  std::string text_;
  void* mapped_ = nullptr;
  std::string_view view_;
};

}  // namespace lathe::data
