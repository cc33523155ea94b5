/* Contexts of the C interface on MPI communicators. Apart from shardmat.h, so that programs without MPI need no mpi.h. */
#ifndef SHARDMAT_MPI_H
#define SHARDMAT_MPI_H

#include <mpi.h>

#include "shardmat.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The ranks of `communicator`, of which the library uses a private duplicate. REQUIRES: the caller started MPI with
 * MPI_THREAD_SERIALIZED or more, and ends it; MPI_THREAD_FUNNELED is enough for contexts that only the thread which started
 * MPI uses. Use the MPI library that Shardmat was built with. Collective. */
int shardmat_context_create_mpi(MPI_Comm communicator, const shardmat_context_options* options, shardmat_context** context);

#ifdef __cplusplus
}
#endif

#endif
