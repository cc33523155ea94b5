// Memory, CPU time and descriptors of this process, under the names that Prometheus clients use.
#pragma once

#include "tools/serve/observe/prometheus.h"

namespace shardmat::serve {

void write_process_figures(PrometheusText& text);

}  // namespace shardmat::serve
