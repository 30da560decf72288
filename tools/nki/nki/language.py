# SPDX-License-Identifier: MIT
"""nki.language: tensors, loops, and operations that become documented instructions."""
import builtins
import ctypes as C
import math

from . import _abi, _dtypes, _ops, isa
from ._context import NkiValidationError, Reg, current, integer
from ._index import Index, Mask, arange, mgrid
from ._tensor import (DynSlice, MemoryRegion, NkiTensor, hbm, hbm_tensor, load_register, private_hbm,
                      psum, region, sbuf, shared_hbm, tile, whole, will_write)

_range, _abs, _max, _min, _sum, _all = (builtins.range, builtins.abs, builtins.max, builtins.min,
                                        builtins.sum, builtins.all)

for _name in _abi.DTYPES:
    globals()[_name] = _name
bool_ = 'uint8'
DType = str


class _Limits:
    min, max = -3.4028234663852886e38, 3.4028234663852886e38


fp32 = _Limits()


class NKIObject:
    def __init__(self, **kwargs):
        self.__dict__.update(kwargs)


# ---- sizes --------------------------------------------------------------------------

class _TileSize:
    """Largest tiles of the chip that the kernel is for."""

    pmax = 128
    psum_bank_fmax, psum_bank_fmax_bytes = 512, 2048
    psum_min_align, sbuf_min_align = 4, 1
    gemm_stationary_fmax, bn_stats_fmax = 128, 512
    psum_num_banks = 8

    @property
    def psum_fmax(self):
        return 512 if current().nc_version < 4 else 4096

    @property
    def gemm_moving_fmax(self):
        return 512

    @property
    def sbuf_size_bytes(self):
        return {2: 192, 3: 224}.get(current().nc_version, 256) * 1024

    total_available_sbuf_size = sbuf_fmax_bytes = sbuf_size_bytes

    @property
    def sbuf_fmax(self):
        return self.sbuf_size_bytes // 4


tile_size = _TileSize()


def is_hbm(buffer):
    return region(buffer) in (private_hbm, shared_hbm)


def is_sbuf(buffer):
    return region(buffer) is sbuf


def is_psum(buffer):
    return region(buffer) is psum


def is_on_chip(buffer):
    return not is_hbm(buffer)


# ---- tensors -------------------------------------------------------------------------

class par_dim(int):
    """Marks the partition dimension of the earlier form."""


def _tile_shape(shape):
    """Dimensions before a par_dim become free ones: (blocks, par_dim(128), n)."""
    shape = list(shape) if isinstance(shape, (list, tuple)) else [shape]
    marks = [i for i, s in enumerate(shape) if isinstance(s, par_dim)]
    return shape, marks[0] if marks else 0


def ndarray(shape, dtype, buffer=None, name='', address=None):
    buffer = region(buffer)
    c = current()
    if buffer in (sbuf, psum):
        shape, par = _tile_shape(shape)
        if par == 0:
            return tile(shape, dtype, buffer, name)
        moved = [shape[par]] + shape[:par] + shape[par + 1:]
        return _Blocks(tile(moved, dtype, buffer, name), par)
    shape = tuple(int(s) for s in (shape if isinstance(shape, (list, tuple)) else [shape]))
    if buffer is private_hbm:
        return whole(hbm_tensor(shape, dtype, c.unique(name or 'scratch'), 'SCRATCH'))
    if c.shared_next < len(c.shared):	# a later instance of the launch grid
        storage = c.shared[c.shared_next]
        if c.core:	# its own view of the same tensor
            storage = hbm_tensor(shape, dtype, storage.name, 'OUTPUT')
    else:
        storage = hbm_tensor(shape, dtype, c.unique(name or 'output'), 'OUTPUT')
        c.shared.append(storage)
        c.outputs.append(storage)
    c.shared_next += 1
    return whole(storage)


