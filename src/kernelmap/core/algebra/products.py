"""Matrix products of batches in which one side is shared."""

from torch import Tensor


def shared_matmul(rows: Tensor, matrix: Tensor) -> Tensor:
    """rows (..., S, k, n) @ matrix (..., 1, n, m): one product per shared matrix instead of S.

    Where nothing is shared (the last batch dimension of `matrix` is not 1, or that of `rows` is) it is plain `@`.
    Written with the few rows on the left: BLAS takes several times longer for a few columns on the right.
    """
    if rows.ndim < 3 or matrix.ndim < 3 or matrix.shape[-3] != 1 or rows.shape[-3] == 1:
        return rows @ matrix
    product = rows.flatten(-3, -2) @ matrix.squeeze(-3)
    return product.unflatten(-2, rows.shape[-3:-1])
