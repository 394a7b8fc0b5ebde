#include "lathe/cli/study_arguments.h"

namespace lathe::cli {

void add_study_options(Flags flags, StudyArguments& arguments, bool is_study_required) {
  Flag name =
      flags.add_option("--study", arguments.study, "name of the study").environment("LATHE_STUDY");
  if (is_study_required) name.required();
  flags
      .add_option("--storage", arguments.storage,
                  "sqlite:///FILE, postgresql://USER@HOST/BASE or journal:///FILE "
                  "[sqlite:///lathe-studies.db]")
      .environment("LATHE_STORAGE");
}

}  // namespace lathe::cli
