#pragma once

#include "lathe/experiment/pipeline/compress.h"
#include "lathe/report/table.h"

namespace lathe::experiment {

/// What each stage left: size, bits, sparsity, accuracy, speed.
report::Table compress_table(const CompressResult& result);

/// Writes report.html to the compression's directory.
void write_compress_report(const CompressResult& result, const CompressOptions& options);

}  // namespace lathe::experiment
