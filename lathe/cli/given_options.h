#pragma once

#include <set>
#include <string>

namespace CLI {
class App;
}

namespace lathe::cli {

/// The names of the options that were given, without their dashes: on the command line or in a
/// configuration file, and not left to their defaults.
std::set<std::string> given_options(const CLI::App& app);

}  // namespace lathe::cli
