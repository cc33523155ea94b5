// The norm of a residual.
//
// Threads: a value; any thread.
#pragma once

namespace shardmat::krylov {

/// unpreconditioned: ‖r‖; preconditioned: ‖M·r‖; natural: √(rᵀM·r).
enum class Norm { unpreconditioned, preconditioned, natural };

}  // namespace shardmat::krylov