class _Blocks:
    """Tiles of the earlier form, (blocks..., par_dim, free...): indexed block first."""

    def __init__(self, t, par):
        self.t, self.par = t, par
        self.dtype, self.buffer = t.dtype, t.buffer
        self.shape = t.shape[1:par + 1] + t.shape[:1] + t.shape[par + 1:]

    def _view(self, key):
        key = key if isinstance(key, tuple) else (key,)
        if any(isinstance(k, Index) for k in key):
            key = (key[self.par],) + key[:self.par] + key[self.par + 1:]
            return self.t[key]
        blocks, rest = key[:self.par], key[self.par:]
        if len(blocks) < self.par or not _all(isinstance(b, int) for b in blocks):
            raise NkiValidationError('index the %d block dimensions with integers first' % self.par)
        return self.t[(rest[0] if rest else slice(None),) + blocks + tuple(rest[1:])]

    def __getitem__(self, key):
        return self._view(key)

    def __setitem__(self, key, value):
        assign(self._view(key), value)


def zeros(shape, dtype, buffer=None, name=''):
    t = ndarray(shape, dtype, buffer, name)
    fill(t, 0)
    return t


def ones(shape, dtype, buffer=None, name=''):
    return full(shape, 1, dtype, buffer, name)


def full(shape, fill_value, dtype, buffer=None, name=''):
    t = ndarray(shape, dtype, buffer, name)
    fill(t, fill_value)
    return t


def zeros_like(x, dtype=None, buffer=None, name=''):
    return zeros(x.shape, dtype or x.dtype, buffer or x.buffer, name)


def empty_like(x, dtype=None, buffer=None, name=''):
    return ndarray(x.shape, dtype or x.dtype, buffer or x.buffer, name)


def fill(t, value):
    if isinstance(t, _Blocks):
        t = t.t
    if t.is_tile:
        isa.memset(dst=t, value=value)
        return
    rows = tile((_min(128, t.size),), t.dtype, sbuf)
    isa.memset(dst=rows, value=value)
    flat = t.reshape((t.size,))
    for i in _range(0, t.size, 128):
        n = _min(128, t.size - i)
        isa.dma_copy(dst=flat[i:i + n], src=rows[0:n])


def _constant_bytes(constant, dtype=None):
    if hasattr(constant, 'dtype') and hasattr(constant, 'ravel'):
        data, name = _dtypes.from_numpy(constant, dtype)
        return data, name, constant.shape
    shape, flat = [], constant
    while isinstance(flat, (list, tuple)):
        shape.append(len(flat))
        flat = flat[0] if flat else 0

    def walk(x):
        if isinstance(x, (list, tuple)):
            for y in x:
                yield from walk(y)
        else:
            yield x
    values = list(walk(constant))
    name = dtype or ('float32' if any(isinstance(v, float) for v in values) else 'int32')
    return _dtypes.encode(name, values), name, shape or [1]


def any(items):
    return builtins.any(items)


def shared_constant(constant, dtype=None):
    """A tensor in HBM with these values, stored in the program."""
    c = current()
    data, name, shape = _constant_bytes(constant, dtype)
    c.keep.append(data)
    return whole(hbm_tensor(shape, name, c.unique('constant'), 'CONST', C.c_char_p(data)))


def shared_identity_matrix(n, dtype='uint8', dst=None):
    c = current()
    key = (n, _dtypes.name_of(dtype))
    if key not in c.identities:
        values = [0] * (n * n)
        for i in _range(n):
            values[i * n + i] = 1
        data = _dtypes.encode(dtype, values)
        c.keep.append(data)
        c.identities[key] = hbm_tensor((n, n), dtype, c.unique('identity'), 'CONST',
                                       C.c_char_p(data))
    t = whole(c.identities[key])
    if dst is None and n > 128:	# no tile is that large
        return t
    dst = tile((n, n), dtype, sbuf) if dst is None else dst
    isa.dma_copy(dst=dst, src=t)
    return dst


# ---- loops ------------------------------------------------------------------------------

def affine_range(start, stop=None, step=1):
    """A loop that is written out; tiles of its body are freed at the end of each pass."""
    return _range(0, start, step) if stop is None else _range(start, stop, step)


