#pragma once

namespace lathe {

/// Fails on a number of threads below 0, or of more than four times those that can run at once:
/// they would only wait for each other. 0 means as many as are available.
void check_threads(int num_threads);

}  // namespace lathe
