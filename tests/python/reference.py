# SPDX-License-Identifier: MIT
"""References in plain Python floats (fp64), from the formulas."""
import math
import random

import nki


def numbers(n, lo=-1.0, hi=1.0, seed=0):
    r = random.Random(seed)
    return [lo + (hi - lo) * r.random() for _ in range(n)]


def matrix(rows, columns, lo=-1.0, hi=1.0, seed=0, dtype='float32'):
    """(nki.Array, rows of what it holds)"""
    flat = numbers(rows * columns, lo, hi, seed)
    a = nki.array([flat[i * columns:(i + 1) * columns] for i in range(rows)], dtype)
    return a, a.tolist()


def product(lhs_t, rhs, m, n):
    """One element of lhs_t^T rhs."""
    return sum(row_l[m] * row_r[n] for row_l, row_r in zip(lhs_t, rhs))


def softmax(row):
    high = max(row)
    e = [math.exp(x - high) for x in row]
    total = sum(e)
    return [x / total for x in e]


def worst(got, want, rtol, atol):
    """Largest difference as a multiple of the tolerance."""
    most = 0.0
    for g, w in zip(got, want, strict=True):
        d = abs(g - w) / (rtol * abs(w) + atol)
        if not d <= most:
            most = d if d == d else math.inf
    return most


def flat(values):
    if isinstance(values, list):
        return [x for v in values for x in flat(v)]
    return [values]
