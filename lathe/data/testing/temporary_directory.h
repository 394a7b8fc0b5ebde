#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "lathe/core/error.h"

namespace lathe::data {

/// A directory of a test's own, named after the test and gone at its end.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::path(testing::TempDir()) /
            (std::string("lathe_") + test->test_suite_name() + "_" + test->name());
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Writes a file, making the folders it needs, and returns its path.
  std::filesystem::path write(std::string_view name, std::string_view text) const {
    std::filesystem::path file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary)
        .write(text.data(), static_cast<std::streamsize>(text.size()));
    return file;
  }

 private:
  std::filesystem::path path_;
};

/// The message of the UserError that `body` throws, or "no error".
template <typename Body>
std::string error_of(Body&& body) {
  try {
    body();
  } catch (const UserError& error) {
    return error.message();
  }
  return "no error";
}

}  // namespace lathe::data
