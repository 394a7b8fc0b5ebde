#include "lathe/data/training_files.h"

namespace lathe::data {

std::string json_text(const OrderedJson& json) {
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

OrderedJson vocabulary_json(const std::vector<std::string>& tokens) {
  OrderedJson vocabulary = OrderedJson::object();
  for (std::size_t id = 0; id < tokens.size(); ++id) vocabulary[tokens[id]] = id;
  return vocabulary;
}

OrderedJson added_tokens_json(const std::vector<std::string>& special) {
  OrderedJson added = OrderedJson::array();
  for (std::size_t id = 0; id < special.size(); ++id)
    added.push_back({{"id", id},
                     {"content", special[id]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  return added;
}

}  // namespace lathe::data
