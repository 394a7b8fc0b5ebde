// SPLIT/LABEL/*.png or *.jpg: a folder for each label.
#include <algorithm>
#include <filesystem>
#include <optional>

#include "lathe/core/error.h"
#include "lathe/data/data_kind.h"
#include "lathe/data/jpeg_image.h"
#include "lathe/data/png_image.h"
#include "lathe/data/written_labels.h"

namespace lathe::data::image_folders {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostValues = std::size_t{1} << 31;

struct LabelledFile {
  std::string label;
  fs::path path;
};

// The images of a split by label and name, whatever order the file system lists them in.
std::vector<LabelledFile> images_of(const fs::path& folder) {
  std::vector<LabelledFile> files;
  std::error_code error;
  for (fs::directory_iterator label(folder, error), end; !error && label != end;
       label.increment(error)) {
    if (!fs::is_directory(label->path(), error)) continue;
    for (fs::directory_iterator file(label->path(), error), last; !error && file != last;
         file.increment(error))
      if (file->path().extension() == ".png" || has_jpeg_ending(file->path()))
        files.push_back({label->path().filename().string(), file->path()});
  }
  if (error) fail("{}: cannot be listed: {}", folder.string(), error.message());
  std::sort(files.begin(), files.end(),
            [](const LabelledFile& a, const LabelledFile& b) { return a.path < b.path; });
  return files;
}

WrittenLabels labels_of(const fs::path& folder, const std::vector<LabelledFile>& files) {
  WrittenLabels written{.place = folder.string()};
  for (const LabelledFile& file : files) written.labels.push_back(file.label);
  return written;
}

bool has_split(const std::string& directory, const std::string& split) {
  std::error_code error;
  const fs::path folder = fs::path(directory) / split;
  return is_labelled(split) && fs::is_directory(folder, error) && !images_of(folder).empty();
}

Dataset load(const std::string& directory, const std::string& split, const DatasetOptions&,
             const ShouldStop& should_stop) {
  const fs::path folder = fs::path(directory) / split;
  const std::vector<LabelledFile> files = images_of(folder);
  std::optional<WrittenLabels> training;
  if (split != "train" && has_split(directory, "train")) {
    const fs::path other = fs::path(directory) / "train";
    training = labels_of(other, images_of(other));
  }
  Dataset dataset;
  dataset.examples.resize(files.size());
  set_labels(dataset, labels_of(folder, files), training ? &*training : nullptr, LabelKind::Class);
  dataset.arrays.emplace();
  Arrays& arrays = *dataset.arrays;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (i % 256 == 0 && should_stop && should_stop()) throw Interrupted();
    const Image image =
        has_jpeg_ending(files[i].path) ? read_jpeg(files[i].path) : read_png(files[i].path);
    const std::vector<std::int64_t> shape = {image.channels, image.height, image.width};
    if (i == 0) {
      arrays.shape = shape;
      if (image.values.size() > kMostValues / files.size())
        fail("{}: holds {} images of {} values, more than the {} that are read", folder.string(),
             files.size(), image.values.size(), kMostValues);
      arrays.values.reserve(files.size() * image.values.size());
    }
    if (shape != arrays.shape)
      fail("{}: is {} (channels, height, width), expected {} as {}", files[i].path.string(),
           fmt::join(shape, "x"), fmt::join(arrays.shape, "x"), files[0].path.string());
    arrays.values.insert(arrays.values.end(), image.values.begin(), image.values.end());
  }
  return dataset;
}

const Register registration{DataKind{
    .name = "image-folders",
    .summary = "a folder of .png or .jpg files for each label, all of one size, pixels from 0 to 1",
    .reads = Reads::Numbers,
    .looks_for = "folders SPLIT/LABEL of .png or .jpg files",
    .has_split = has_split,
    .load = load,
}};

}  // namespace
}  // namespace lathe::data::image_folders
