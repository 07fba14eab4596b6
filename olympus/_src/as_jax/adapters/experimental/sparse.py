"""`jax.experimental.sparse`: NumPyro's CAR distribution names BCOO at import."""

from ...stand_ins import planned

__all__ = []

__getattr__ = planned(
    __name__, "sparse arrays",
    "BCOO BCSR COO CSC CSR JAXSparse SparseInfo SparseTracer ad api bcoo bcoo_dot_general "
    "bcoo_fromdense bcoo_todense bcsr csr_matmat csr_matvec csr_todense coo_todense empty eye grad "
    "jacfwd jacobian jacrev linalg random_bcoo sparsify sparsify_raw todense value_and_grad")
