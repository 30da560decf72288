# SPDX-License-Identifier: MIT
"""Kernels of the public NKI tutorials, written from their descriptions.

Each is run by tests/python on every chip generation, against references in
plain Python. The five matrix products are the steps of the tutorial: each loads
less than the one before.
"""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def tensor_add(a, b):
    """c = a + b, in tiles of 128 x 512."""
    c = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    rows, columns = a.shape
    for i in nl.affine_range(rows // 128):
        for j in nl.affine_range(columns // 512):
            p, f = nl.ds(i * 128, 128), nl.ds(j * 512, 512)
            x, y = nl.load(a[p, f]), nl.load(b[p, f])
            nl.store(c[p, f], nl.add(x, y))
    return c


@nki.jit
def transpose2d(x, shape):
    """Each row is a matrix of this shape, row-major; it comes out transposed."""
    rows, columns = shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.load(x)
    flipped = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=flipped.reshape_dim(1, (columns, rows)),
                     src=t.reshape_dim(1, (rows, columns)).permute((0, 2, 1)))
    nl.store(out, flipped)
    return out


@nki.jit
def average_pool2d(x, pool):
    """Mean of pool x pool windows of x[C, H, W]."""
    c, h, w = x.shape
    out = nl.ndarray((c, h // pool, w // pool), dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.load(x)
    windows = t.ap([[h * w, c], [pool * w, h // pool], [pool, w // pool], [w, pool], [1, pool]])
    total = nl.sum(windows, axis=[3, 4], dtype=nl.float32)
    mean = nl.ndarray(total.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=mean, data=total, op0=nl.multiply, operand0=1.0 / (pool * pool))
    nl.store(out, mean)
    return out


# ---- matrix multiplication, step by step: lhsT[K, M], rhs[K, N] -> [M, N] --------------------

def _store_product(result, psum, m, n):
    rows, columns = psum.shape
    out = nl.ndarray(psum.shape, dtype=result.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=out, src=psum)
    nisa.dma_copy(dst=result[m:m + rows, n:n + columns], src=out)


def _load(tensor, k, f, width):
    tile = nl.ndarray((128, width), dtype=tensor.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=tensor[k:k + 128, f:f + width])
    return tile


@nki.jit
def matmul_tiled(lhsT, rhs):
    """Every tile is loaded when it is needed."""
    K, M = lhsT.shape
    N = rhs.shape[1]
    result = nl.ndarray((M, N), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    for m in nl.affine_range(0, M, 128):
        for n in nl.affine_range(0, N, 512):
            psum = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
            for k in nl.affine_range(0, K, 128):
                nisa.nc_matmul(dst=psum, stationary=_load(lhsT, k, m, 128),
                               moving=_load(rhs, k, n, 512))
            _store_product(result, psum, m, n)
    return result


@nki.jit
def matmul_hoist_load(lhsT, rhs):
    """The rows of one m are loaded once for all n."""
    K, M = lhsT.shape
    N = rhs.shape[1]
    result = nl.ndarray((M, N), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    for m in nl.affine_range(0, M, 128):
        left = [_load(lhsT, k, m, 128) for k in range(0, K, 128)]
        for n in nl.affine_range(0, N, 512):
            right = [_load(rhs, k, n, 512) for k in range(0, K, 128)]
            psum = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
            for a, b in zip(left, right):
                nisa.nc_matmul(dst=psum, stationary=a, moving=b)
            _store_product(result, psum, m, n)
    return result


@nki.jit
def matmul_block_free_dimension(lhsT, rhs, rows=2, columns=2):
    """Blocks of several tiles: each rhs tile serves `rows` tiles of lhsT."""
    K, M = lhsT.shape
    N = rhs.shape[1]
    result = nl.ndarray((M, N), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    for m in nl.affine_range(0, M, 128 * rows):
        left = [[_load(lhsT, k, m + r * 128, 128) for k in range(0, K, 128)] for r in range(rows)]
        for n in nl.affine_range(0, N, 512 * columns):
            right = [[_load(rhs, k, n + c * 512, 512) for k in range(0, K, 128)]
                     for c in range(columns)]
            for r in range(rows):
                for c in range(columns):
                    psum = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
                    for a, b in zip(left[r], right[c]):
                        nisa.nc_matmul(dst=psum, stationary=a, moving=b)
                    _store_product(result, psum, m + r * 128, n + c * 512)
    return result


@nki.jit
def matmul_fully_optimized(lhsT, rhs, rows=8, columns=1, steps=8):
    """All dimensions in blocks, and transfers of long rows: 128 x (rows * 128) at a time."""
    K, M = lhsT.shape
    N = rhs.shape[1]
    result = nl.ndarray((M, N), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    for n in nl.affine_range(0, N, 512 * columns):
        for m in nl.affine_range(0, M, 128 * rows):
            sums = [[nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
                     for c in range(columns)] for r in range(rows)]
            for k0 in nl.affine_range(0, K, 128 * steps):
                for k in range(k0, min(K, k0 + 128 * steps), 128):
                    left = _load(lhsT, k, m, 128 * rows)
                    right = _load(rhs, k, n, 512 * columns)
                    for r in range(rows):
                        for c in range(columns):
                            nisa.nc_matmul(dst=sums[r][c],
                                           stationary=left[:, r * 128:(r + 1) * 128],
                                           moving=right[:, c * 512:(c + 1) * 512])
            for r in range(rows):
                for c in range(columns):
                    _store_product(result, sums[r][c], m + r * 128, n + c * 512)
    return result


# ---- rows ---------------------------------------------------------------------------------------

@nki.jit
def softmax(x):
    """Of each row."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(0, x.shape[0], 128):
        nl.store(out[i:i + 128], nl.softmax(nl.load(x[i:i + 128]), axis=-1))
    return out


@nki.jit
def rmsnorm(x, gamma):
    """x / sqrt(mean of squares + 1e-5) * gamma[1, D]"""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    g = nl.broadcast_to(nl.load(gamma), (128, x.shape[1]))
    for i in nl.affine_range(0, x.shape[0], 128):
        t = nl.load(x[i:i + 128])
        nl.store(out[i:i + 128], nl.rms_norm(t, g, axis=[1], n=x.shape[1], epsilon=1e-5))
    return out


@nki.jit
def layernorm(x, gamma, beta):
    """(x - mean) / sqrt(variance + 1e-5) * gamma[1, D] + beta[1, D]"""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    g = nl.broadcast_to(nl.load(gamma), (128, x.shape[1]))
    b = nl.broadcast_to(nl.load(beta), (128, x.shape[1]))
    for i in nl.affine_range(0, x.shape[0], 128):
        t = nl.load(x[i:i + 128])
        centred = t - nl.mean(t, axis=[1], keepdims=True)
        scale = nl.rsqrt(nl.mean(nl.square(centred), axis=[1], keepdims=True) + 1e-5)
        nl.store(out[i:i + 128], centred * scale * g + b)
    return out


@nki.jit
def attention(q, k, v):
    """softmax(q^T k / sqrt(d)) v for q, k [d, S] and v [S, d]; S up to 512."""
    d, S = q.shape
    out = nl.ndarray((S, d), dtype=nl.float32, buffer=nl.shared_hbm)
    tk = nl.load(k)
    tv = [nl.load(v[j:j + 128]) for j in range(0, S, 128)]
    for i in nl.affine_range(0, S, 128):
        scores = nl.ndarray((128, S), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=scores, stationary=nl.load(q[:, i:i + 128]), moving=tk)
        weights = nl.softmax(nl.multiply(scores, d ** -0.5, dtype=nl.float32), axis=-1)
        acc = nl.ndarray((128, d), dtype=nl.float32, buffer=nl.psum)
        for j in range(0, S, 128):
            turned = nl.copy(nl.transpose(weights[:, j:j + 128]), dtype=v.dtype)
            nisa.nc_matmul(dst=acc, stationary=turned, moving=tv[j // 128])
        nl.store(out[i:i + 128], acc)
    return out


@nki.jit
def fused_mamba(delta, u, A, B, C):
    """The state space model of Mamba: delta, u [channels, L]; A [channels, n]; B, C [n, L].

    h[t] = exp(delta[t] A) h[t - 1] + delta[t] u[t] B[t];  y[t] = sum of h[t] C[t] over n
    """
    channels, length = delta.shape
    out = nl.ndarray(delta.shape, dtype=delta.dtype, buffer=nl.shared_hbm)
    for c in nl.affine_range(0, channels, 128):
        td, tu, ta = nl.load(delta[c:c + 128]), nl.load(u[c:c + 128]), nl.load(A[c:c + 128])
        du = nl.multiply(td, tu)
        total = nl.zeros((128, length), dtype=nl.float32, buffer=nl.sbuf)
        for n in nl.affine_range(A.shape[1]):
            decay = nl.ndarray((128, length), dtype=nl.float32, buffer=nl.sbuf)
            nisa.activation(dst=decay, op=nl.exp, data=td, scale=ta[:, n:n + 1])
            b = nl.broadcast_to(nl.load(B[n:n + 1]), (128, length))
            h = nl.ndarray((128, length), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_tensor_scan(dst=h, data0=decay, data1=nl.multiply(du, b), initial=0.0,
                                    op0=nl.multiply, op1=nl.add)
            total += nl.multiply(h, nl.broadcast_to(nl.load(C[n:n + 1]), (128, length)))
        nl.store(out[c:c + 128], total)
    return out
