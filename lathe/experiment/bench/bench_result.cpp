#include "lathe/experiment/bench/bench_result.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lathe/core/error.h"
#include "lathe/report/named_bars.h"

namespace lathe::experiment::bench {
namespace {

std::string duration_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.2f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.3f} ms", seconds * 1e3);
  return fmt::format("{:.3f} s", seconds);
}

std::string rate_text(double amount, const Timing& time, const char* unit) {
  return amount == 0 ? "" : fmt::format("{:.1f} {}", amount / time.median / 1e9, unit);
}

std::string share_text(double share) {
  return share == 0 ? "" : fmt::format("{:.1f} %", 100 * share);
}

double share_of(double amount, const Timing& time, double limit) {
  return limit == 0 ? 0 : amount / time.median / limit;
}

}  // namespace

Timing timing_of(std::vector<double> seconds) {
  check(!seconds.empty(), "something timed");
  std::sort(seconds.begin(), seconds.end());
  return {seconds[seconds.size() / 2], seconds.front(), seconds.back(),
          static_cast<int>(seconds.size())};
}

report::Table to_table(const Result& result) {
  const auto any = [&](auto has) {
    return std::any_of(result.rows.begin(), result.rows.end(), has);
  };
  const bool has_bytes = any([](const Measured& row) { return row.bytes > 0; });
  const bool has_flops = any([](const Measured& row) { return row.flops > 0; });
  const bool has_notes = any([](const Measured& row) { return !row.note.empty(); });
  std::vector<std::string> headers{"what", "median", "least", "most"};
  if (has_bytes) headers.insert(headers.end(), {"moved", "of bandwidth"});
  if (has_flops) headers.insert(headers.end(), {"computed", "of peak"});
  if (has_notes) headers.emplace_back("note");
  report::Table table(headers);
  for (const Measured& row : result.rows) {
    std::vector<std::string> cells{row.name, duration_text(row.time.median),
                                   duration_text(row.time.low), duration_text(row.time.high)};
    if (has_bytes) {
      cells.push_back(rate_text(row.bytes, row.time, "GB/s"));
      cells.push_back(share_text(share_of(row.bytes, row.time, result.limits.bytes_per_second)));
    }
    if (has_flops) {
      cells.push_back(rate_text(row.flops, row.time, "GFLOP/s"));
      cells.push_back(share_text(share_of(row.flops, row.time, result.limits.flops_per_second)));
    }
    if (has_notes) cells.push_back(row.note);
    table.row(std::move(cells));
  }
  return table;
}

std::string to_svg(const Result& result) {
  std::vector<std::pair<std::string, double>> bars;
  for (const Measured& row : result.rows) bars.emplace_back(row.name, row.time.median * 1e6);
  return report::named_bars(result.title, "median, microseconds", bars);
}

nlohmann::ordered_json to_json(const Result& result) {
  nlohmann::ordered_json json;
  json["bench"] = result.bench;
  json["title"] = result.title;
  json["device"] = result.device;
  if (result.limits.bytes_per_second > 0)
    json["copy_bytes_per_second"] = result.limits.bytes_per_second;
  if (result.limits.flops_per_second > 0)
    json["peak_flops_per_second"] = result.limits.flops_per_second;
  json["rows"] = nlohmann::ordered_json::array();
  for (const Measured& row : result.rows) {
    nlohmann::ordered_json line{{"name", row.name},
                                {"median_seconds", row.time.median},
                                {"least_seconds", row.time.low},
                                {"most_seconds", row.time.high},
                                {"samples", row.time.samples}};
    if (row.bytes > 0) line["bytes"] = row.bytes;
    if (row.flops > 0) line["flops"] = row.flops;
    if (!row.note.empty()) line["note"] = row.note;
    json["rows"].push_back(std::move(line));
  }
  json["notes"] = result.notes;
  return json;
}

}  // namespace lathe::experiment::bench
