// Writes what the guide's commands name into the present directory, small enough that all of them
// run in a minute: models, data, images, tensors.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "lathe/io/safetensors.h"
#include "lathe/io/testing/tiny_bert.h"

namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& text) {
  if (path.has_parent_path()) fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

// A BERT of one layer with random weights, and the words that the data has.
void write_bert(const fs::path& directory) {
  fs::create_directories(directory);
  write(directory / "config.json", std::string(lathe::io::kTinyConfig));
  std::string vocabulary;
  for (const std::string& token : lathe::io::tiny_vocabulary()) vocabulary += token + "\n";
  write(directory / "vocab.txt", vocabulary);
  lathe::io::write_safetensors(directory / "model.safetensors", lathe::io::tiny_weights());
}

// Short texts that are good where they say "fine".
void write_texts(const fs::path& directory) {
  const char* const endings[] = {"film", "plot .", "act , the film", "very film !", "the plots"};
  for (const auto& [split, count] :
       {std::pair("train", 60), std::pair("test", 20), std::pair("unsup", 20)}) {
    std::string rows = "text,label\n";
    for (int i = 0; i < count; ++i)
      rows += std::string("\"a ") + (i % 2 == 1 ? "fine " : "poor ") + endings[i / 2 % 5] + "\"," +
              (i % 2 == 1 ? "good" : "bad") + "\n";
    write(directory / (std::string(split) + ".csv"), rows);
  }
}

std::string number(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
          static_cast<char>(value >> 8), static_cast<char>(value)};
}

// Images of ten classes: a bright line, higher for each class.
void write_images(const fs::path& directory) {
  constexpr std::uint32_t kSize = 28;
  for (const auto& [split, count] : {std::pair("train", 60u), std::pair("t10k", 20u)}) {
    std::string images = number(0x803) + number(count) + number(kSize) + number(kSize);
    std::string labels = number(0x801) + number(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      labels += static_cast<char>(i % 10);
      for (std::uint32_t pixel = 0; pixel < kSize * kSize; ++pixel)
        images += static_cast<char>(pixel / kSize / 2 == i % 10 + 2 ? 250 : pixel * 7 % 40);
    }
    write(directory / (std::string(split) + "-images-idx3-ubyte"), images);
    write(directory / (std::string(split) + "-labels-idx1-ubyte"), labels);
  }
}

}  // namespace

int main() {
  for (const char* const model :
       {"DIR", "path/to/bert", "run", "large", "a", "b", "c", "d", "A", "B", "C"})
    write_bert(model);
  write_texts("D");
  std::string rows = "w,x,y,z,label\n";
  for (int i = 0; i < 8; ++i)
    rows += std::to_string(i) + ",1,-1,0.5,class" + std::to_string(i) + "\n";
  write("numbers/train.csv", rows);
  write("numbers/test.csv", rows);
  write_images("MNIST");
  write_images("mnist");
  write("texts.txt", "a fine film\na poor plot .\n");
  write("x.txt", "0.3 -1.5 100\n");
  std::string values;
  for (int i = 0; i < 64; ++i) values += (i == 0 ? "[" : ",") + std::to_string(i - 30);
  write("x.json", values + "]");
  lathe::io::write_safetensors(
      "tensors.safetensors",
      {{"input_ids", lathe::Tensor::from<std::int32_t>({1, 4}, {2, 5, 8, 3})},
       {"attention_mask", lathe::Tensor::from<std::int32_t>({1, 4}, {1, 1, 1, 1})}});
  lathe::io::write_safetensors(
      "x.safetensors", {{"x", lathe::Tensor::from<float>({2, 4}, {1, -1, 0.5, 2, 0, 3, -2, 1})}});
  write("train.sh", "#!/bin/sh\necho 0.5\n");
  fs::permissions("train.sh", fs::perms::owner_all);
}
