#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdlib>

#include "lathe/data/dataset.h"
#include "lathe/data/png_image.h"
#include "lathe/data/testing/png_bytes.h"
#include "lathe/data/testing/temporary_directory.h"

namespace lathe::data {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

std::string grey(std::vector<unsigned char> pixels) {
  return png(2, 1, PNG_FORMAT_GRAY, pixels);
}

Dataset load(const TemporaryDirectory& directory, std::string_view split = "train") {
  return load_dataset(directory.path().string(), split, {.reads = Reads::Numbers});
}

TEST(ImageFolders, ReadALabelAFolder) {
  const TemporaryDirectory directory;
  directory.write("train/dog/b.png", grey({0, 51}));
  directory.write("train/cat/z.png", grey({255, 0}));
  directory.write("train/dog/a.png", grey({51, 255}));
  directory.write("train/readme.txt", "not an image");
  directory.write("test/dog/a.png", grey({0, 0}));
  const Dataset dataset = load(directory);
  EXPECT_THAT(dataset.arrays->shape, ElementsAre(1, 1, 2));
  EXPECT_THAT(dataset.arrays->values, ElementsAre(1.0f, 0.0f, 0.2f, 1.0f, 0.0f, 0.2f));
  EXPECT_THAT(dataset.labels(), ElementsAre(0, 1, 1));
  EXPECT_THAT(dataset.label_names, ElementsAre("cat", "dog"));
  EXPECT_THAT(load(directory, "test").labels(), ElementsAre(1)) << "numbered by train";
}

TEST(ImageFolders, AreReadWithTheFoldersInThem) {
  const TemporaryDirectory directory;
  directory.write("train/cat/1.png", grey({0, 0}));
  directory.write("train/dog/old/2.png", grey({0, 0}));
  directory.write("train/dog/3.png", grey({0, 0}));
  directory.write("train/dog/notes.txt", "not an image");
  EXPECT_THAT(load(directory).labels(), ElementsAre(0, 1, 1));
}

TEST(ImageFolders, AreReadWithTheFoldersThatTheyLinkTo) {
  const TemporaryDirectory directory;
  directory.write("train/cat/1.png", grey({0, 0}));
  directory.write("more/2.png", grey({0, 0}));
  const std::filesystem::path train = directory.path() / "train";
  std::filesystem::create_directory_symlink("../../more", train / "cat" / "link");
  EXPECT_THAT(load(directory).labels(), ElementsAre(0, 0));
  std::filesystem::create_symlink("nowhere", train / "cat" / "3.png");
  EXPECT_THAT(error_of([&] { load(directory); }),
              EndsWith("train/cat/3.png: cannot be opened: it is no file, or a link to none"));
  std::filesystem::remove(train / "cat" / "3.png");
  std::filesystem::create_symlink("3.png", train / "cat" / "3.png");
  EXPECT_THAT(error_of([&] { load(directory); }),
              EndsWith("train/cat/3.png: cannot be opened: Too many levels of symbolic links"));
}

TEST(ImageFolders, RefuseLinksToWhatIsReadAnyway) {
  const TemporaryDirectory directory;
  directory.write("train/cat/1.png", grey({0, 0}));
  directory.write("train/dog/2.png", grey({0, 0}));
  const std::filesystem::path train = directory.path() / "train";
  const std::filesystem::path link = train / "cat" / "again";
  const auto refusal = [&](const std::filesystem::path& target) {
    std::filesystem::remove(link);
    std::filesystem::create_directory_symlink(target, link);
    return error_of([&] { load(directory); });
  };
  const std::string real = std::filesystem::canonical(train).string();
  EXPECT_THAT(refusal("."), EndsWith("train/cat/again: is a link to " + real +
                                     "/cat, of which images are read already"));
  EXPECT_THAT(refusal("../../train"), EndsWith("train/cat/again: is a link to " + real +
                                               ", of which images are read already"));
  EXPECT_THAT(refusal("../dog"), EndsWith("train/cat/again: is a link to " + real +
                                          "/dog, of which images are read already"));
  EXPECT_THAT(refusal("/"),
              EndsWith("train/cat/again: is a link to /, of which images are read already"));
}

TEST(ImageFolders, RefuseTwoFoldersThatLinkToEachOther) {
  const TemporaryDirectory directory;
  directory.write("train/cat/1.png", grey({0, 0}));
  directory.write("a/2.png", grey({0, 0}));
  directory.write("b/3.png", grey({0, 0}));
  std::filesystem::create_directory_symlink("../b", directory.path() / "a" / "b");
  std::filesystem::create_directory_symlink("../a", directory.path() / "b" / "a");
  std::filesystem::create_directory_symlink("../../a", directory.path() / "train/cat/a");
  EXPECT_THAT(error_of([&] { load(directory); }), HasSubstr("train/cat/a/b/a: is a link to "));
}

TEST(ImageFolders, RefuseLinksToNothingThatMayBeFolders) {
  const TemporaryDirectory directory;
  directory.write("train/cat/1.png", grey({0, 0}));
  const std::filesystem::path train = directory.path() / "train";
  std::filesystem::create_symlink("nowhere", train / "dog");
  EXPECT_THAT(error_of([&] { load(directory); }),
              EndsWith("train/dog: cannot be opened: No such file or directory"));
  std::filesystem::rename(train / "dog", train / "cat" / "more");
  EXPECT_THAT(error_of([&] { load(directory); }),
              EndsWith("train/cat/more: cannot be opened: No such file or directory"));
  std::filesystem::remove(train / "cat" / "more");
  std::filesystem::create_symlink("dog", train / "dog");
  EXPECT_THAT(error_of([&] { load(directory); }),
              EndsWith("train/dog: cannot be opened: Too many levels of symbolic links"));
  std::filesystem::rename(train / "dog", train / "v1.0");
  EXPECT_THAT(error_of([&] { load(directory); }), HasSubstr("train/v1.0: cannot be opened: "));
}

// Root may read everything, so it is somebody else meanwhile.
class AsNobody {
 public:
  AsNobody() : is_root_(geteuid() == 0) { check(!is_root_ || seteuid(kNobody) == 0, "a user"); }
  ~AsNobody() {
    if (is_root_ && seteuid(0) != 0) std::abort();
  }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;

