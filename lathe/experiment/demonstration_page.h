#pragma once

#include <string>
#include <vector>

#include "lathe/core/passes/profile.h"
#include "lathe/engine/plan_report.h"
#include "lathe/io/model.h"
#include "lathe/report/html_page.h"
#include "lathe/train/evaluation.h"

/// The sections of a demonstration's page.
namespace lathe::experiment {

void add_model_section(report::HtmlPage& page, const io::Model& model, const Profile& cost);
void add_graph_section(report::HtmlPage& page, const Graph& graph, const std::string& svg);

/// What training a fresh model brought.
struct TrainingStory {
  double before = 0, after = 0;  ///< accuracy
  std::int64_t tested = 0;       ///< examples it is of
  std::int64_t examples = 0, epochs = 0, tokens = 0;
  double seconds = 0;
  std::vector<double> losses;  ///< of each step
};
void add_training_section(report::HtmlPage& page, const TrainingStory& story);

void add_speed_section(report::HtmlPage& page, const train::Evaluation& result,
                       const engine::PlanReport& plan, bool is_fresh);

}  // namespace lathe::experiment
