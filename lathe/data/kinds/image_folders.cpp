// SPLIT/LABEL/*.png or *.jpg: a folder for each label, with folders of its own where it likes.
#include <filesystem>
#include <optional>

#include "lathe/core/error.h"
#include "lathe/data/data_kind.h"
#include "lathe/data/image_file.h"
#include "lathe/data/list_images.h"
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
  for (fs::path& path : list_images(folder)) {
    if (path.parent_path() == folder)
      fail("{}: lies beside the folders of labels, expected in one of them", path.string());
    std::string label = path.lexically_relative(folder).begin()->string();
    files.push_back({std::move(label), std::move(path)});
  }
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
  return is_labelled(split) && fs::is_directory(folder, error) && has_folders_of_images(folder);
}

// Gives the grey images that were read so far two channels more, for one that is coloured.
void make_coloured(Arrays& arrays, const ImageReading& reading) {
  const auto size = static_cast<std::size_t>(arrays.shape[1] * arrays.shape[2]);
  std::vector<float> values;
  values.reserve(3 * arrays.values.capacity());
  for (std::size_t begin = 0; begin < arrays.values.size(); begin += size)
    for (int copy = 0; copy < 3; ++copy)
      values.insert(values.end(), arrays.values.begin() + static_cast<std::ptrdiff_t>(begin),
                    arrays.values.begin() + static_cast<std::ptrdiff_t>(begin + size));
  check(reading.mean.size() < 2 && reading.deviation.size() < 2, "channels that are read alike");
  arrays.values = std::move(values);
  arrays.shape[0] = 3;
}

// Images one after another, all of one shape. Photographs without colours are among coloured ones
// everywhere: they are coloured then.
class ImageRows {
 public:
  ImageRows(const fs::path& folder, std::size_t count, const ImageReading& reading)
      : folder_(folder), count_(count), reading_(reading) {}

  void add(const fs::path& path) {
    Image image = read_image(path);
    image = with_place(path.string(), [&] { return prepare(std::move(image), reading_); });
    if (first_.empty()) {
      first_ = path;
      reserve(image);
    }
    if (rows_.shape[0] == 3) image = to_colour(std::move(image));
    if (rows_.shape[0] == 1 && image.channels == 3) make_coloured(rows_, reading_);
    const std::vector<std::int64_t> shape = {image.channels, image.height, image.width};
    if (shape != rows_.shape)
      throw UserError(
          fmt::format("{}: is {} (channels, height, width), expected {} as {}", path.string(),
                      fmt::join(shape, "x"), fmt::join(rows_.shape, "x"), first_.string()),
          "images resize=ROWSxCOLUMNS, or shortest=N,crop=N, brings all to one size");
    append_values(rows_.values, image, reading_);
  }

  Arrays take() { return std::move(rows_); }

 private:
  void reserve(const Image& image) {
    rows_.shape = {image.channels, image.height, image.width};
    if (image.bytes.size() > kMostValues / count_)
      fail("{}: holds {} images of {} values, more than the {} that are read", folder_.string(),
           count_, image.bytes.size(), kMostValues);
    rows_.values.reserve(count_ * image.bytes.size());
  }

  const fs::path& folder_;
  std::size_t count_;
  const ImageReading& reading_;
  fs::path first_;
  Arrays rows_;
};

Dataset load(const std::string& directory, const std::string& split, const DatasetOptions& options,
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
  ImageRows rows(folder, files.size(), options.images);
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (i % 256 == 0 && should_stop && should_stop()) throw Interrupted();
    rows.add(files[i].path);
  }
  dataset.arrays = rows.take();
  return dataset;
}

const Register registration{DataKind{
    .name = "image-folders",
    .summary = "a folder of .png or .jpg files for each label",
    .reads = Reads::Numbers,
    .has_images = true,
    .looks_for = "folders SPLIT/LABEL of .png or .jpg files",
    .has_split = has_split,
    .load = load,
}};

}  // namespace
}  // namespace lathe::data::image_folders