 private:
  static constexpr uid_t kNobody = 65534;
  bool is_root_;
};

TEST(ImageFolders, RefuseFoldersThatMayNotBeRead) {
  const TemporaryDirectory directory;
  directory.write("train/cat/1.png", grey({0, 0}));
  directory.write("train/dog/2.png", grey({0, 0}));
  const std::filesystem::path train = directory.path() / "train";
  using std::filesystem::perms;
  constexpr perms kAll = perms::owner_all | perms::group_read | perms::group_exec |
                         perms::others_read | perms::others_exec;
  std::filesystem::permissions(directory.path(), kAll);
  for (const std::filesystem::path& hidden : {train / "cat", train}) {
    std::filesystem::permissions(hidden, perms::none);
    std::string error;
    {
      const AsNobody nobody;
      error = error_of([&] { load(directory); });
    }
    std::filesystem::permissions(hidden, kAll);
    EXPECT_EQ(error, hidden.string() + ": cannot be listed: Permission denied");
  }
}

TEST(ImageFolders, AreNotTakenForFoldersOfTexts) {
  const TemporaryDirectory directory;
  directory.write("train/pos/1_9.txt", "good");
  directory.write("train/neg/2_1.txt", "bad");
  directory.write("train/cloud.gif", "GIF89a");
  directory.write("train/words.png", grey({0, 0}));
  directory.write("train/pos/cloud.webp", "RIFF");
  std::filesystem::create_directory_symlink(".", directory.path() / "train" / "pos" / "loop");
  EXPECT_EQ(load_dataset(directory.path().string(), "train").examples.size(), 2U);
}

TEST(ImageFolders, RefuseAnImageWithoutALabel) {
  const TemporaryDirectory directory;
  directory.write("train/cat/1.png", grey({0, 0}));
  for (const char* const name : {"5", "2", "9", "3", "4", "8", "7", "6"})
    directory.write(fmt::format("train/{}.png", name), grey({0, 0}));
  EXPECT_THAT(error_of([&] { load(directory); }),
              EndsWith("train/2.png: lies beside the folders of labels, expected in one of them"));
}

TEST(ImageFolders, RefuseToLeaveImagesOut) {
  const TemporaryDirectory directory;
  directory.write("train/cat/1.png", grey({0, 0}));
  directory.write("train/dog/2.WebP", "RIFF");
  EXPECT_THAT(error_of([&] { load(directory); }),
              EndsWith("train/dog/2.WebP: is an image that is not read: expected .png, .jpg or "
                       ".jpeg"));
}

TEST(ImageFolders, ReadEndingsInSmallAndCapitalLetters) {
  const TemporaryDirectory directory;
  directory.write("train/a/1.Png", grey({0, 0}));
  directory.write("train/b/2.pNG", grey({0, 0}));
  EXPECT_THAT(load(directory).labels(), ElementsAre(0, 1));
  directory.write("train/c/3.jfif", "a JPEG by another name");
  EXPECT_THAT(error_of([&] { load(directory); }),
              HasSubstr("3.jfif: is an image that is not read: "));
}

TEST(ImageFolders, KeepTheNumbersOfFolders) {
  const TemporaryDirectory directory;
  for (int label = 0; label < 11; ++label)
    directory.write(fmt::format("train/{}/a.png", label), grey({0, 0}));
  EXPECT_THAT(load(directory).labels(), ElementsAre(0, 1, 10, 2, 3, 4, 5, 6, 7, 8, 9));
}

TEST(ImageFolders, RefuseImagesOfAnotherSize) {
  const TemporaryDirectory directory;
  directory.write("train/a/1.png", grey({0, 1}));
  directory.write("train/a/2.png", png(1, 1, PNG_FORMAT_GRAY, {7}));
  EXPECT_THAT(error_of([&] { load(directory); }),
              HasSubstr("2.png: is 1x1x1 (channels, height, width), expected 1x1x2 as "));
}

TEST(ImageFolders, BringImagesToOneSize) {
  const TemporaryDirectory directory;
  directory.write("train/a/1.png", grey({0, 51}));
  directory.write("train/b/2.png", png(1, 1, PNG_FORMAT_GRAY, {51}));
  const Dataset dataset =
      load_dataset(directory.path().string(), "train",
                   {.reads = Reads::Numbers,
                    .images = parse_image_reading("resize=1x2,resample=nearest,mean=0.2")});
  EXPECT_THAT(dataset.arrays->shape, ElementsAre(1, 1, 2));
  EXPECT_THAT(dataset.arrays->values, ElementsAre(-0.2f, 0.0f, 0.0f, 0.0f));
}

TEST(ImageFolders, ColourGreyImagesAmongColouredOnes) {
  const TemporaryDirectory directory;
  directory.write("train/a/1.png", grey({0, 51}));
  directory.write("train/a/2.png", png(2, 1, PNG_FORMAT_RGB, {255, 0, 51, 0, 255, 51}));
  directory.write("train/b/3.png", grey({51, 0}));
  const Dataset dataset = load(directory);
  EXPECT_THAT(dataset.arrays->shape, ElementsAre(3, 1, 2));
  EXPECT_THAT(dataset.arrays->values,
              ElementsAre(0.0f, 0.2f, 0.0f, 0.2f, 0.0f, 0.2f, 1.0f, 0.0f, 0.0f, 1.0f, 0.2f, 0.2f,
                          0.2f, 0.0f, 0.2f, 0.0f, 0.2f, 0.0f));
}

TEST(Image, PutsOneChannelAfterTheOther) {
  const TemporaryDirectory directory;
  const Image image =
      read_png(directory.write("a.png", png(2, 1, PNG_FORMAT_RGB, {255, 0, 51, 0, 255, 102})));
  EXPECT_EQ(image, (Image{3, 1, 2, {255, 0, 0, 255, 51, 102}}));
}

TEST(Image, RefusesWhatIsNotGreyOrColoured) {
  const TemporaryDirectory directory;
  EXPECT_THAT(error_of([&] {
                read_png(directory.write("a.png", png(1, 1, PNG_FORMAT_RGBA, {1, 2, 3, 4})));
              }),
              EndsWith("a.png: has transparent pixels, expected grey or red, green and blue"));
  EXPECT_THAT(error_of([&] { read_png(directory.write("b.png", "GIF89a, for once")); }),
              HasSubstr("b.png: is not a sound PNG: "));
  EXPECT_THAT(error_of([&] { read_png(directory.write("c.png", "")); }),
              EndsWith("c.png: is not a sound PNG: it is empty"));
}

// Every cut and every changed byte gives an image or one line.
TEST(Image, SurvivesDamage) {
  const TemporaryDirectory directory;
  const std::string sound = png(2, 2, PNG_FORMAT_RGB, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  for (std::size_t length = 0; length + 12 < sound.size();
       ++length)  // the last chunk is only a mark
    EXPECT_THAT(error_of([&] { read_png(directory.write("a.png", sound.substr(0, length))); }),
                HasSubstr("a.png: is not a sound PNG: "))
        << length;
  for (std::size_t at = 0; at < sound.size(); ++at) {
    std::string damaged = sound;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    const auto file = directory.write("a.png", damaged);
    const std::string error = error_of([&] { read_png(file); });
    EXPECT_TRUE(error == "no error" || error.find("a.png: ") != error.npos) << at;
  }
}

std::string four_bytes(std::uint64_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift);
  return bytes;
}

std::string checksum(std::string_view bytes) {
  return four_bytes(
      crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
}

// Pillow and all that is built on it read bytes as they are stored.
TEST(Image, IsReadWithoutItsGamma) {
  const TemporaryDirectory directory;
  std::string bytes = png(2, 1, PNG_FORMAT_RGB, {255, 0, 51, 0, 255, 102});
  const std::string gamma = "gAMA" + four_bytes(100'000);     // linear
  bytes.insert(33, four_bytes(4) + gamma + checksum(gamma));  // behind IHDR
  EXPECT_EQ(read_png(directory.write("a.png", bytes)), (Image{3, 1, 2, {255, 0, 0, 255, 51, 102}}));
}

std::string exif_chunk(char orientation) {
  const std::string chunk = "eXIf" + std::string("MM\0*\0\0\0\x8\0\x1\x1\x12\0\x3\0\0\0\x1\0", 19) +
                            orientation + std::string(6, '\0');
  return four_bytes(26) + chunk + checksum(chunk);
}

constexpr std::size_t kBehindHeader = 33;

// Photographs that were saved again as PNGs keep what the camera said.
TEST(Image, IsTurnedUprightByAChunkOfExif) {
  const TemporaryDirectory directory;
  std::string bytes = png(1, 2, PNG_FORMAT_GRAY, {20, 220});
  bytes.insert(kBehindHeader, exif_chunk(6));
  EXPECT_EQ(read_png(directory.write("a.png", bytes)), (Image{1, 1, 2, {220, 20}}));
}

TEST(Image, IsTurnedByTheFirstSoundChunkBeforeTheEndAlone) {
  const TemporaryDirectory directory;
  const std::string bytes = png(1, 2, PNG_FORMAT_GRAY, {20, 220});
  const auto read = [&](const std::string& behind_header, const std::string& behind_end) {
    std::string all = bytes;
    return read_png(
        directory.write("a.png", all.insert(kBehindHeader, behind_header) + behind_end));
  };
  const Image turned{1, 1, 2, {220, 20}}, stored{1, 2, 1, {20, 220}};
  EXPECT_EQ(read(exif_chunk(6) + exif_chunk(1), ""), turned);
  EXPECT_EQ(read("", exif_chunk(6)), stored);
  std::string damaged = exif_chunk(6);
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  EXPECT_EQ(read(damaged, ""), stored);
  EXPECT_EQ(read(damaged + exif_chunk(6), ""), turned);
}

TEST(Image, RefusesAHugeImageByItsHeader) {
  const TemporaryDirectory directory;
  std::string bytes = png(2, 1, PNG_FORMAT_GRAY, {0, 0});
  // IHDR: its width is at byte 16 and its checksum at byte 29.
  for (const std::size_t at : {16, 20}) bytes.replace(at, 4, std::string("\0\0\x40\0", 4));
  bytes.replace(29, 4, checksum(std::string_view(bytes).substr(12, 17)));
  EXPECT_THAT(error_of([&] { read_png(directory.write("a.png", bytes)); }),
              EndsWith("a.png: is 16384 by 16384, expected at most 16777216 pixels"));
}

}  // namespace
}  // namespace lathe::data
