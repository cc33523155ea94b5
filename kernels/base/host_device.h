// Marks functions that host and device code share; nothing where no CUDA compiler reads them.
#pragma once

#ifdef __CUDACC__
#define SHARDMAT_HOST_DEVICE __host__ __device__
#else
#define SHARDMAT_HOST_DEVICE
#endif