sequential_range = static_range = affine_range


class _Loop:
    def __init__(self, lower, upper, step):
        if isinstance(lower, Reg):
            raise NkiValidationError('the lower bound of a device loop is an integer')
        self.c = current()
        self.i = Reg(self.c.call('for_begin', int(lower), integer(upper), int(step)))
        self.c.loop_begins()

    def end(self):
        self.c.loop_ends()
        self.c.call('for_end', self.i)


def dynamic_range(start, stop=None, step=1):
    """A device loop: the body is traced once and gets a register."""
    if stop is None:
        start, stop = 0, start
    loop = _Loop(start, stop, step)
    yield loop.i
    loop.end()


def fori_loop(lower, upper, body_fun, step=1):
    loop = _Loop(lower, upper, step)
    body_fun(loop.i)
    loop.end()


def while_loop(init, body_fun):
    """body_fun(register) returns the next condition; runs while it is not zero."""
    c = current()
    reg = init if isinstance(init, Reg) else isa.register_alloc(init)
    c.call('while_begin', reg)
    c.loop_begins()
    out = body_fun(reg)
    if isinstance(out, Reg) and out is not reg:
        isa.register_move(reg, out)
    c.loop_ends()
    c.lib.nki_while_end_(c.k, c.loc('while_loop'))
    c.check()


def ds(start, size):
    return DynSlice(start, size)


def program_id(axis=0):
    ids = current().program_ids
    return ids[axis] if axis < len(ids) else 0


def num_programs(axes=0):
    """Instances of the launch grid in an axis."""
    grid = current().grid
    return grid[axes] if axes < len(grid) else 1


def program_ndim():
    return len(current().grid)


def no_reorder():
    raise NkiValidationError('nl.no_reorder: the order of a program is already kept by its data')


def spmd_dim(n, cores=1):
    """Of a launch grid: n instances on each of the cores, here one after the other."""
    return n * cores


def nc(n):
    return n


def device_print(print_prefix, tensor):
    current().call('device_print', print_prefix.encode(), tensor)


# ---- between HBM and SBUF ------------------------------------------------------------------

def _two_dims(t):
    """What load gives back: the partition dimension and the rest."""
    return t.shape if t.ndim else (1,)


def load(src, dtype=None, mask=None):
    t = tile(_two_dims(src), dtype or src.dtype, sbuf)
    if mask is None:
        isa.dma_copy(dst=t, src=src)
        return t
    part = src.clip(mask)
    if part is not None:
        corner = t
        for d, n in enumerate(part.shape):
            corner = corner.slice(d, 0, n)
        isa.dma_copy(dst=corner, src=part)
    return t


def _clip(t, mask):
    if mask is None or t is None:
        return t
    return t.clip(mask)


def store(dst, value, mask=None):
    if mask is not None:
        dst = dst.clip(mask)
        if dst is None:
            return
        if isinstance(value, NkiTensor):
            for d, n in enumerate(dst.shape):
                value = value.slice(d, 0, n)
    if not isinstance(value, NkiTensor):
        value = full(_two_dims(dst), value, dst.dtype)
    elif value.buffer is psum:
        value = copy(value, dtype=dst.dtype)
    if value.shape != dst.shape and value.size != dst.size:
        value = broadcast_to(value, dst.shape)
    isa.dma_copy(dst=dst, src=value)


def load_transpose2d(src, dtype=None):
    t = tile((src.shape[1], src.shape[0]), dtype or src.dtype, sbuf)
    for i in _range(0, src.shape[0], 128):
        n = _min(128, src.shape[0] - i)
        rows = load(src[i:i + n, :])
        done = copy(transpose(rows), dtype=t.dtype)
        isa.tensor_copy(dst=t[:, i:i + n], src=done)
    return t


def copy(x, dtype=None, mask=None):
    if not x.is_tile:
        return load(x, dtype)
    t = tile(x.shape, dtype or x.dtype, sbuf)
    isa.tensor_copy(dst=t, src=x)
    return t


