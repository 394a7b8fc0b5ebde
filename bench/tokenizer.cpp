// How fast the tokenizer is: megabytes and tokens a second on one and on two threads.
//
//   bench_tokenizer MODEL_DIRECTORY FILE.tsv[.zst] [REPEATS]
//
// FILE holds label<TAB>text lines; the texts are tokenized whole. The best of REPEATS runs counts.
// The checksum equals that of bench/tokenizer_rival.py when both made the same ids.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>

#include "lathe/core/error.h"
#include "lathe/core/thread_pool.h"
#include "lathe/data/dataset_reader.h"
#include "lathe/data/text_file.h"
#include "lathe/data/tokenized_dataset.h"

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// FNV-1a over the ids as 32-bit numbers, all texts in order.
std::uint64_t checksum(const std::vector<std::int32_t>& ids) {
  std::uint64_t hash = 0xCBF29CE484222325;
  for (const std::int32_t id : ids) hash = (hash ^ static_cast<std::uint32_t>(id)) * 0x100000001B3;
  return hash;
}

void measure(const char* model, const char* file, int repeats) {
  auto start = Clock::now();
  const auto tokenizer = lathe::data::load_tokenizer(model);
  fmt::print("load tokenizer: {:.1f} ms\n", 1000 * seconds_since(start));
  start = Clock::now();
  lathe::data::Dataset dataset;
  std::size_t num_bytes = 0;
  lathe::data::read_tsv(lathe::data::read_text_file(file), {}, true, [&](lathe::data::Row&& row) {
    num_bytes += row.text.size();
    dataset.examples.push_back({std::move(row.text), lathe::data::kNoLabel});
  });
  const double megabytes = static_cast<double>(num_bytes) / 1e6;
  fmt::print("read {} texts, {:.2f} MB: {:.3f} s\n", dataset.examples.size(), megabytes,
             seconds_since(start));

  for (const int num_threads : {1, 2}) {
    lathe::ThreadPool pool(num_threads);
    double best = std::numeric_limits<double>::max();
    lathe::data::TokenizedDataset tokenized;
    for (int i = 0; i < repeats; ++i) {
      start = Clock::now();
      tokenized =
          lathe::data::tokenize(dataset, *tokenizer, std::numeric_limits<std::int64_t>::max(),
                                lathe::data::Truncation::Head, pool);
      best = std::min(best, seconds_since(start));
    }
    fmt::print(
        "{} thread{}: {:.3f} s, {:.1f} MB/s, {:.2f} million tokens/s; {} tokens, checksum "
        "{:016x}\n",
        num_threads, num_threads == 1 ? "" : "s", best, megabytes / best,
        static_cast<double>(tokenized.ids.size()) / best / 1e6, tokenized.ids.size(),
        checksum(tokenized.ids));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: bench_tokenizer MODEL_DIRECTORY FILE.tsv[.zst] [REPEATS]\n");
    return 1;
  }
  try {
    measure(argv[1], argv[2], argc > 3 ? std::max(1, std::atoi(argv[3])) : 5);
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}
