#pragma once

#include <filesystem>
#include <string>

#include "lathe/io/testing/tiny_bert.h"

namespace lathe::experiment {

/// Writes a directory with forty short texts to train on and twelve to test on, whose label is
/// whether they say "fine" or "poor", and gives its path.
inline std::string write_opinions(const io::ScratchDirectory& scratch, const std::string& name,
                                  const std::string& negative = "bad",
                                  const std::string& positive = "good") {
  std::filesystem::create_directory(scratch / name);
  const char* const endings[] = {"film", "plot .", "act , the film", "very film !", "the plots"};
  for (const auto& [split, count] : {std::pair("train", 40), std::pair("test", 12)}) {
    std::string rows = "text,label\n";
    for (int i = 0; i < count; ++i)
      rows += std::string("\"a ") + (i % 2 == 1 ? "fine " : "poor ") + endings[i / 2 % 5] + "\"," +
              (i % 2 == 1 ? positive : negative) + "\n";
    scratch.write(name + "/" + split + ".csv", rows);
  }
  return (scratch / name).string();
}

}  // namespace lathe::experiment