def assign(dst, value):
    """dst[...] = value"""
    if isinstance(value, NkiTensor):
        same = value.storage is dst.storage and value.offset == dst.offset and \
            value.part == dst.part and value.shape == dst.shape
        if same:
            return
        if not dst.is_tile or not value.is_tile:
            isa.dma_copy(dst=dst, src=value if value.buffer is not psum else copy(value))
            return
        if value.shape != dst.shape and value.size != dst.size:
            value = broadcast_to(value, dst.shape)
        isa.tensor_copy(dst=dst, src=value)
    else:
        fill(dst, value)


def assign_op(dst, name, other):
    """dst op= other"""
    _binary_into(dst, name, dst, other)


# ---- elementwise --------------------------------------------------------------------------

def _broadcast_partitions(x, n):
    """One partition's elements in n partitions: a product with a column of ones."""
    if x.dtype in ('float32',):
        free = x.size
        ones_tile = tile((1, n), 'float32', sbuf)
        isa.memset(dst=ones_tile, value=1)
        t = tile((n,) + x.free, x.dtype, sbuf)
        flat_in, flat_out = x if x.buffer is sbuf else copy(x), t
        if flat_in.ndim > 2 or not flat_in.is_contiguous():
            flat_in = copy(flat_in)
        flat_in = flat_in.reshape((1, free))
        flat_out = flat_out.reshape((n, free))
        for i in _range(0, free, 512):
            m = _min(512, free - i)
            p = tile((n, m), 'float32', psum)
            isa.nc_matmul(dst=p, stationary=ones_tile, moving=flat_in[:, i:i + m])
            isa.tensor_copy(dst=flat_out[:, i:i + m], src=p)
        return t
    wide = _broadcast_partitions(copy(x, dtype='float32'), n)
    return copy(wide, dtype=x.dtype)


def broadcast_to(x, shape, dtype=None):
    shape = tuple(int(s) for s in shape)
    if x.shape == shape and dtype in (None, x.dtype):
        return x
    if not x.is_tile:
        while x.ndim < len(shape):
            x = x.expand_dim(0)
        for d, n in enumerate(shape):
            x = x.broadcast(d, n)
        return x
    if x.shape[0] == 1 and shape[0] > 1:
        x = _broadcast_partitions(x, shape[0])
    while x.ndim < len(shape):
        x = x.expand_dim(1)
    for d in _range(1, len(shape)):
        x = x.broadcast(d, shape[d])
    return x if dtype in (None, x.dtype) else copy(x, dtype)


def expand_dims(x, axis):
    axes = sorted(a % (x.ndim + 1) for a in (axis if isinstance(axis, (list, tuple)) else [axis]))
    for a in axes:
        x = x.expand_dim(a)
    return x


def _result_shape(a, b):
    n = _max(len(a), len(b))
    a, b = (1,) * (n - len(a)) + tuple(a), (1,) * (n - len(b)) + tuple(b)
    out = []
    for x, y in zip(a, b):
        if x != y and 1 not in (x, y):
            raise NkiValidationError('shapes %s and %s cannot be broadcast' % (list(a), list(b)))
        out.append(_max(x, y))
    return tuple(out)


def _on_chip(x):
    if isinstance(x, _Blocks):
        raise NkiValidationError('index the blocks of the tile first')
    return load(x) if isinstance(x, NkiTensor) and not x.is_tile else x


_REVERSED = {'add': 'add', 'multiply': 'multiply', 'maximum': 'maximum', 'minimum': 'minimum',
             'bitwise_and': 'bitwise_and', 'bitwise_or': 'bitwise_or', 'bitwise_xor': 'bitwise_xor',
             'logical_and': 'logical_and', 'logical_or': 'logical_or', 'logical_xor': 'logical_xor',
             'equal': 'equal', 'not_equal': 'not_equal', 'less': 'greater', 'greater': 'less',
             'less_equal': 'greater_equal', 'greater_equal': 'less_equal'}
_COMPARISONS = _ops.COMPARE | {'logical_and', 'logical_or', 'logical_xor'}


