#include "lathe/data/data_kind.h"
#include "lathe/data/reviews.h"

namespace lathe::data::built_in_reviews {
namespace {

bool is_name(std::string_view spec) {
  return spec == "reviews" || spec.starts_with("reviews:");
}

bool has_split(const std::string&, const std::string& split) {
  return is_labelled(split);
}

Dataset load(const std::string& spec, const std::string& split, const DatasetOptions&,
             const ShouldStop& should_stop) {
  return make_reviews(parse_review_options(spec), split, should_stop);
}

const Register registration{DataKind{
    .name = "reviews",
    .summary = "film reviews that are made up, with options: reviews:train=4000,test=1000,seed=1",
    .is_name = is_name,
    .has_split = has_split,
    .load = load,
}};

}  // namespace
}  // namespace lathe::data::built_in_reviews
