#include "lathe/cli/study_arguments.h"
#include "lathe/cli/study_charts.h"
#include "lathe/cli/trial_text.h"
#include "lathe/io/atomic_file.h"
#include "lathe/report/render.h"
#include "lathe/report/study_charts/study_charts.h"
#include "lathe/study/objective_names.h"

namespace lathe::cli::study_plot_command {
namespace {

struct Arguments {
  StudyArguments study;
  std::string kind;
  std::string out;
  std::vector<std::string> parameters;
  std::string objective = "0";
};

// Which objective is meant, by its name or its place.
std::size_t find_objective(const StoredStudy& study, const std::string& text) {
  const std::vector<std::string> labels = study::objective_labels(study.record);
  for (std::size_t i = 0; i < labels.size(); ++i)
    if (labels[i] == text || fmt::format("{}", i) == text) return i;
  if (text.find_first_not_of("0123456789") != std::string::npos)
    throw unknown_name("--objective", text, labels);
  fail("--objective {}: the study has {}", text,
       labels.size() == 1 ? "one, 0" : fmt::format("0 to {}", labels.size() - 1));
}

const report::StudyChart& find_kind(const std::string& name) {
  std::vector<std::string> known;
  for (const report::StudyChart& kind : report::study_charts()) {
    if (kind.name == name) return kind;
    known.push_back(kind.name);
  }
  throw unknown_name("--kind", name, known);
}

int plot(const Arguments& arguments, const Settings& settings) {
  const bool is_page = arguments.out.ends_with(".html");
  if (!is_page && !arguments.out.ends_with(".svg") && !arguments.out.ends_with(".png"))
    fail("--out {}: expected a name that ends in .svg, .png or .html", arguments.out);
  if (is_page && !arguments.kind.empty())
    fail("--kind {}: a page has every kind; leave it out, or write to .svg", arguments.kind);
  const report::StudyChart* kind =
      is_page ? nullptr : &find_kind(arguments.kind.empty() ? "history" : arguments.kind);
  const StoredStudy study = read_study(arguments.study);
  const report::StudyData data =
      chart_data(study, find_objective(study, arguments.objective), arguments.parameters);
  if (is_page) {
    io::write_atomically(arguments.out, report::study_page(page_data(study, data)));
  } else {
    if (const std::string missing = kind->missing(data); !missing.empty())
      fail("study \"{}\": nothing to draw as {}: {}", study.record.name, kind->name, missing);
    const std::string svg = kind->draw(data);
    io::write_atomically(arguments.out,
                         arguments.out.ends_with(".png") ? report::svg_to_png(svg) : svg);
  }
  if (settings.json)
    print_json({{"out", arguments.out}, {"trials", data.rows.size()}});
  else
    fmt::print("wrote {}\n", arguments.out);
  return 0;
}

std::function<int(const Settings&)> setup(Flags flags) {
  auto arguments = std::make_shared<Arguments>();
  add_study_options(flags, arguments->study);
  flags.add_option(
      "--kind", arguments->kind,
      "history, pareto, importance, parallel, slice, contour or intermediate [history]");
  flags.add_option("--out", arguments->out, "the picture, .svg or .png, or all of them as .html")
      .required();
  flags
      .add_option("--params", arguments->parameters,
                  "parameters to draw, separated by commas [the most important]")
      .separated_by(',')
      .repeatable()
      .one_word();
  flags.add_option("--objective", arguments->objective,
                   "which of several objectives, by name or number [0]");
  return [arguments](const Settings& settings) { return plot(*arguments, settings); };
}

const Register command{Command{
    .name = "study plot",
    .summary = "draw a study as SVG or PNG, or everything as one HTML page",
    .examples = "  lathe study plot --study s --out report.html\n"
                "  lathe study plot --study s --kind parallel --out parallel.svg\n"
                "  lathe study plot --study s --kind contour --params rate,layers --out c.png",
    .setup = setup,
}};

}  // namespace
}  // namespace lathe::cli::study_plot_command