def _column(x, like):
    """One value per partition: an operand of tensor_scalar."""
    return isinstance(x, NkiTensor) and x.size == x.shape[0] and x.shape[0] == like.shape[0] and \
        like.size > like.shape[0]


def _binary_into(dst, name, x, y):
    x, y = _on_chip(x), _on_chip(y)
    if not isinstance(x, NkiTensor) or (_column(x, dst) and isinstance(y, NkiTensor) and
                                        not _column(y, dst) and name not in _ops.BITVEC):
        _scalar_into(dst, name, y, x, True)
    elif not isinstance(y, NkiTensor) or (_column(y, dst) and name not in _ops.BITVEC):
        _scalar_into(dst, name, x, y, False)
    else:
        x, y = broadcast_to(x, dst.shape), broadcast_to(y, dst.shape)
        if x.buffer is psum and y.buffer is psum:
            y = copy(y)
        isa.tensor_tensor(dst=dst, data1=x, data2=y, op=name)


def _scalar_into(dst, name, data, operand, reverse):
    if isinstance(operand, NkiTensor) and operand.dtype != 'float32':
        operand = copy(operand, dtype='float32')
    data = broadcast_to(data, dst.shape)
    if name == 'power' and dst.buffer is psum:
        raise NkiValidationError('nl.power: GpSimd has no PSUM')
    if name == 'power' and data.buffer is psum:
        data = copy(data)
    options = {'engine': isa.engine.gpsimd} if name == 'power' else {}
    isa.tensor_scalar(dst=dst, data=data, op0=name, operand0=operand, reverse0=reverse, **options)


def _corner(t, shape):
    """The part of a new tile that a masked operation writes."""
    for d, n in enumerate(shape):
        t = t.slice(d, 0, n)
    return t


def _binary(name, x, y, dtype=None, mask=None):
    if mask is not None:
        full_shape = _result_shape(*(t.shape if isinstance(t, NkiTensor) else () for t in (x, y)))
        x, y = (_clip(t, mask) if isinstance(t, NkiTensor) else t for t in (x, y))
        part = _binary(name, x, y, dtype)
        t = tile(full_shape, part.dtype, sbuf)
        isa.tensor_copy(dst=_corner(t, part.shape), src=part)
        return t
    x, y = _on_chip(x), _on_chip(y)
    if not isinstance(x, NkiTensor) and not isinstance(y, NkiTensor):
        raise NkiValidationError('nl.%s: one operand must be a tile' % name)
    a = x.shape if isinstance(x, NkiTensor) else ()
    b = y.shape if isinstance(y, NkiTensor) else ()
    if dtype is None:
        if name in _COMPARISONS:
            dtype = 'uint8'
        else:
            kinds = [t.dtype for t in (x, y) if isinstance(t, NkiTensor)]
            dtype = kinds[0] if len(kinds) == 1 else _dtypes.promote(*kinds)
            if len(kinds) == 1 and _dtypes.is_int(dtype) and \
                    (isinstance(x, float) or isinstance(y, float)):
                dtype = 'float32'
    t = tile(_result_shape(a, b), dtype, sbuf)
    _binary_into(t, name, x, y)
    return t


def _make_binary(name):
    def function(x, y, dtype=None, mask=None):
        return _binary(name, x, y, dtype, mask)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = 'x %s y, element by element.' % name
    return function


for _name in ('add', 'subtract', 'multiply', 'maximum', 'minimum', 'abs_max', 'abs_min', 'power',
              'equal', 'not_equal', 'less', 'less_equal', 'greater', 'greater_equal', 'bitwise_and',
              'bitwise_or', 'bitwise_xor', 'left_shift', 'right_shift', 'logical_and', 'logical_or',
              'logical_xor'):
    globals()[_name] = _make_binary(_name)


def divide(x, y, dtype=None, mask=None):
    """x / y: the chip has no division; x times the reciprocal of y."""
    if not isinstance(y, NkiTensor):
        return _binary('multiply', x, 1.0 / y, dtype)
    return _binary('multiply', x, reciprocal(y, dtype='float32'), dtype or (
        x.dtype if isinstance(x, NkiTensor) else y.dtype))


