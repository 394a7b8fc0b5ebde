#include "lathe/report/html_page.h"

#include <fmt/format.h>

#include "lathe/core/error.h"
#include "lathe/report/markup.h"

namespace lathe::report {
namespace {

// Pictures stand on white paper in both modes: their colours are chosen for it.
constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --ink: #1f2328; --soft: #5c6670; --paper: #ffffff;
  --panel: #f5f6f8; --line: #d9dde2; --accent: #0b6bb5; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7ea; --soft: #a0a8b0; --paper: #16191d;
  --panel: #1f242a; --line: #39414a; --accent: #69b3ee; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 2rem 1.25rem 4rem; background: var(--paper);
  color: var(--ink); font: 16px/1.55 system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 1rem; overflow-wrap: anywhere; }
h2 { font-size: 1.3rem; margin: 2.5rem 0 .75rem; padding-bottom: .3rem;
  border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
p { margin: .6rem 0; max-width: 46rem; overflow-wrap: anywhere; }
a { color: var(--accent); }
nav ol { margin: 0; padding-left: 1.4rem; color: var(--soft); }
.figures { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1rem 0; padding: 0; }
.figures div { background: var(--panel); border: 1px solid var(--line); border-radius: .5rem;
  padding: .6rem 1rem; min-width: 8rem; }
.figures dt { color: var(--soft); font-size: .85rem; }
.figures dd { margin: 0; font-size: 1.5rem; font-weight: 600; font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: .92rem; font-variant-numeric: tabular-nums; }
caption, figcaption { color: var(--soft); font-size: .88rem; text-align: left; padding: .3rem 0; }
th, td { padding: .35rem .8rem; border-bottom: 1px solid var(--line); text-align: left;
  overflow-wrap: break-word; }
th { background: var(--panel); font-weight: 600; }
.number { text-align: right; white-space: nowrap; }
.long { min-width: 24rem; }
figure { margin: 1rem 0; }
.picture { background: #ffffff; border: 1px solid var(--line); border-radius: .5rem;
  padding: .5rem; overflow: auto; }
.picture svg { display: block; max-width: 100%; height: auto; margin: 0 auto; }
.large .picture { max-height: 80vh; resize: vertical; }
.large input { margin: 0 .3rem 0 0; }
.large label { margin-right: 1.2rem; font-size: .88rem; color: var(--soft); cursor: pointer; }
.large input:nth-of-type(2):checked ~ .picture svg { max-width: none; margin: 0; }
.large input:nth-of-type(3):checked ~ .picture svg { max-height: 76vh; width: auto; }
pre { background: var(--panel); border: 1px solid var(--line); border-radius: .5rem;
  padding: .8rem 1rem; overflow: auto; max-height: 32rem; font-size: .85rem; line-height: 1.4;
  font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
details { margin: 1rem 0; }
summary { cursor: pointer; color: var(--accent); }
@media (max-width: 700px) { body { padding: 1rem .75rem 3rem; } h1 { font-size: 1.5rem; }
  table { font-size: .8rem; } th, td { padding: .3rem .4rem; }
  th { overflow-wrap: normal; hyphens: auto; }
  .picture svg { min-width: 34rem; } .large .picture svg { min-width: 0; } }
@media print { body { max-width: none; } .large .picture { max-height: none; } }
)";

// The element itself: what stands before it (XML declaration, doctype, comments) is for files.
std::string_view svg_element(std::string_view svg) {
  const std::size_t start = svg.find("<svg");
  check(start != std::string_view::npos, "an <svg> element in an SVG document");
  return svg.substr(start);
}

std::string caption_element(std::string_view caption) {
  return caption.empty() ? ""
                         : fmt::format("<figcaption>{}</figcaption>\n", escape_markup(caption));
}

}  // namespace

HtmlPage::HtmlPage(std::string_view title) : title_(escape_markup(title)) {}

HtmlPage& HtmlPage::section(std::string_view heading) {
  sections_.push_back(escape_markup(heading));
  body_ += fmt::format("<h2 id=\"section-{}\">{}</h2>\n", sections_.size(), sections_.back());
  return *this;
}

HtmlPage& HtmlPage::paragraph(std::string_view text) {
  body_ += fmt::format("<p>{}</p>\n", escape_markup(text));
  return *this;
}

HtmlPage& HtmlPage::figures(const std::vector<std::pair<std::string, std::string>>& figures) {
  body_ += "<dl class=\"figures\">\n";
  for (const auto& [name, value] : figures)
    body_ += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", escape_markup(name),
                         escape_markup(value));
  body_ += "</dl>\n";
  return *this;
}

HtmlPage& HtmlPage::table(const Table& table, std::string_view caption) {
  std::string html = table.to_html();
  if (!caption.empty())
    html.insert(html.find('>') + 1, fmt::format("\n<caption>{}</caption>", escape_markup(caption)));
  body_ += "<div class=\"scroll\">\n" + html + "</div>\n";
  return *this;
}

HtmlPage& HtmlPage::svg(std::string_view svg, std::string_view caption) {
  body_ += fmt::format("<figure>\n<div class=\"picture\">\n{}</div>\n{}</figure>\n",
                       svg_element(svg), caption_element(caption));
  return *this;
}

HtmlPage& HtmlPage::large_svg(std::string_view svg, std::string_view caption) {
  const int id = ++num_large_;
  body_ += "<figure class=\"large\">\n";
  constexpr std::string_view kSizes[] = {"fit the width", "full size", "see it whole"};
  for (int i = 0; i < 3; ++i)
    body_ += fmt::format(
        "<input type=\"radio\" name=\"size-{0}\" id=\"size-{0}-{1}\"{2}>"
        "<label for=\"size-{0}-{1}\">{3}</label>\n",
        id, i, i == 0 ? " checked" : "", kSizes[i]);
  body_ += fmt::format("<div class=\"picture\">\n{}</div>\n{}</figure>\n", svg_element(svg),
                       caption_element(caption));
  return *this;
}

HtmlPage& HtmlPage::preformatted(std::string_view text) {
  body_ += fmt::format("<pre>{}</pre>\n", escape_markup(text));
  return *this;
}

HtmlPage& HtmlPage::details(std::string_view summary, std::string_view text) {
  body_ += fmt::format("<details><summary>{}</summary>\n<pre>{}</pre>\n</details>\n",
                       escape_markup(summary), escape_markup(text));
  return *this;
}

HtmlPage& HtmlPage::details(std::string_view summary, const Table& table) {
  body_ +=
      fmt::format("<details><summary>{}</summary>\n<div class=\"scroll\">\n{}</div>\n</details>\n",
                  escape_markup(summary), table.to_html());
  return *this;
}

std::string HtmlPage::str() const {
  std::string contents;
  if (sections_.size() > 2) {
    contents = "<nav><ol>\n";
    for (std::size_t i = 0; i < sections_.size(); ++i)
      contents += fmt::format("<li><a href=\"#section-{}\">{}</a></li>\n", i + 1, sections_[i]);
    contents += "</ol></nav>\n";
  }
  // The policy keeps the promise even if a picture should try to load something.
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" "
      "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
      "<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n<h1>{0}</h1>\n{2}{3}</body>\n"
      "</html>\n",
      title_, kStyle, contents, body_);
}

}  // namespace lathe::report
