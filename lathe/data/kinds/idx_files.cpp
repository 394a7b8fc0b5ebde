// The files of MNIST: images and labels as bytes behind a big-endian header.
#include <algorithm>
#include <filesystem>
#include <optional>

#include "lathe/core/error.h"
#include "lathe/data/data_kind.h"
#include "lathe/data/text_file.h"
#include "lathe/data/written_labels.h"

namespace lathe::data::idx_files {
namespace {

constexpr std::uint32_t kImages = 0x00000803, kLabels = 0x00000801;  // bytes, in 3 and 1 dimensions
constexpr std::uint64_t kMostPixels = 1 << 24;                       // of one image
constexpr std::int64_t kMostBytes = std::int64_t{1} << 31;
constexpr std::size_t kMostValues = std::size_t{1} << 31;  // of all images when they are resized
constexpr std::size_t kImageHeader = 16;

struct Files {
  std::optional<std::filesystem::path> images, labels;
};

std::optional<Files> find(const std::string& directory, const std::string& split) {
  // MNIST calls its test split by its size.
  const std::vector<std::string> stems =
      split == "test" ? std::vector<std::string>{"t10k", "test"} : std::vector{split};
  for (const std::string& stem : stems) {
    Files files{find_file(directory, stem + "-images-idx3-ubyte"),
                find_file(directory, stem + "-labels-idx1-ubyte")};
    if (files.images || files.labels) return files;
  }
  return std::nullopt;
}

std::uint64_t number_at(std::string_view bytes, std::size_t index) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 4; ++i)
    value = value << 8 | static_cast<unsigned char>(bytes[4 * index + i]);
  return value;
}

// Checks the header against the size of the file and gives the sizes it states.
std::vector<std::uint64_t> read_header(std::string_view bytes, std::uint32_t magic) {
  const std::size_t num_sizes = magic & 0xFF;
  if (bytes.size() < 4 * (num_sizes + 1))
    fail("is {} bytes long, shorter than the header of an idx file", bytes.size());
  if (number_at(bytes, 0) != magic)
    fail("begins with {}, expected {}, the number of an idx file of bytes in {} dimension{}",
         number_at(bytes, 0), magic, num_sizes, num_sizes == 1 ? "" : "s");
  std::vector<std::uint64_t> sizes;
  for (std::size_t i = 1; i <= num_sizes; ++i) sizes.push_back(number_at(bytes, i));
  std::uint64_t one = 1;
  for (std::size_t i = 1; i < num_sizes; ++i) {
    // Each size is below 2^32, so the product cannot overflow before it is seen to be too large.
    one *= sizes[i];
    if (one == 0 || one > kMostPixels)
      fail("says that an image is {} by {}, expected 1 to {} pixels", sizes[1], sizes[2],
           kMostPixels);
  }
  const std::uint64_t expected = 4 * (num_sizes + 1) + sizes[0] * one;
  if (bytes.size() != expected)
    fail("is {} bytes long, but its header says {}: {} items of {} bytes", bytes.size(), expected,
         sizes[0], one);
  if (sizes[0] == 0) fail("is empty, expected at least one example");
  return sizes;
}

WrittenLabels read_labels(const std::filesystem::path& file) {
  const std::string bytes = read_text_file(file, kMostBytes);
  with_place(file.string(), [&] { read_header(bytes, kLabels); });
  WrittenLabels written{.place = file.string()};
  for (const char label : std::string_view(bytes).substr(8))
    written.labels.push_back(std::to_string(static_cast<unsigned char>(label)));
  return written;
}

void check_total(const std::string& place, std::size_t count, std::size_t size) {
  if (size > kMostValues / count)
    fail("{}: holds {} images of {} values, more than the {} that are read", place, count, size,
         kMostValues);
}

bool has_split(const std::string& directory, const std::string& split) {
  return is_labelled(split) && find(directory, split);
}

Dataset load(const std::string& directory, const std::string& split, const DatasetOptions& options,
             const ShouldStop&) {
  const auto [images, label_file] = *find(directory, split);
  if (!images || !label_file)
    fail("{}: has {}, but not the {} that belong to it", directory,
         (images ? images : label_file)->filename().string(), images ? "labels" : "images");
  const std::string bytes = read_text_file(*images, kMostBytes);
  const std::vector<std::uint64_t> sizes =
      with_place(images->string(), [&] { return read_header(bytes, kImages); });
  const WrittenLabels written = read_labels(*label_file);
  if (written.labels.size() != sizes[0])
    fail("{}: has {} labels, but {} has {} images", label_file->string(), written.labels.size(),
         images->filename().string(), sizes[0]);
  std::optional<WrittenLabels> training;
  if (split != "train")
    if (const auto other = find(directory, "train"); other && other->labels)
      training = read_labels(*other->labels);

  Dataset dataset;
  dataset.examples.resize(written.labels.size());
  set_labels(dataset, written, training ? &*training : nullptr, LabelKind::Class);
  const auto rows = static_cast<std::int64_t>(sizes[1]),
             columns = static_cast<std::int64_t>(sizes[2]);
  const auto pixels = std::span(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  dataset.arrays.emplace();
  for (std::size_t at = kImageHeader; at < pixels.size(); at += sizes[1] * sizes[2]) {
    const Image image = with_place(images->string(), [&] {
      return prepare(to_planes(1, rows, columns, pixels.subspan(at, sizes[1] * sizes[2])),
                     options.images);
    });
    if (at == kImageHeader) {
      dataset.arrays->shape = {image.channels, image.height, image.width};
      check_total(images->string(), sizes[0], image.bytes.size());
      dataset.arrays->values.reserve(sizes[0] * image.bytes.size());
    }
    append_values(dataset.arrays->values, image, options.images);
  }
  return dataset;
}

const Register registration{DataKind{
    .name = "idx-files",
    .summary = "grey images and labels in the files of MNIST",
    .reads = Reads::Numbers,
    .has_images = true,
    .looks_for = "SPLIT-images-idx3-ubyte and SPLIT-labels-idx1-ubyte (t10k for test), each also "
                 "with .zst or .gz",
    .has_split = has_split,
    .load = load,
}};

}  // namespace
}  // namespace lathe::data::idx_files