def _make_unary(name):
    def function(x, dtype=None, mask=None):
        x = _on_chip(x)
        t = tile(x.shape, dtype or x.dtype, sbuf)
        part = _clip(x, mask)
        isa.activation(dst=_corner(t, part.shape), op=name, data=part)
        return t
    function.__name__ = function.__qualname__ = name
    function.__doc__ = '%s of x, element by element, on the scalar engine.' % name
    return function


for _name in ('exp', 'log', 'sqrt', 'rsqrt', 'tanh', 'sigmoid', 'relu', 'gelu', 'gelu_apprx_sigmoid',
              'gelu_apprx_tanh', 'gelu_dx', 'gelu_apprx_sigmoid_dx', 'silu', 'silu_dx', 'softplus',
              'mish', 'erf', 'erf_dx', 'arctan', 'sign', 'square', 'abs'):
    globals()[_name] = _make_unary(_name)


def reciprocal(x, dtype=None, mask=None):
    x = _on_chip(x)
    t = tile(x.shape, dtype or x.dtype, sbuf)
    isa.reciprocal(dst=t, data=x)
    return t


def negative(x, dtype=None):
    return _binary('multiply', x, -1.0, dtype)


def invert(x, dtype=None):
    x = _on_chip(x)
    t = tile(x.shape, dtype or x.dtype, sbuf)
    isa.tensor_scalar(dst=t, data=x, op0='bitwise_xor', operand0=-1)
    return t


def logical_not(x, dtype=None):
    return _binary('equal', x, 0.0, dtype)


def prelu(x, *unused):
    raise NkiValidationError('nl.prelu is an operator of nki.isa.activate2')


def average(*unused):
    raise NkiValidationError('nl.average is an operator of nki.isa.tensor_partition_reduce')


def bypass(*unused):
    raise NkiValidationError('nl.bypass is an operator of nki.isa')


def _f32(x):
    x = _on_chip(x)
    return x if x.dtype == 'float32' else copy(x, dtype='float32')


def _reduced_angle(x):
    """x minus the nearest multiple of 2 pi: the table of sin covers [-pi, pi]."""
    turns = copy(multiply(x, 1 / (2 * math.pi), dtype='int32'), dtype='float32')
    t = tile(x.shape, 'float32', sbuf)
    isa.scalar_tensor_tensor(dst=t, data=turns, op0='multiply', operand0=-2 * math.pi, op1='add',
                             operand1=x)
    isa.tensor_scalar(dst=t, data=t, op0='minimum', operand0=math.pi, op1='maximum',
                      operand1=-math.pi)
    return t


def _activate(name, x, dtype):
    t = tile(x.shape, dtype, sbuf)
    isa.activation(dst=t, op=name, data=x)
    return t


def sin(x, dtype=None, mask=None):
    x = _on_chip(x)
    return _activate('sin', _reduced_angle(_f32(x)), dtype or x.dtype)


def cos(x, dtype=None, mask=None):
    x = _on_chip(x)
    return _activate('sin', _reduced_angle(add(_f32(x), math.pi / 2)), dtype or x.dtype)


def tan(x, dtype=None):
    x = _on_chip(x)
    return divide(sin(_f32(x)), cos(_f32(x)), dtype or x.dtype)


def _round_toward(x, dtype, down, up):
    """Nearest integer, moved down where it is above x, up where it is below."""
    x = _f32(x)
    n = copy(copy(x, dtype='int32'), dtype='float32')
    t = n
    if down is not None:
        t = subtract(t, _and(greater(n, x, dtype='float32'), down))
    if up is not None:
        t = add(t, _and(less(n, x, dtype='float32'), up))
    return t if dtype in (None, 'float32') else copy(t, dtype=dtype)


def _and(flag, condition):
    return flag if condition is True else multiply(flag, condition)


