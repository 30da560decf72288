# SPDX-License-Identifier: MIT
"""Element types: their names, sizes, and how Python numbers become bytes.

NumPy is used when it can be imported and is never needed.
"""
import array
import os
import struct

from . import _abi

try:
    if os.environ.get('NKI_NO_NUMPY'):
        raise ImportError
    import numpy
except ImportError:
    numpy = None

_ALIASES = {
    'bool': 'uint8', 'bool_': 'uint8', 'float': 'float32', 'int': 'int32', 'fp32': 'float32',
    'float8_e4m3b11fnuz': 'float8_e4m3',
}

# What struct and NumPy know by themselves.
_STRUCT = {
    'int8': 'b', 'uint8': 'B', 'int16': 'h', 'uint16': 'H', 'int32': 'i', 'uint32': 'I',
    'float32': 'f', 'tfloat32': 'f', 'float16': 'e',
}
_NUMPY = {
    'int8': 'int8', 'uint8': 'uint8', 'int16': 'int16', 'uint16': 'uint16', 'int32': 'int32',
    'uint32': 'uint32', 'float32': 'float32', 'tfloat32': 'float32', 'float16': 'float16',
}
# NumPy has no such type: its bits are kept in one that has the size.
_BITS = {'bfloat16': 'uint16', 'float4_e2m1fn_x4': 'uint16', 'float8_e5m2_x4': 'uint32',
         'float8_e4m3fn_x4': 'uint32'}


def name_of(dtype):
    """The name of a type given as a string, a NumPy type or a Python type."""
    if isinstance(dtype, str):
        name = dtype
    elif numpy is not None and isinstance(dtype, numpy.dtype):
        name = dtype.name
    else:
        name = getattr(dtype, '__name__', None) or str(dtype)
    name = _ALIASES.get(name, name)
    if name not in _abi.DTYPES:
        raise TypeError('dtype %r is not one of %s' % (dtype, ', '.join(sorted(_abi.DTYPES))))
    return name


def code(dtype):
    return _abi.DTYPES[name_of(dtype)][0]


def size(dtype):
    return _abi.DTYPES[name_of(dtype)][1]


def is_float(dtype):
    return 'float' in name_of(dtype)


def is_int(dtype):
    return 'int' in name_of(dtype)


_RANK = ['uint8', 'int8', 'uint16', 'int16', 'uint32', 'int32', 'float8_e5m2', 'float8_e4m3',
         'float8_e4m3fn', 'float8_e3m4', 'float16', 'bfloat16', 'tfloat32', 'float32']


def promote(a, b):
    """The type of a result of two operands: the more precise one."""
    a, b = name_of(a), name_of(b)
    if a == b:
        return a
    if {a, b} == {'float16', 'bfloat16'}:
        return 'float32'
    return max(a, b, key=lambda t: _RANK.index(t) if t in _RANK else len(_RANK))


# ---- eight-bit floats, by table ------------------------------------------------

def _small_float(bits, exponent, bias, special):
    """The value of an eight-bit float; special: 'ieee' or 'fn' (no infinity)."""
    mantissa = 7 - exponent
    e = bits >> mantissa & ((1 << exponent) - 1)
    m = bits & ((1 << mantissa) - 1)
    if special == 'ieee' and e == (1 << exponent) - 1:
        v = float('nan') if m else float('inf')
    elif special == 'fn' and bits & 0x7f == 0x7f:
        v = float('nan')
    elif e:
        v = (1 + m / (1 << mantissa)) * 2.0 ** (e - bias)
    else:
        v = m / (1 << mantissa) * 2.0 ** (1 - bias)
    return -v if bits & 0x80 else v


_SMALL = {
    'float8_e4m3': (4, 7, 'ieee'), 'float8_e5m2': (5, 15, 'ieee'), 'float8_e3m4': (3, 3, 'ieee'),
    'float8_e4m3fn': (4, 7, 'fn'),
}
_TABLES = {}


