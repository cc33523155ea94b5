// The matrix types seqaijshardmat and mpiaijshardmat, together -mat_type shardmat: AIJ matrices whose products Shardmat
// makes. Everything else is AIJ's: assembly, factors, submatrices, transposes, and what PETSc's preconditioners read. The
// name of a type begins with that of its AIJ type, because this is how PETSc tests for AIJ.
#include <petsc/private/matimpl.h>

#include <cstdio>

#include "runtime/petsc/aij_copy.h"

namespace shardmat::petsc {
namespace {

/// One type and the AIJ type that it adds to.
struct Kind {
  const char *name, *base, *dense;
  // Of the base; known once the first matrix was made.
  struct _MatOps ops;
  PetscErrorCode (*retrieve_values)(Mat);
};
Kind kinds[] = {{kSequentialType, MATSEQAIJ, MATSEQDENSE, {}, nullptr},
                {kParallelType, MATMPIAIJ, MATMPIDENSE, {}, nullptr}};
template <int parallel>
Kind& kind() {
  return kinds[parallel];
}

constexpr const char* kRetrieve = "MatRetrieveValues_C";

struct Name {
  char text[128];
};
template <class... Parts>
Name name(const char* format, Parts... parts) {
  Name made;
  std::snprintf(made.text, sizeof made.text, format, parts...);
  return made;
}
Name converter(const char* from, const char* to) { return name("MatConvert_%s_%s_C", from, to); }
Name product_chooser(const char* a, const char* b) { return name("MatProductSetFromOptions_%s_%s_C", a, b); }

/// y = A·x + beta·y where PETSc has to do it, which -info and -mat_view ::ascii_info tell.
PetscErrorCode note_aij(Mat a) {
  AijCopy* record = nullptr;
  PetscFunctionBegin;
  PetscCall(record_of(a, &record));
  if (record->by_aij++ == 0)
    PetscCall(PetscInfo(
        a, "Shardmat: PETSc multiplies this matrix: it is empty, or its columns are distributed unlike its rows\n"));
  PetscFunctionReturn(kDone);
}

template <int parallel>
PetscErrorCode mult(Mat a, Vec x, Vec y) {
  bool takes = false;
  AijCopy* copy = nullptr;
  PetscFunctionBegin;
  PetscCall(takes_distribution(a, &takes));
  if (takes) {
    PetscCall(updated_copy(a, false, &copy));
    PetscCall(multiply(*copy, x, 0, y));
  } else {
    PetscCall(note_aij(a));
    PetscCall(kind<parallel>().ops.mult(a, x, y));
  }
  PetscFunctionReturn(kDone);
}

/// z = y + A·x. z may be y; PETSc refuses z that is x.
template <int parallel>
PetscErrorCode mult_add(Mat a, Vec x, Vec y, Vec z) {
  bool takes = false;
  AijCopy* copy = nullptr;
  PetscFunctionBegin;
  PetscCall(takes_distribution(a, &takes));
  if (takes) {
    PetscCall(updated_copy(a, false, &copy));
    if (y != z) PetscCall(VecCopy(y, z));
    PetscCall(multiply(*copy, x, 1, z));
  } else {
    PetscCall(note_aij(a));
    PetscCall(kind<parallel>().ops.multadd(a, x, y, z));
  }
  PetscFunctionReturn(kDone);
}

PetscErrorCode multiply_to_dense(Mat c) {
  AijCopy* copy = nullptr;
  PetscFunctionBegin;
  PetscCall(updated_copy(c->product->A, false, &copy));
  PetscCall(multiply_dense(*copy, c->product->B, c));
  PetscCall(MatAssemblyBegin(c, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(c, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(kDone);
}

PetscErrorCode prepare_dense(Mat c) {
  const Mat a = c->product->A, b = c->product->B;
  PetscBool dense = PETSC_FALSE;
  PetscFunctionBegin;
  PetscCall(MatSetSizes(c, a->rmap->n, b->cmap->n, a->rmap->N, b->cmap->N));
  PetscCall(PetscObjectTypeCompareAny(object(c), &dense, MATSEQDENSE, MATMPIDENSE, ""));
  if (!dense) PetscCall(MatSetType(c, object(b)->type_name));
  PetscCall(MatSetUp(c));
  c->ops->productnumeric = multiply_to_dense;
  PetscFunctionReturn(kDone);
}

/// Lets AIJ choose, by the names of its types.
PetscErrorCode choose_as_aij(Mat c, const char* a, const char* b) {
  PetscErrorCode (*of_aij)(Mat) = nullptr;
  const Name chooser = product_chooser(a, b);
  PetscFunctionBegin;
  PetscCall(PetscObjectQueryFunction(object(c->product->A), chooser.text, &of_aij));
  if (of_aij == nullptr) PetscCall(PetscObjectQueryFunction(object(c->product->B), chooser.text, &of_aij));
  if (of_aij != nullptr) PetscCall(of_aij(c));
  PetscFunctionReturn(kDone);
}

/// Products of a matrix of ours with a dense one: A·B here, others (Aᵀ·B …) as AIJ.
template <int parallel>
PetscErrorCode choose_product(Mat c) {
  bool takes = false;
  PetscFunctionBegin;
  PetscCall(takes_distribution(c->product->A, &takes));
  if (c->product->type == MATPRODUCT_AB && takes) c->ops->productsymbolic = prepare_dense;
  else PetscCall(choose_as_aij(c, kind<parallel>().base, kind<parallel>().dense));
  PetscFunctionReturn(kDone);
}

/// Products of a dense matrix with one of ours.
template <int parallel>
PetscErrorCode choose_product_of_dense(Mat c) {
  PetscFunctionBegin;
  PetscCall(choose_as_aij(c, kind<parallel>().dense, kind<parallel>().base));
  PetscFunctionReturn(kDone);
}

/// As AIJ, which does not tell that the values changed.
template <int parallel>
PetscErrorCode retrieve_values(Mat a) {
  PetscFunctionBegin;
  PetscCall(kind<parallel>().retrieve_values(a));
  PetscCall(PetscObjectStateIncrease(object(a)));
  PetscFunctionReturn(kDone);
}

PetscErrorCode print_record(Mat a, PetscViewer viewer) {
  AijCopy* record = nullptr;
  PetscFunctionBegin;
  PetscCall(find_record(a, &record));
  if (record == nullptr) {
    PetscCall(PetscViewerASCIIPrintf(viewer, "Shardmat: not multiplied yet\n"));
    PetscFunctionReturn(kDone);
  }
  PetscCall(
      PetscViewerASCIIPrintf(viewer,
                             "Shardmat: products=%" PetscInt64_FMT ", with dense matrices=%" PetscInt64_FMT
                             ", by AIJ=%" PetscInt64_FMT ", copies=%" PetscInt64_FMT ", new values=%" PetscInt64_FMT "\n",
                             record->products, record->wide_products, record->by_aij, record->copies, record->new_values));
  if (record->product != nullptr) {
    shardmat_product_info info{};
    info.size = sizeof info;
    PetscCall(check(PetscObjectComm(object(a)), shardmat_product_get_info(record->product, &info)));
    PetscCall(PetscViewerASCIIPrintf(viewer, "Shardmat: kernel=%s, exchange=%s\n", info.kernel, info.exchange));
  }
  PetscFunctionReturn(kDone);
}

template <int parallel>
PetscErrorCode view(Mat a, PetscViewer viewer) {
  PetscBool text = PETSC_FALSE;
  PetscViewerFormat format = PETSC_VIEWER_DEFAULT;
  PetscFunctionBegin;
  PetscCall(kind<parallel>().ops.view(a, viewer));
  PetscCall(PetscObjectTypeCompare(object(viewer), PETSCVIEWERASCII, &text));
  PetscCall(PetscViewerGetFormat(viewer, &format));
  if (text && (format == PETSC_VIEWER_ASCII_INFO || format == PETSC_VIEWER_ASCII_INFO_DETAIL))
    PetscCall(print_record(a, viewer));
  PetscFunctionReturn(kDone);
}

template <int parallel>
PetscErrorCode set_from_options(Mat a, PetscOptionItems* options) {
  PetscFunctionBegin;
  if (kind<parallel>().ops.setfromoptions != nullptr) PetscCall(kind<parallel>().ops.setfromoptions(a, options));
  PetscCall(read_choices(options, a));
  PetscFunctionReturn(kDone);
}

template <int parallel>
PetscErrorCode end_assembly(Mat a, MatAssemblyType type);
template <int parallel>
PetscErrorCode destroy(Mat a);
template <int parallel>
PetscErrorCode to_base(Mat a, MatType type, MatReuse reuse, Mat* made);
template <int parallel>
PetscErrorCode from_base(Mat a, MatType type, MatReuse reuse, Mat* made);

/// To any other type: PETSc finds AIJ's ways there by the name of the type.
template <int parallel>
PetscErrorCode convert(Mat a, MatType type, MatReuse reuse, Mat* made) {
  Mat b = nullptr;
  PetscFunctionBegin;
  if (reuse == MAT_INPLACE_MATRIX) {
    PetscCall(to_base<parallel>(a, kind<parallel>().base, reuse, made));
    PetscCall(MatConvert(a, type, reuse, made));
    PetscFunctionReturn(kDone);
  }
  PetscCall(to_base<parallel>(a, kind<parallel>().base, MAT_INITIAL_MATRIX, &b));
  PetscCall(MatPropagateSymmetryOptions(a, b));
  PetscCall(MatConvert(b, type, reuse, made));
  PetscCall(MatDestroy(&b));
  PetscFunctionReturn(kDone);
}

/// Puts our functions over AIJ's, or AIJ's back.
template <int parallel>
void override_functions(Mat a, bool ours) {
  const struct _MatOps& base = kind<parallel>().ops;
  a->ops->mult = ours ? mult<parallel> : base.mult;
  a->ops->multadd = ours ? mult_add<parallel> : base.multadd;
  a->ops->view = ours ? view<parallel> : base.view;
  a->ops->convert = ours ? convert<parallel> : base.convert;
  a->ops->setfromoptions = ours ? set_from_options<parallel> : base.setfromoptions;
  a->ops->assemblyend = ours ? end_assembly<parallel> : base.assemblyend;
  a->ops->destroy = ours ? destroy<parallel> : base.destroy;
}

/// Gives the matrix the functions that PETSc looks for by name, or takes them away.
template <int parallel>
PetscErrorCode compose_functions(Mat a, bool there) {
  const Kind& of = kind<parallel>();
  PetscFunctionBegin;
  PetscCall(PetscObjectComposeFunction(object(a), converter(of.name, of.base).text, there ? to_base<parallel> : nullptr));
  PetscCall(PetscObjectComposeFunction(object(a), converter(of.base, of.name).text, there ? from_base<parallel> : nullptr));
  PetscCall(
      PetscObjectComposeFunction(object(a), converter(of.base, "shardmat").text, there ? from_base<parallel> : nullptr));
  PetscCall(PetscObjectComposeFunction(object(a), product_chooser(of.name, of.dense).text,
                                       there ? choose_product<parallel> : nullptr));
  PetscCall(PetscObjectComposeFunction(object(a), product_chooser(of.dense, of.name).text,
                                       there ? choose_product_of_dense<parallel> : nullptr));
  PetscCall(PetscObjectComposeFunction(object(a), kRetrieve, there ? retrieve_values<parallel> : of.retrieve_values));
  PetscFunctionReturn(kDone);
}

/// AIJ may set functions of its own when it ends an assembly.
template <int parallel>
PetscErrorCode end_assembly(Mat a, MatAssemblyType type) {
  PetscFunctionBegin;
  PetscCall(kind<parallel>().ops.assemblyend(a, type));
  override_functions<parallel>(a, true);
  PetscFunctionReturn(kDone);
}

/// Called also by MatSetType() and MatHeaderMerge(), where the header lives on, in the latter without the name of a type.
template <int parallel>
PetscErrorCode destroy(Mat a) {
  PetscFunctionBegin;
  PetscCall(forget_copy(a));
  PetscCall(compose_functions<parallel>(a, false));
  PetscCall(kind<parallel>().ops.destroy(a));
  PetscFunctionReturn(kDone);
}

template <int parallel>
PetscErrorCode to_base(Mat a, MatType, MatReuse reuse, Mat* made) {
  PetscFunctionBegin;
  if (reuse == MAT_REUSE_MATRIX) {
    PetscCall(MatCopy(a, *made, SAME_NONZERO_PATTERN));
    PetscFunctionReturn(kDone);
  }
  if (reuse == MAT_INITIAL_MATRIX) PetscCall(MatDuplicate(a, MAT_COPY_VALUES, made));
  const Mat b = *made;
  PetscCall(forget_copy(b));
  PetscCall(compose_functions<parallel>(b, false));
  override_functions<parallel>(b, false);
  PetscCall(PetscObjectChangeTypeName(object(b), kind<parallel>().base));
  PetscFunctionReturn(kDone);
}

template <int parallel>
PetscErrorCode from_base(Mat a, MatType, MatReuse reuse, Mat* made) {
  Kind& of = kind<parallel>();
  PetscFunctionBegin;
  if (reuse == MAT_REUSE_MATRIX) {
    PetscCall(MatCopy(a, *made, SAME_NONZERO_PATTERN));
    PetscFunctionReturn(kDone);
  }
  if (reuse == MAT_INITIAL_MATRIX) PetscCall(MatDuplicate(a, MAT_COPY_VALUES, made));
  const Mat b = *made;
  if (of.ops.mult == nullptr) {
    of.ops = *b->ops;
    PetscCall(PetscObjectQueryFunction(object(b), kRetrieve, &of.retrieve_values));
  }
  override_functions<parallel>(b, true);
  PetscCall(compose_functions<parallel>(b, true));
  PetscCall(PetscObjectChangeTypeName(object(b), of.name));
  PetscFunctionReturn(kDone);
}

template <int parallel>
PetscErrorCode create(Mat a) {
  PetscFunctionBegin;
  PetscCall(MatSetType(a, kind<parallel>().base));
  PetscCall(from_base<parallel>(a, kind<parallel>().name, MAT_INPLACE_MATRIX, &a));
  PetscFunctionReturn(kDone);
}

}  // namespace

PetscErrorCode register_matrix_types() {
  PetscFunctionBegin;
  PetscCall(MatRegisterRootName("shardmat", kSequentialType, kParallelType));
  PetscCall(MatRegister(kSequentialType, create<0>));
  PetscCall(MatRegister(kParallelType, create<1>));
  PetscFunctionReturn(kDone);
}

}  // namespace shardmat::petsc