def floor(x, dtype=None):
    return _round_toward(x, dtype or x.dtype, True, None)


def ceil(x, dtype=None):
    return _round_toward(x, dtype or x.dtype, None, True)


def trunc(x, dtype=None):
    wide = _f32(x)
    return _round_toward(wide, dtype or x.dtype, greater(wide, 0.0, dtype='float32'),
                         less(wide, 0.0, dtype='float32'))


def _modulus(x, y, dtype, whole_part):
    out = dtype or (x.dtype if isinstance(x, NkiTensor) else y.dtype)
    n = whole_part(divide(x, y, dtype='float32'), dtype='float32')
    return subtract(x, multiply(n, y, dtype='float32'), dtype=out)


def mod(x, y, dtype=None):
    return _modulus(x, y, dtype, floor)


def fmod(x, y, dtype=None):
    return _modulus(x, y, dtype, trunc)


def where(condition, x, y, dtype=None):
    condition = _on_chip(condition)
    x, y = _on_chip(x), _on_chip(y)
    kinds = [t.dtype for t in (x, y) if isinstance(t, NkiTensor)]
    dtype = dtype or (kinds[0] if len(kinds) == 1 else _dtypes.promote(*kinds) if kinds else 'float32')
    shape = condition.shape
    for t in (x, y):
        if isinstance(t, NkiTensor):
            shape = _result_shape(shape, t.shape)
    if not condition.dtype.startswith('uint'):
        condition = not_equal(condition, 0.0, dtype='uint8')
    condition = broadcast_to(condition, shape)
    t = tile(shape, dtype, sbuf)
    assign(t, y)
    on_true = x if isinstance(x, NkiTensor) else full(shape, x, dtype)
    if on_true.dtype != dtype:
        on_true = copy(on_true, dtype)
    isa.tensor_copy_predicated(dst=t, src=broadcast_to(on_true, shape), predicate=condition)
    return t


# ---- reductions --------------------------------------------------------------------------------

def _reduce(op, x, axis, dtype, keepdims, mask=None):
    x = _on_chip(x)
    if mask is not None:
        part = _reduce(op, x.clip(mask), axis, dtype, True)
        axes = [a % x.ndim for a in (axis if isinstance(axis, (list, tuple)) else [axis])]
        t = tile([1 if d in axes else n for d, n in enumerate(x.shape)], part.dtype, sbuf)
        isa.tensor_copy(dst=_corner(t, part.shape), src=part)
        for a in () if keepdims else sorted(axes, reverse=True):
            t = t.squeeze_dim(a) if t.ndim > 2 else t
        return t
    if x.buffer is psum and x.ndim > 4:
        x = copy(x)
    axes = sorted(a % x.ndim for a in (axis if isinstance(axis, (list, tuple)) else [axis]))
    if axes and axes[0] == 0:
        if len(axes) > 1:
            x = _reduce(op, x, axes[1:], dtype, True)
        if op not in ('add', 'maximum'):
            raise NkiValidationError('nl: partitions are reduced by add and maximum only')
        t = tile((1,) + x.free, dtype or x.dtype, sbuf)
        isa.tensor_partition_reduce(dst=t, op=op, data=x if x.buffer is sbuf else copy(x))
        return t
    shape = tuple(1 if i in axes else s for i, s in enumerate(x.shape))
    t = tile(shape, dtype or x.dtype, sbuf)
    out = t
    for a in reversed(axes):
        out = out.squeeze_dim(a) if out.ndim > 1 else out
    isa.tensor_reduce(dst=out, op=op, data=x, axis=axes)
    return t if keepdims or out.ndim < 2 else out


def sum(x, axis, dtype=None, keepdims=False, mask=None):
    return _reduce('add', x, axis, dtype, keepdims, mask)


def max(x, axis, dtype=None, keepdims=False, mask=None):
    return _reduce('maximum', x, axis, dtype, keepdims, mask)


def min(x, axis, dtype=None, keepdims=False, mask=None):
    return _reduce('minimum', x, axis, dtype, keepdims, mask)


