#pragma once

#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <type_traits>

#include "lathe/data/data_kind.h"

namespace lathe::data {

/// A split's file and what reads it.
template <typename Reader>
struct FoundReader {
  const Reader* reader;
  std::filesystem::path file;
};

/// The first of some readers, each with an `extension`, whose file a directory has for a split.
template <typename Readers>
auto find_reader(const Readers& readers, const std::string& directory, const std::string& split)
    -> std::optional<FoundReader<std::remove_cvref_t<decltype(*std::begin(readers))>>> {
  for (const auto& reader : readers)
    if (const auto file = find_split_file(directory, split, std::string(reader.extension)))
      return {{&reader, *file}};
  return std::nullopt;
}

}  // namespace lathe::data
