// Start here: everything that a program needs to multiply with and solve for its own matrices on all ranks.
//
//   shardmat::Communicator ranks(MPI_COMM_WORLD);                     // its duplicate; or alone(), without MPI
//   shardmat::Context context(ranks, shardmat::BackendChoice::automatic);
//   shardmat::DistributedMatrix a(shardmat::take_rows(my_rows, context), context, {});
//   auto product = a.product(4);                                      // four right-hand sides; make as many as you like
//   shardmat::DistributedVector x(a, shardmat::VectorLayout::columns, a.type(), 4), y(a, …rows, a.type(), 4);
//   x.set_own(my_values, context.stream());
//   product->multiply(1, x.view(), 0, y.view(), context.stream());    // in stream order; product->wait(stream) waits
//
// Collective: constructors and the functions that say so. All ranks call them in the same order, one thread of each rank. If
// an error can be foreseen, all ranks throw the same one (AgreedError), and everything stays usable. Its setting() names the
// field of the options that caused it, such as "kernel". Destructors are not collective. The one exception: a Context on
// several GPUs ends NCCL. After Error(rank_lost) the communicator is broken; end the program with MpiSession::leave().
// Ownership: a Context outlives its matrices and vectors, a matrix outlives its products. Views (Dense) own nothing.
// Row maps: a vector fits every matrix on its row map, and others refuse it (runtime/maps/row_map.h, MatrixOptions::y_rows).
// Threads: one thread at a time uses a context with its matrices; it may be another thread each time. Two threads may work
// at once with two contexts on two communicators, if MPI has MPI_THREAD_MULTIPLE. A call works on the device and with the
// host threads of its context. Afterwards OpenMP's settings and, if the process uses that device, the current device are as
// before.
// More ranks than GPUs: the C interface (shardmat.h), which lets ranks share a GPU.
#pragma once

#include "comm/communicator.h"                  // the ranks, deadlines, agreement on errors
#include "comm/mpi_session.h"                   // the start and end of MPI
#include "kernels/base/dense.h"                 // views of memory
#include "kernels/base/error.h"                 // kinds of errors
#include "runtime/context/context.h"            // the ranks, this rank's device and stream
#include "runtime/maps/row_map.h"               // which rows of a vector lie where
#include "runtime/matrix/distributed_matrix.h"  // the matrix that stays, from a file or generator or the rows below
#include "runtime/matrix/distributed_vector.h"  // vectors on a row map; dot, norm, axpy, xpay, scale
#include "runtime/matrix/own_rows.h"            // rows or triplets of the program
#include "runtime/matrix/product.h"             // Y = alpha·A·X + beta·Y, and with Aᵀ, of the same rows
#include "runtime/solvers/eigen/eigenpairs.h"   // eigenvalues of a matrix, and of K·x = λ·M·x
#include "runtime/solvers/eigen/pagerank.h"     // scores of a graph's vertices by random walks
#include "runtime/solvers/least_squares.h"      // the x of the least b - A x, of any shape
#include "runtime/solvers/solver.h"             // A·X = B by Krylov methods
#include "runtime/source/matrix_source.h"       // opening a matrix file