def prod(x, axis, dtype=None, keepdims=False):
    return _reduce('multiply', x, axis, dtype, keepdims)


def all(x, axis, dtype=None):
    return _reduce('minimum', not_equal(x, 0.0), axis, dtype, False)


def _count(x, axis):
    n = 1
    for a in (axis if isinstance(axis, (list, tuple)) else [axis]):
        n *= x.shape[a]
    return n


def mean(x, axis, dtype=None, keepdims=False, mask=None):
    total = _reduce('add', x, axis, 'float32', keepdims)
    return multiply(total, 1.0 / _count(x, axis), dtype=dtype or x.dtype)


def var(x, axis, dtype=None, keepdims=False):
    centre = mean(x, axis, 'float32', True)
    return mean(square(subtract(x, centre, dtype='float32')), axis, dtype or x.dtype, keepdims)


def softmax(x, axis=-1, dtype=None):
    x = _on_chip(x)
    high = max(x, axis=axis, dtype='float32', keepdims=True)
    e = exp(subtract(x, high, dtype='float32'))
    total = sum(e, axis=axis, keepdims=True)
    return multiply(e, reciprocal(total), dtype=dtype or x.dtype)


def rms_norm(x, w, axis, n, epsilon=1e-06, dtype=None, compute_dtype=None):
    wide = _f32(x)
    square_mean = multiply(sum(square(wide), axis=axis, keepdims=True), 1.0 / n)
    scaled = multiply(wide, rsqrt(add(square_mean, float(epsilon))))
    return multiply(scaled, w, dtype=dtype or x.dtype)


# ---- matrices -----------------------------------------------------------------------------------

def transpose(x, dtype=None):
    x = _on_chip(x)
    if x.ndim != 2:
        raise NkiValidationError('nl.transpose: %r has two dimensions' % x)
    kind = 'float32' if current().nc_version == 2 else x.dtype
    t = tile((x.shape[1], x.shape[0]), kind, psum)
    isa.nc_transpose(dst=t, data=x if x.buffer is sbuf else copy(x))
    return t if dtype in (None, kind) else copy(t, dtype)


def matmul(x, y, transpose_x=False, mask=None):
    """A tile in PSUM. x [M, K], or [K, M] with transpose_x; y [K, N]"""
    x, y = _on_chip(x), _on_chip(y)
    if not transpose_x:
        x = copy(transpose(x), dtype=x.dtype)
    x = x if x.buffer is sbuf else copy(x)
    y = y if y.buffer is sbuf else copy(y)
    t = tile((x.shape[1], y.shape[1]), 'float32', psum)
    for i in _range(0, y.shape[1], 512):
        n = _min(512, y.shape[1] - i)
        isa.nc_matmul(dst=t[:, i:i + n], stationary=x, moving=y[:, i:i + n])
    return t


def gather_flattened(data, indices, axis=0, dtype=None):
    t = tile(indices.shape, dtype or data.dtype, sbuf)
    isa.nc_n_gather(dst=t, data=data, indices=indices)
    return t


# ---- random numbers -------------------------------------------------------------------------------

def rand(shape, dtype='float32', buffer=None, name=''):
    """Uniform in [0, 1)."""
    t = ndarray(shape, dtype, buffer, name)
    if current().nc_version >= 4:
        isa.rand2(dst=t, min=0.0, max=1.0)
        return t
    bits = tile(shape, 'uint32', sbuf)
    isa.rng(dst=bits)
    isa.tensor_scalar(dst=bits, data=bits, op0='right_shift', operand0=8)
    isa.tensor_scalar(dst=t, data=bits, op0='multiply', operand0=2.0 ** -24)
    return t


def random_seed(seed):
    if not isinstance(seed, NkiTensor):
        seed = full((1, 1), seed, 'int32')
    isa.set_rng_seed(seed)


def dropout(x, rate, dtype=None):
    x = _on_chip(x)
    t = tile(x.shape, dtype or x.dtype, sbuf)
    isa.dropout(dst=t, data=x, prob=rate)
    return t