def _table(name):
    if name not in _TABLES:
        _TABLES[name] = [_small_float(i, *_SMALL[name]) for i in range(256)]
    return _TABLES[name]


def _encode_small(name, value):
    """Nearest, ties to even, saturating."""
    table = _table(name)
    if value != value:
        return 0x7f
    sign = 0x80 if value < 0 or (value == 0 and str(value)[0] == '-') else 0
    a, lo, hi = abs(value), 0, 127
    while table[hi] != table[hi] or table[hi] == float('inf'):
        hi -= 1
    if a >= table[hi]:
        return sign | hi
    while hi - lo > 1:
        mid = (lo + hi) // 2
        if table[mid] <= a:
            lo = mid
        else:
            hi = mid
    low, high = a - table[lo], table[hi] - a
    return sign | (lo if low < high or (low == high and lo % 2 == 0) else hi)


def encode(dtype, values):
    """Bytes of a flat sequence of numbers."""
    name = name_of(dtype)
    if name in _STRUCT:
        if name[0] in 'iu':
            values = [int(v) for v in values]
        if name == 'float16':
            return struct.pack('<%de' % len(values), *values)
        return array.array(_STRUCT[name], values).tobytes()
    if name == 'bfloat16':
        bits = array.array('I', array.array('f', values).tobytes())
        return array.array('H', [(b >> 16) | 0x40 if b & 0x7fffffff > 0x7f800000 else
                                 (b + 0x7fff + (b >> 16 & 1)) >> 16 for b in bits]).tobytes()
    if name in _SMALL:
        return bytes(_encode_small(name, v) for v in values)
    return array.array('B' if size(name) == 1 else 'H' if size(name) == 2 else 'I',
                       [int(v) for v in values]).tobytes()


def decode(dtype, data):
    """A flat list of the numbers in bytes."""
    name = name_of(dtype)
    if name == 'float16':
        return list(struct.unpack('<%de' % (len(data) // 2), data))
    if name in _STRUCT:
        return array.array(_STRUCT[name], bytes(data)).tolist()
    if name == 'bfloat16':
        halves = array.array('H', bytes(data))
        return array.array('f', array.array('I', [h << 16 for h in halves]).tobytes()).tolist()
    if name in _SMALL:
        table = _table(name)
        return [table[b] for b in data]
    return array.array('B' if size(name) == 1 else 'H' if size(name) == 2 else 'I',
                       bytes(data)).tolist()


def from_numpy(a, dtype=None):
    """(bytes, type name) of a NumPy array, cast to @dtype when it is given."""
    have = _ALIASES.get(a.dtype.name, a.dtype.name)
    if have == 'float64' and dtype is None:
        dtype = 'float32'
    if have == 'int64' and dtype is None:
        dtype = 'int32'
    want = name_of(dtype) if dtype is not None else name_of(have)
    a = numpy.ascontiguousarray(a)
    if want == have:
        return a.tobytes(), want
    if want in _NUMPY:
        return a.astype(_NUMPY[want]).tobytes(), want
    if want == 'bfloat16':
        bits = a.astype('float32').view('uint32').astype('uint64')
        nan = (bits & 0x7fffffff) > 0x7f800000
        out = numpy.where(nan, (bits >> 16) | 0x40, (bits + 0x7fff + (bits >> 16 & 1)) >> 16)
        return out.astype('uint16').tobytes(), want
    return encode(want, a.ravel().tolist()), want


def to_numpy(data, dtype, shape):
    """A NumPy array of the type, or float32 values of a type that NumPy lacks."""
    name = name_of(dtype)
    try:
        a = numpy.frombuffer(bytes(data), dtype=_NUMPY.get(name, name))
    except TypeError:
        if name == 'bfloat16':
            a = (numpy.frombuffer(bytes(data), 'uint16').astype('uint32') << 16).view('float32')
        elif name in _BITS:
            a = numpy.frombuffer(bytes(data), _BITS[name])
        else:
            a = numpy.array(decode(name, data), dtype='float32')
    return a.reshape(shape).copy()
