# SPDX-License-Identifier: MIT
"""Index arrays: nl.arange, nl.mgrid and arithmetic on them.

An index is an affine expression of iteration variables, each of which belongs to
one axis of the result: t[i, 4 * j + k] is a view whose strides come from the
coefficients, so that no index is ever computed on the chip.
"""


class Var:
    """An iteration variable: 0 to size - 1."""

    def __init__(self, size):
        self.size = size


class Index:
    """const + sum of coefficient * variable.

    axes: for each axis of the array, its variable or None (broadcast).
    """

    def __init__(self, axes, terms, const=0):
        self.axes, self.terms, self.const = tuple(axes), terms, const

    def replace(self, new):
        """The same with other variables."""
        return Index([new.get(v, v) if v else None for v in self.axes],
                     {new.get(v, v): c for v, c in self.terms.items()}, self.const)

    @property
    def shape(self):
        return tuple(v.size if v else 1 for v in self.axes)

    def __getitem__(self, key):
        key = key if isinstance(key, tuple) else (key,)
        axes, left = [], list(self.axes)
        for k in key:
            if k is None:
                axes.append(None)
            elif isinstance(k, slice) and k == slice(None) and left:
                axes.append(left.pop(0))
            else:
                raise IndexError('an index array takes : and None, not %r' % (k,))
        return Index(axes + left, self.terms, self.const)

    def _join(self, other, sign):
        if isinstance(other, int):
            return Index(self.axes, self.terms, self.const + sign * other)
        if not isinstance(other, Index):
            return NotImplemented
        n = max(len(self.axes), len(other.axes))
        a = (None,) * (n - len(self.axes)) + self.axes
        b = (None,) * (n - len(other.axes)) + other.axes
        axes = []
        for x, y in zip(a, b):
            if x and y and x is not y:
                raise IndexError('two index arrays use the same axis')
            axes.append(x or y)
        terms = dict(self.terms)
        for v, c in other.terms.items():
            terms[v] = terms.get(v, 0) + sign * c
        return Index(axes, terms, self.const + sign * other.const)

    def __add__(self, other):
        return self._join(other, 1)

    def __sub__(self, other):
        return self._join(other, -1)

    def __neg__(self):
        return self * -1

    def __radd__(self, other):
        return self._join(other, 1)

    def __rsub__(self, other):
        return (self * -1)._join(other, 1)

    def __mul__(self, factor):
        if not isinstance(factor, int):
            return NotImplemented
        return Index(self.axes, {v: c * factor for v, c in self.terms.items()}, self.const * factor)

    __rmul__ = __mul__

    def _compare(self, other, sign, strict):
        """sign * (self - other) + strict <= 0"""
        if isinstance(other, Index):
            return Mask([((self - other) * sign, -strict)])
        return Mask([(self * sign, sign * other - strict)])

    def __lt__(self, other):
        return self._compare(other, 1, 1)

    def __le__(self, other):
        return self._compare(other, 1, 0)

    def __gt__(self, other):
        return self._compare(other, -1, 1)

    def __ge__(self, other):
        return self._compare(other, -1, 0)

    def __eq__(self, other):
        return Mask([(self - other, 0)], exact=True)

    __hash__ = object.__hash__


class Mask:
    """Conditions index <= bound (exact: ==), all of which hold."""

    def __init__(self, conditions, exact=False):
        self.conditions, self.exact = conditions, exact

    def __and__(self, other):
        return Mask(self.conditions + other.conditions)

    def limits(self):
        """Largest number of values by variable; the other variables must not matter."""
        out = {}
        for index, bound in self.conditions:
            terms = {v: c for v, c in index.terms.items() if c}
            if not terms:
                if index.const > bound:
                    return None
                continue
            # A condition that always holds limits nothing.
            most = index.const + sum(max(c, 0) * (v.size - 1) for v, c in terms.items())
            if most <= bound:
                continue
            if len(terms) != 1 or min(terms.values()) < 0:
                raise NotImplementedError('a mask must be one index below a bound')
            (v, c), = terms.items()
            out[v] = min(out.get(v, v.size), max(0, (bound - index.const) // c + 1))
        return out


def arange(start, stop=None, step=1):
    if stop is None:
        start, stop = 0, start
    v = Var(max(0, (stop - start + step - 1) // step))
    return Index((v,), {v: step}, start)


class Grid(tuple):
    """Index arrays of nl.mgrid; .p is the partition's, .x, .y, .z and .w the free ones."""

    p = property(lambda self: self[0])
    x = property(lambda self: self[1])
    y = property(lambda self: self[2])
    z = property(lambda self: self[3])
    w = property(lambda self: self[4])


class _MGrid:
    def __getitem__(self, key):
        key = key if isinstance(key, tuple) else (key,)
        out = []
        for axis, s in enumerate(key):
            i = arange(s.start or 0, s.stop, s.step or 1)
            axes = [None] * len(key)
            axes[axis] = i.axes[0]
            out.append(Index(axes, i.terms, i.const))
        return Grid(out)


mgrid = _MGrid()
