#include "lathe/data/text_file.h"

#include <zlib.h>
#include <zstd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "lathe/core/error.h"

namespace lathe::data {
namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

// Hands the file's bytes to `take` piece by piece.
void read_pieces(const std::filesystem::path& path,
                 const std::function<void(const char*, std::size_t)>& take) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) fail("is a directory, expected a file");
  const File file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) fail("cannot be opened: {}", std::strerror(errno));
  std::vector<char> piece(1 << 17);
  while (const std::size_t count = std::fread(piece.data(), 1, piece.size(), file.get()))
    take(piece.data(), count);
  if (std::ferror(file.get())) fail("cannot be read: {}", std::strerror(errno));
}

void append(std::string& text, const char* bytes, std::size_t count, std::int64_t most_bytes) {
  if (text.size() + count > static_cast<std::size_t>(most_bytes))
    fail("holds more than {} bytes of text, the most that is read", most_bytes);
  text.append(bytes, count);
}

class ZstdReader {
 public:
  ZstdReader() : stream_(ZSTD_createDStream(), ZSTD_freeDStream) {
    check(stream_ != nullptr, "zstd to make a stream");
  }

  /// Appends what these bytes give.
  void decompress_to(std::string& text, const char* bytes, std::size_t count,
                     std::int64_t most_bytes) {
    ZSTD_inBuffer input{bytes, count, 0};
    bool full = false;
    // A full output buffer may hide more output of bytes that are already consumed.
    while (input.pos < input.size || full) {
      ZSTD_outBuffer output{piece_.data(), piece_.size(), 0};
      unfinished_ = ZSTD_decompressStream(stream_.get(), &output, &input);
      if (ZSTD_isError(unfinished_))
        fail("is not a sound zstd file: {}", ZSTD_getErrorName(unfinished_));
      append(text, piece_.data(), output.pos, most_bytes);
      full = output.pos == output.size && unfinished_ != 0;
    }
  }
  void finish() const {
    if (unfinished_ != 0) fail("is not a sound zstd file: it ends in the middle");
  }

 private:
  std::unique_ptr<ZSTD_DStream, std::size_t (*)(ZSTD_DStream*)> stream_;
  std::vector<char> piece_ = std::vector<char>(ZSTD_DStreamOutSize());
  std::size_t unfinished_ = 0;  // zstd's hint: not 0 inside a frame
};

std::string read_zstd(const std::filesystem::path& path, std::int64_t most_bytes) {
  std::string text;
  ZstdReader reader;
  read_pieces(path, [&](const char* bytes, std::size_t count) {
    reader.decompress_to(text, bytes, count, most_bytes);
  });
  reader.finish();
  return text;
}

class Inflater {
 public:
  Inflater() {
    constexpr int kGzip = 16;  // a gzip header around the stream
    check(inflateInit2(&stream_, MAX_WBITS + kGzip) == Z_OK, "zlib to make a stream");
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  /// Appends what these bytes give; several streams may follow each other.
  void inflate_to(std::string& text, const char* bytes, std::size_t count,
                  std::int64_t most_bytes) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes));
    stream_.avail_in = static_cast<uInt>(count);
    for (bool is_full = false; stream_.avail_in > 0 || is_full;) {
      if (is_at_end_) {
        if (stream_.avail_in == 0) return;
        inflateReset(&stream_);
      }
      stream_.next_out = reinterpret_cast<Bytef*>(piece_.data());
      stream_.avail_out = static_cast<uInt>(piece_.size());
      const int status = inflate(&stream_, Z_NO_FLUSH);
      if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
        fail("is not a sound gzip file: {}", stream_.msg ? stream_.msg : "damaged");
      append(text, piece_.data(), piece_.size() - stream_.avail_out, most_bytes);
      is_at_end_ = status == Z_STREAM_END;
      // A full output buffer may hide more output of bytes that are already consumed.
      is_full = stream_.avail_out == 0 && !is_at_end_;
    }
  }
  bool is_at_end() const { return is_at_end_; }

 private:
  z_stream stream_{};
  std::vector<char> piece_ = std::vector<char>(1 << 17);
  bool is_at_end_ = false;
};

std::string read_gzip(const std::filesystem::path& path, std::int64_t most_bytes) {
  std::string text;
  Inflater inflater;
  read_pieces(path, [&](const char* bytes, std::size_t count) {
    inflater.inflate_to(text, bytes, count, most_bytes);
  });
  if (!inflater.is_at_end()) fail("is not a sound gzip file: it ends in the middle");
  return text;
}

}  // namespace

std::string read_text_file(const std::filesystem::path& path, std::int64_t most_bytes) {
  return with_place(path.string(), [&] {
    if (path.extension() == ".zst") return read_zstd(path, most_bytes);
    if (path.extension() == ".gz") return read_gzip(path, most_bytes);
    std::string text;
    read_pieces(path, [&](const char* bytes, std::size_t count) {
      append(text, bytes, count, most_bytes);
    });
    return text;
  });
}

std::string compressed_text(std::string_view text) {
  std::string bytes(ZSTD_compressBound(text.size()), '\0');
  const std::size_t size =
      ZSTD_compress(bytes.data(), bytes.size(), text.data(), text.size(), ZSTD_maxCLevel());
  check(ZSTD_isError(size) == 0, "zstd to compress a text");
  bytes.resize(size);
  return bytes;
}

std::string decompressed_text(std::string_view bytes, std::int64_t most_bytes) {
  std::string text;
  ZstdReader reader;
  reader.decompress_to(text, bytes.data(), bytes.size(), most_bytes);
  reader.finish();
  return text;
}

std::optional<std::filesystem::path> find_file(const std::filesystem::path& directory,
                                               const std::string& name) {
  std::error_code error;
  for (const char* const suffix : {"", ".zst", ".gz"})
    if (const auto file = directory / (name + suffix); std::filesystem::exists(file, error))
      return file;
  return std::nullopt;
}

}  // namespace lathe::data
