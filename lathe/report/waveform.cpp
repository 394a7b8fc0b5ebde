#include "lathe/report/waveform.h"

#include <fmt/format.h>

#include <algorithm>

#include "lathe/report/svg_elements.h"

namespace lathe::report {
namespace {

constexpr double kRow = 30, kTop = 44, kHigh = 6, kLow = 24, kPeriodWidth = 64, kRight = 20;
constexpr std::string_view kWire = "#0b6e4f", kBus = "#1f4e9c";

struct Span {
  double from, to;
  std::string text;
};

// What is shown from where to where; changes that leave the text as it is are one.
std::vector<Span> spans_of(const WaveSignal& signal, std::int64_t end, double left, double scale) {
  std::vector<Span> spans;
  for (std::size_t i = 0; i < signal.changes.size(); ++i) {
    const auto& [time, text] = signal.changes[i];
    const std::int64_t until = i + 1 < signal.changes.size() ? signal.changes[i + 1].first : end;
    if (time >= end) break;
    const double from = left + static_cast<double>(time) * scale;
    const double to = left + static_cast<double>(std::min(until, end)) * scale;
    if (!spans.empty() && spans.back().text == text)
      spans.back().to = to;
    else
      spans.push_back({.from = from, .to = to, .text = text});
  }
  return spans;
}

std::string draw_wire(const std::vector<Span>& spans, double y) {
  std::string body;
  double before = -1;
  for (const Span& span : spans) {
    const double level = y + (span.text == "0" ? kLow : kHigh);
    if (before >= 0) body += svg_line(span.from, before, span.from, level, kWire);
    body += svg_line(span.from, level, span.to, level, kWire);
    before = level;
  }
  return body;
}

std::string draw_bus(const std::vector<Span>& spans, double y) {
  std::string body;
  for (const Span& span : spans) {
    body += svg_line(span.from, y + kHigh, span.to, y + kHigh, kBus);
    body += svg_line(span.from, y + kLow, span.to, y + kLow, kBus);
    body += svg_line(span.from, y + kHigh, span.from, y + kLow, kBus);
    body += svg_rectangle(span.from, y + kHigh, span.to - span.from, kLow - kHigh, "transparent",
                          span.text);
    const std::size_t fits = label_limit(span.to - span.from - 4);
    if (fits >= 3 || span.text.size() <= fits)
      body +=
          svg_text((span.from + span.to) / 2, y + 19, "middle", label_line(span.text, fits), 11);
  }
  return body;
}

}  // namespace

std::string waveform(std::string_view title, const std::vector<WaveSignal>& signals,
                     std::int64_t end, std::int64_t period) {
  double left = 0;
  for (const WaveSignal& signal : signals) left = std::max(left, label_width(signal.name));
  left += 24;
  const double scale = kPeriodWidth / static_cast<double>(period);
  const double width = left + static_cast<double>(end) * scale + kRight;
  const double height = kTop + kRow * static_cast<double>(signals.size()) + 12;
  std::string body = svg_text(12, 20, "start", title, 14);
  for (std::int64_t time = 0; time <= end; time += period) {
    const double x = left + static_cast<double>(time) * scale;
    body += svg_line(x, kTop - 4, x, height - 8, kGrid);
    body += svg_text(x, kTop - 8, "middle", fmt::format("{}", time), 10);
  }
  double y = kTop;
  for (const WaveSignal& signal : signals) {
    body += svg_text(left - 10, y + 19, "end", signal.name, 12);
    const std::vector<Span> spans = spans_of(signal, end, left, scale);
    body += signal.is_bus ? draw_bus(spans, y) : draw_wire(spans, y);
    y += kRow;
  }
  return svg_document(static_cast<int>(width), static_cast<int>(height), title, body);
}

}  // namespace lathe::report
