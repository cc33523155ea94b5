// Makes the calling thread work for a context. Every public function that has a context opens a scope.
//
// Threads: any thread; a scope belongs to the thread that made it.
#pragma once

#include "kernels/base/device.h"
#include "kernels/base/isa.h"
#include "kernels/base/parallel.h"
#include "runtime/context/context.h"

namespace shardmat {

/// While in scope the calling thread works for a context: on its device, with its number of host threads and the instruction
/// set of its ranks. Afterwards those of the caller are as before.
class ContextScope {
 public:
  explicit ContextScope(const Context& context)
      : threads_(context.threads()), isa_(context.placement().isa), device_(context.device()) {}

 private:
  ThreadCount threads_;
  IsaScope isa_;
  DeviceGuard device_;
};

}  // namespace shardmat
