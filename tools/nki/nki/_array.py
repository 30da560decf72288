# SPDX-License-Identifier: MIT
"""Arrays without NumPy: bytes with a shape and a type."""
from . import _dtypes


def _flatten(values, out):
    if isinstance(values, (list, tuple)):
        for v in values:
            _flatten(v, out)
    else:
        out.append(values)
    return out


def _shape(values):
    shape = []
    while isinstance(values, (list, tuple)):
        shape.append(len(values))
        values = values[0] if values else 0
    return tuple(shape)


class Array:
    """shape, dtype (a name) and data (bytes, row-major)."""

    def __init__(self, data, dtype, shape):
        self.data, self.dtype, self.shape = bytes(data), _dtypes.name_of(dtype), tuple(shape)
        n = _dtypes.size(self.dtype)
        for s in self.shape:
            n *= s
        if n != len(self.data):
            raise ValueError('%d bytes for %s %s, which has %d' % (len(self.data), self.dtype,
                                                                  list(self.shape), n))

    def flat(self):
        """A flat list of the numbers."""
        return _dtypes.decode(self.dtype, self.data)

    def tolist(self):
        def nest(values, shape):
            if len(shape) <= 1:
                return values
            n = len(values) // shape[0] if shape[0] else 0
            return [nest(values[i * n:(i + 1) * n], shape[1:]) for i in range(shape[0])]
        values = self.flat()
        return nest(values, self.shape) if self.shape else values[0]

    def numpy(self):
        """As NumPy array; bfloat16 and 8-bit floats as float32."""
        if _dtypes.numpy is None:
            raise ImportError('NumPy cannot be imported here')
        return _dtypes.to_numpy(self.data, self.dtype, self.shape)

    def __array__(self, dtype=None):
        a = self.numpy()
        return a if dtype is None else a.astype(dtype)

    def __len__(self):
        return self.shape[0]

    def __repr__(self):
        return 'nki.Array(%s, %s)' % (self.dtype, list(self.shape))


def array(values, dtype='float32'):
    """An Array from nested lists of numbers, or from anything with a NumPy array's interface."""
    if isinstance(values, Array):
        return values
    if hasattr(values, 'dtype') and hasattr(values, 'ravel'):
        data, name = _dtypes.from_numpy(values, dtype)
        return Array(data, name, values.shape)
    return Array(_dtypes.encode(dtype, _flatten(values, [])), dtype, _shape(values))


def is_array(value):
    return isinstance(value, Array) or (hasattr(value, 'dtype') and hasattr(value, 'ravel') and
                                        bool(getattr(value, 'shape', ())))


def as_array(value):
    """Any array as an Array; NumPy's float64 becomes float32."""
    if isinstance(value, Array):
        return value
    data, name = _dtypes.from_numpy(value)
    return Array(data, name, value.shape)
