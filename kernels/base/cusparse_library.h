// cuSPARSE, loaded when it is first used. To call another of its functions, add the name to the list.
#pragma once

#include <cusparse.h>

#if CUSPARSE_VERSION >= 12603
#define SHARDMAT_CUSPARSE_BLOCKS(call) call(CreateBsr)
#else
#define SHARDMAT_CUSPARSE_BLOCKS(call) call(CreateMatDescr) call(DestroyMatDescr) call(Dbsrmv) call(Sbsrmv)
#endif
#if CUSPARSE_VERSION >= 12400
#define SHARDMAT_CUSPARSE_PREPARED(call) call(SpMV_preprocess)
#else
#define SHARDMAT_CUSPARSE_PREPARED(call)
#endif
#define SHARDMAT_CUSPARSE_CALLS(call)                                                                                     \
  call(Create) call(Destroy) call(GetErrorString) call(GetProperty) call(SetStream) call(CreateCsr) call(CreateSlicedEll) \
      call(DestroySpMat) call(SpMatSetAttribute) call(CsrSetStridedBatch) call(CreateDnMat) call(DestroyDnMat)            \
          call(DnMatSetStridedBatch) call(CreateDnVec) call(DestroyDnVec) call(DnVecSetValues) call(SpMV)                 \
              call(SpMV_bufferSize) call(SpMM) call(SpMM_bufferSize) call(SpMM_preprocess) call(SpSV_createDescr)         \
                  call(SpSV_destroyDescr) call(SpSV_bufferSize) call(SpSV_analysis) call(SpSV_solve)                      \
                      SHARDMAT_CUSPARSE_BLOCKS(call) SHARDMAT_CUSPARSE_PREPARED(call)

namespace shardmat::cuda {

/// cusparseCreate() is called as cusparse().Create().
struct CusparseCalls {
  CusparseCalls();
#define SHARDMAT_CUSPARSE_CALL(name) decltype(&::cusparse##name) name = nullptr;
  SHARDMAT_CUSPARSE_CALLS(SHARDMAT_CUSPARSE_CALL)
#undef SHARDMAT_CUSPARSE_CALL
};

/// Loads the library at the first call. Throws Error(resources) if it or a function is missing. Any thread may call it.
const CusparseCalls& cusparse();

}  // namespace shardmat::cuda
