// What the calls behind multiply, solve, eigen and pagerank share: they take options, and fill a report step by step.
#pragma once

#include "kernels/base/timer.h"
#include "runtime/context/context.h"
#include "runtime/run/product_report.h"

namespace shardmat {

template <class Options, class Report>
class ReportedRun {
 protected:
  ReportedRun(Context& context, const Options& options)
      : context_(context), communicator_(context.communicator()), options_(options) {}

  /// Does the work and adds its time to the report.
  template <class F>
  void phase(const char* name, F&& work) {
    const Timer timer;
    work();
    report_.phases.push_back({name, over_ranks(timer.seconds(), communicator_)});
  }

  Context& context_;
  Communicator& communicator_;
  const Options& options_;
  Report report_;
};

}  // namespace shardmat
