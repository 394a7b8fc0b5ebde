#include <CLI/App.hpp>

#include "lathe/cli/study_arguments.h"

namespace lathe::cli {

void add_study_options(CLI::App& app, StudyArguments& arguments, bool is_study_required) {
  CLI::Option* name =
      app.add_option("--study", arguments.study, "name of the study")->envname("LATHE_STUDY");
  if (is_study_required) name->required();
  app.add_option("--storage", arguments.storage,
                 "sqlite:///FILE, postgresql://USER@HOST/BASE or journal:///FILE "
                 "[sqlite:///lathe-studies.db]")
      ->envname("LATHE_STORAGE");
}

}  // namespace lathe::cli
