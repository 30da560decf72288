# SPDX-License-Identifier: MIT
"""nki.isa: one function for each instruction.

Names, arguments and their order are those of the published nki.isa; semantics
and limits too (Documentation/nki.rst). Kernels of the earlier form, which leave
dst out and get a new tile back, work as well.
"""
import enum
import functools
import inspect
import sys
import types

from . import _abi, _dtypes, _ops
from ._context import NkiValidationError, Reg, current, integer
from ._index import Mask
from ._tensor import NkiTensor, load_register, psum, sbuf, tile, will_write

_C = _abi.CONST


class engine(enum.Enum):
    tensor = _C['NEURON_ENGINE_PE']
    vector = _C['NEURON_ENGINE_DVE']
    scalar = _C['NEURON_ENGINE_ACT']
    gpsimd = _C['NEURON_ENGINE_POOL']
    dma = _C['NEURON_ENGINE_DMA']
    sync = _C['NEURON_ENGINE_SP']
    unknown = 0


class reduce_cmd(enum.Enum):
    idle = 0
    reset = 1
    reduce = 2
    reset_reduce = 3
    load_reduce = 4


class dge_mode(enum.Enum):
    unknown = 0
    swdge = 1
    hwdge = 2
    none = 3


class oob_mode(enum.Enum):
    error = 0
    skip = 1


class matmul_perf_mode(enum.Enum):
    none = 0
    double_row = 1


class nc_version(enum.IntEnum):
    gen2 = 2
    gen3 = 3
    gen4 = 4


class dma_engine(enum.Enum):
    dma = 0
    gpsimd_dma = 1


# nki.isa.constants: the enumerations again, as some kernels import them.
constants = types.ModuleType(__name__ + '.constants')
for _item in (engine, reduce_cmd, dge_mode, oob_mode, matmul_perf_mode, nc_version, dma_engine):
    setattr(constants, _item.__name__, _item)
sys.modules[constants.__name__] = constants

tensor_engine, vector_engine, scalar_engine = engine.tensor, engine.vector, engine.scalar
gpsimd_engine, unknown_engine = engine.gpsimd, engine.unknown
VirtualRegister = Reg


class NkiInstruction:
    """What an instruction returns. Order follows from the data; see depends_on()."""

    def depends_on(self, *producers):
        """Program order and data already order instructions: nothing is added."""
        return self


_instruction = NkiInstruction()


def get_nc_version():
    return nc_version(min(4, current().nc_version))


def get_nc_sub_version():
    return 0


# ---- the form without dst -----------------------------------------------------------

class _Arguments:
    def __init__(self, values):
        self.__dict__.update(values)


def _fits(signature, args, kwargs):
    """Do these arguments have the types of the form with dst?"""
    if 'dst' in kwargs:
        return True
    if not args or not isinstance(args[0], NkiTensor):
        return False
    try:
        bound = signature.bind(*args, **kwargs).arguments
    except TypeError:
        return False
    for name, value in bound.items():
        wants = name in ('data', 'data1', 'data2', 'src', 'stationary', 'moving', 'on_true',
                         'on_true_tile', 'predicate', 'vals', 'indices', 'index', 'segment_ids',
                         'data0')
        if wants and not isinstance(value, NkiTensor) and name != 'src':
            return False
        if name in ('op', 'op0', 'op1', 'reduce_op') and value is not None and \
                not _ops.is_op(value) and not isinstance(value, str):
            return False
    return True


def _clipped(values, mask):
    """Smaller views of all tensors, where a mask leaves some elements out; None: all out."""
    if mask is None:
        return values
    out = {}
    for name, value in values.items():
        if isinstance(value, NkiTensor) and not _is_column(value):
            value = value.clip(mask)
            if value is None:
                return None
        out[name] = value
    return out


def _is_column(t):
    return t.size == t.shape[0] and t.ndim > 1


def _instr(old=None, shape=None, dtype=None, buffer=None):
    """@old: parameter names of the earlier form, dst left out; shape, dtype: of its result."""
    def decorate(function):
        signature = inspect.signature(function)

        @functools.wraps(function)
        def call(*args, **kwargs):
            mask = kwargs.pop('mask', None)
            if _fits(signature, args, kwargs):
                kwargs.pop('dtype', None)
                kwargs.pop('name', None)
                values = _clipped(signature.bind(*args, **kwargs).arguments, mask)
                if values is not None:
                    function(**values)
                return _instruction
            if old is None:
                signature.bind(*args, **kwargs)
                raise NkiValidationError('nki.isa.%s: dst is not a tensor' % function.__name__)
            names = old.split()
            if len(args) > len(names):
                raise TypeError('nki.isa.%s takes %s' % (function.__name__, signature))
            values = dict(zip(names, args))
            values.update(kwargs)
            want = values.pop('dtype', None)
            values.pop('name', None)
            a = _Arguments(values)
            like = values.get('data', values.get('data1', values.get('src', values.get(
                'data0', values.get('moving', values.get('on_true_tile'))))))
            kind = want or (dtype(a) if dtype else like.dtype)
            dst = tile(shape(a) if shape else like.shape, kind, buffer(a) if buffer else sbuf)
            values = _clipped(dict(values, dst=dst), mask)
            if values is not None:
                signature.bind(**values)
                function(**values)
            return dst
        return call
    return decorate


def _engine(value, default=0):
    if value is None:
        return default
    return value.value if isinstance(value, engine) else int(value)


def _value(item):
    return item.value if isinstance(item, enum.Enum) else item


def _scalar(value, op=None):
    """An operand: number, (P, 1) tile or register; of a bit operator an integer."""
    if _ops.is_bitvec(op) and isinstance(value, (int, Reg)):
        return integer(value)
    return value if value is not None else 0.0


# ---- data movement -------------------------------------------------------------------

def _dma(dst, src, priority, oob, dge, eng):
    c = current()
    will_write(dst)
    options = dict(engine=_engine(eng), priority=priority or 0, oob_mode=_value(oob))
    if _value(dge):
        options['dge_mode'] = _value(dge)
    return c, options


def dma_copy(dst, src, priority=None, oob_mode=oob_mode.error, dge_mode=dge_mode.unknown,
             engine=engine.unknown, name=None, dst_rmw_op=None, mask=None):
    if mask is not None:
        dst, src = dst.clip(mask), src.clip(mask)
        if dst is None or src is None:
            return _instruction
    for t, what in ((dst, 'dst'), (src, 'src')):
        if not isinstance(t, NkiTensor):
            raise NkiValidationError('nki.isa.dma_copy: %s is %r, not a tensor' % (what, t))
    c, options = _dma(dst, src, priority, oob_mode, dge_mode, engine)
    if dst_rmw_op is not None:
        options['accumulate'] = True
    c.call('dma_copy', dst, src, **options)
    return _instruction


def dma_transpose(dst, src=None, axes=None, priority=None, dge_mode=dge_mode.unknown,
                  oob_mode=oob_mode.error, name=None):
    result = None
    if src is None:		# the earlier form
        src, shape = dst, tuple(reversed(dst.shape)) if axes is None else \
            tuple(dst.shape[a] for a in axes)
        result = dst = tile(shape, src.dtype, sbuf)
    c, options = _dma(dst, src, priority, oob_mode, dge_mode, None)
    order = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}
    axes = tuple(axes) if axes is not None else order.get(src.ndim)
    if axes not in order.values():
        raise NkiValidationError('nki.isa.dma_transpose: axes %r are not one of %s' %
                                 (axes, list(order.values())))
    c.call('dma_transpose', dst, src, **options)
    return _instruction if result is None else result


def dma_compute(dst, srcs, reduce_op, scales=None, unique_indices=True, oob_mode=oob_mode.error,
                name=None):
    c, options = _dma(dst, None, None, oob_mode, None, None)
    if _ops.name_of(reduce_op) != 'add':
        raise NkiValidationError('nki.isa.dma_compute: reduce_op is add')
    if scales is not None and any(s != 1.0 for s in scales):
        raise NkiValidationError('nki.isa.dma_compute: scales are 1.0')
    views = (_abi.nki_view * len(srcs))(*[s.view() for s in srcs])
    c.keep.append((views, srcs))
    for s in srcs:
        s.storage.last = c.calls + 1
    c.call('dma_compute', dst, views, len(srcs), _ops.alu('add'), oob_mode=options['oob_mode'],
           duplicate_indices=not unique_indices)
    return _instruction


@_instr(old='src')
def tensor_copy(dst, src, engine=engine.unknown, name=None):
    current().call('tensor_copy', dst, src, engine=_engine(engine))


@_instr(old='shape value', shape=lambda a: a.shape)
def _memset(dst, value, engine=engine.unknown, shape=None, name=None):
    current().call('memset', dst, float(value), engine=_engine(engine))


def memset(dst=None, value=None, engine=engine.unknown, name=None, shape=None, dtype=None):
    if not isinstance(dst, NkiTensor):
        t = tile(shape or dst, dtype or 'float32', sbuf)
        _memset(dst=t, value=value, engine=engine)
        return t
    return _memset(dst=dst, value=value, engine=engine)


@_instr()
def tensor_copy_predicated(dst, src, predicate, reverse_pred=False, name=None):
    is_tile = isinstance(src, NkiTensor)
    current().call('tensor_copy_predicated', dst, src if is_tile else None, predicate,
                   scalar=None if is_tile else src, reverse_pred=reverse_pred)


# ---- tensor engine ---------------------------------------------------------------------

def _overlap(a, b):
    return a[0] < b[1] and b[0] < a[1] and a[2] < b[3] and b[2] < a[3]


def _accumulates(dst, accumulate):
    """None: the first product of a region overwrites, later ones add."""
    last = dst.offset + sum((n - 1) * max(0, s) for n, s in zip(dst.free, dst.strides[1:]))
    here = (dst.part, dst.part + dst.shape[0], dst.offset, last + 1)
    known = dst.storage.products
    if accumulate is None:
        accumulate = any(_overlap(here, r) for r in known)
    if here not in known:
        known.append(here)
    return accumulate


def _tile_options(tile_position, tile_size):
    out = {}
    if tile_position:
        out['tile_position'] = _pair(tile_position)
    if tile_size:
        out['tile_size'] = _pair(tile_size)
    return out


def _pair(values):
    import ctypes
    return (ctypes.c_uint * 2)(*values)


def _matmul_shape(a):
    n = 1
    for s in a.moving.free:
        n *= s
    if _value(getattr(a, 'perf_mode', None)) == 1:
        n //= 2
        return (a.stationary.size // a.stationary.shape[0] // 2, n)
    return (a.stationary.size // a.stationary.shape[0], n)


@_instr(old='stationary moving', shape=_matmul_shape, dtype=lambda a: 'float32',
        buffer=lambda a: psum)
def nc_matmul(dst, stationary, moving, is_stationary_onezero=False, is_moving_onezero=False,
              is_transpose=False, accumulate=None, tile_position=(), tile_size=(),
              perf_mode=matmul_perf_mode.none, name=None):
    options = _tile_options(tile_position, tile_size)
    if _value(perf_mode):
        options['perf_mode'] = _value(perf_mode)
    if is_stationary_onezero:
        options['is_stationary_onezero'] = True
    if is_moving_onezero:
        options['is_moving_onezero'] = True
    current().call('nc_matmul', dst, stationary, moving,
                   accumulate=_accumulates(dst, accumulate) and not is_transpose,
                   is_transpose=bool(is_transpose), **options)


@_instr()
def nc_matmul_mx(dst, stationary, moving, stationary_scale, moving_scale, tile_position=None,
                 tile_size=None, accumulate=None, name=None):
    current().call('nc_matmul_mx', dst, stationary, moving, stationary_scale, moving_scale,
                   accumulate=_accumulates(dst, accumulate),
                   **_tile_options(tile_position, tile_size))


@_instr(old='data', shape=lambda a: (a.data.size // a.data.shape[0], a.data.shape[0]),
        buffer=lambda a: sbuf if getattr(a, 'engine', None) is engine.vector else psum)
def nc_transpose(dst, data, engine=engine.unknown, name=None):
    current().call('nc_transpose', dst, data, engine=_engine(engine))


# ---- scalar engine ---------------------------------------------------------------------

def _bias(bias):
    if isinstance(bias, NkiTensor) or bias is None:
        return bias
    return float(bias)


@_instr(old='op data')
def activation(dst, op, data, bias=None, scale=1.0, reduce_op=None, reduce_res=None,
               reduce_cmd=reduce_cmd.idle, name=None):
    current().call('activation', dst, _ops.activation(op), data, bias=_bias(bias),
                   scale=None if scale is None else scale,
                   reduce_op=_ops.alu(reduce_op) if reduce_op is not None else None,
                   reduce_res=reduce_res, reduce_cmd=_value(reduce_cmd))


@_instr(old='op data')
def activation_reduce(dst, op, data, reduce_op=None, reduce_res=None, bias=None, scale=1.0,
                      name=None):
    current().call('activation_reduce', dst, _ops.activation(op), data, _ops.alu(reduce_op),
                   reduce_res, bias=_bias(bias), scale=scale)


@_instr()
def activate2(dst, op, data, imm0, imm1, op0, op1, relu_param=0.0, reverse0=False, reverse1=False,
              reduce_op=None, reduce_res=None, reduce_cmd=reduce_cmd.idle, name=None):
    current().call('activate2', dst, _ops.activation(op), data, imm0, imm1, _ops.alu(op0),
                   _ops.alu(op1), relu_param=relu_param, reverse0=reverse0, reverse1=reverse1,
                   reduce_op=_ops.alu(reduce_op) if reduce_op is not None else None,
                   reduce_res=reduce_res, reduce_cmd=_value(reduce_cmd))


# ---- vector engine ----------------------------------------------------------------------

@_instr(old='data1 data2 op',
        dtype=lambda a: _dtypes.promote(a.data1.dtype, a.data2.dtype))
def tensor_tensor(dst, data1, data2, op, engine=engine.unknown, name=None):
    current().call('tensor_tensor', dst, data1, data2, _ops.alu(op), engine=_engine(engine))


@_instr(old='data op0 operand0 reverse0 op1 operand1 reverse1')
def tensor_scalar(dst, data, op0, operand0, reverse0=False, op1=None, operand1=None, reverse1=False,
                  engine=engine.unknown, name=None):
    options = {}
    if op1 is not None:
        options = dict(op1=_ops.alu(op1), operand1=_scalar(operand1, op1), reverse1=reverse1)
    current().call('tensor_scalar', dst, data, _ops.alu(op0), _scalar(operand0, op0),
                   reverse0=reverse0, engine=_engine(engine), **options)


@_instr(old='data op0 operand0 op1 operand1 reverse0 reverse1')
def scalar_tensor_tensor(dst, data, op0, operand0, op1, operand1, reverse0=False, reverse1=False,
                         name=None):
    current().call('scalar_tensor_tensor', dst, data, _ops.alu(op0), operand0, _ops.alu(op1),
                   operand1, reverse0=reverse0, reverse1=reverse1)


@_instr(old='data op0 operand0 reduce_op reduce_res')
def tensor_scalar_reduce(dst, data, op0, operand0, reduce_op, reduce_res=None, reverse0=False,
                         reduce_cmd=reduce_cmd.reset_reduce, reduce_init=None,
                         reduce_res_negate=False, name=None):
    current().call('tensor_scalar_reduce', dst, data, _ops.alu(op0), _scalar(operand0, op0),
                   _ops.alu(reduce_op), reduce_res, reverse0=reverse0,
                   reduce_cmd=_value(reduce_cmd), reduce_init=reduce_init,
                   reduce_res_negate=reduce_res_negate)


@_instr(old='src op0 op1 imm0')
def tensor_scalar_cumulative(dst, src, op0, op1, imm0, imm1=None,
                             reduce_cmd=reduce_cmd.reset_reduce, name=None):
    current().call('tensor_scalar_cumulative', dst, src, _ops.alu(op0), _ops.alu(op1), imm0,
                   imm1=imm1, reduce_cmd=_value(reduce_cmd))


@_instr(old='data0 data1 initial op0 op1 reverse0 reverse1', dtype=lambda a: 'float32')
def tensor_tensor_scan(dst, data0, data1, initial, op0, op1, reverse0=False, reverse1=False,
                       name=None):
    current().call('tensor_tensor_scan', dst, data0, data1, initial, _ops.alu(op0), _ops.alu(op1),
                   reverse0=reverse0, reverse1=reverse1)


def _axes(data, axis):
    """The free axes that are reduced, which are moved to the end."""
    axes = sorted(a % data.ndim for a in (axis if isinstance(axis, (list, tuple)) else [axis]))
    if not axes or axes[0] == 0:
        raise NkiValidationError('axis %r of %r: free axes are 1 to %d; partitions are reduced by '
                                 'tensor_partition_reduce' % (axis, data, data.ndim - 1))
    return axes


def _reduced_shape(a):
    axes = _axes(a.data, a.axis)
    if getattr(a, 'keepdims', False):
        return tuple(1 if i in axes else s for i, s in enumerate(a.data.shape))
    out = tuple(s for i, s in enumerate(a.data.shape) if i not in axes)
    return out if len(out) > 1 else out + (1,)


@_instr(old='op data axis', shape=_reduced_shape)
def tensor_reduce(dst, op, data, axis, negate=False, keepdims=False, name=None):
    axes = _axes(data, axis)
    order = [i for i in range(data.ndim) if i not in axes] + axes
    current().call('tensor_reduce', dst, _ops.alu(op), data.permute(order), data.ndim - len(axes),
                   negate=negate)


@_instr(old='op data', shape=lambda a: (1,) + a.data.free)
def tensor_partition_reduce(dst, op, data, name=None):
    code = _abi.ALU['average'] if _ops.name_of(op) in ('average', 'mean') and \
        'average' in _abi.ALU else _ops.alu(op)
    current().call('tensor_partition_reduce', dst, code, data)


@_instr(old='data')
def reciprocal(dst, data, name=None):
    current().call('reciprocal', dst, data)


@_instr(old='data', shape=lambda a: (a.data.shape[0], 6), dtype=lambda a: 'float32')
def bn_stats(dst, data, name=None):
    current().call('bn_stats', dst, data)


@_instr(old='data', shape=lambda a: (a.data.shape[0], 2))
def bn_aggr(dst, data, name=None):
    current().call('bn_aggr', dst, data)


@_instr(old='src', shape=lambda a: (a.src.shape[0], 8))
def max8(dst, src, name=None):
    current().call('max8', dst, src)


@_instr(old='data vals', shape=lambda a: (a.data.shape[0], 8), dtype=lambda a: 'uint32')
def nc_find_index8(dst, data, vals, name=None):
    current().call('nc_find_index8', dst, data, vals)


@_instr(old='data vals imm')
def nc_match_replace8(dst, data, vals, imm, dst_idx=None, name=None):
    current().call('nc_match_replace8', dst, data, vals, float(imm), dst_idx=dst_idx)


def nc_stream_shuffle(dst=None, src=None, shuffle_mask=None, name=None):
    if shuffle_mask is None:
        raise NkiValidationError('nki.isa.nc_stream_shuffle: shuffle_mask has 32 entries')
    if not isinstance(dst, NkiTensor) or not isinstance(src, NkiTensor):
        raise NkiValidationError('nki.isa.nc_stream_shuffle: dst and src are tiles')
    import ctypes
    mask = (ctypes.c_uint8 * 32)(*[int(m) for m in shuffle_mask])
    current().keep.append(mask)
    current().call('nc_stream_shuffle', dst, src, ctypes.addressof(mask))
    return _instruction


@_instr(old='data prob')
def dropout(dst, data, prob, name=None):
    current().call('dropout', dst, data, prob)


@_instr(old='predicate on_true on_false', shape=lambda a: a.on_true.shape,
        dtype=lambda a: a.on_true.dtype)
def select_reduce(dst, predicate, on_true, on_false, reduce_res=None, reduce_cmd=reduce_cmd.idle,
                  reduce_op=None, reverse_pred=False, name=None):
    c = current()
    if reduce_res is None and not _value(reduce_cmd) and not reverse_pred:
        c.call('select', dst, predicate, on_true, on_false)
        return
    c.call('select_reduce', dst, predicate, on_true, on_false, reduce_res=reduce_res,
           reduce_cmd=_value(reduce_cmd),
           reduce_op=_ops.alu(reduce_op) if reduce_op is not None else _abi.ALU['maximum'],
           reverse_pred=reverse_pred)


@_instr(old='on_true_tile comp_op0 comp_op1 bound0 bound1')
def range_select(dst, on_true_tile, comp_op0, comp_op1, bound0, bound1,
                 reduce_cmd=reduce_cmd.reset_reduce, reduce_res=None, reduce_op=None, range_start=0,
                 on_false_value=None, name=None):
    current().call('range_select', dst, on_true_tile, _ops.alu(comp_op0), _ops.alu(comp_op1), bound0,
                   bound1, reduce_cmd=_value(reduce_cmd), reduce_res=reduce_res,
                   reduce_op=_ops.alu(reduce_op) if reduce_op is not None else _abi.ALU['maximum'],
                   range_start=int(range_start))


@_instr()
def exponential(dst, src, max_value=0.0, reduce_res=None, reduce_cmd=reduce_cmd.idle,
                reduce_init=0.0, name=None):
    current().call('exponential', dst, src, max_value=max_value, reduce_res=reduce_res,
                   reduce_cmd=_value(reduce_cmd), reduce_init=reduce_init)


def quantize_mx(dst, src, dst_scale, name=None):
    current().call('quantize_mx', dst, src, dst_scale)
    return _instruction


# ---- random numbers ----------------------------------------------------------------------

@_instr()
def rng(dst, engine=engine.vector, name=None):
    current().call('rng', dst, engine=_engine(engine))


def set_rng_seed(src_seeds, name=None):
    current().call('set_rng_seed', src_seeds)
    return _instruction


def rand_set_state(src_seeds, engine=engine.gpsimd, name=None):
    current().call('rand_set_state', src_seeds, engine=_engine(engine))
    return _instruction


def rand_get_state(dst, engine=engine.gpsimd, name=None):
    current().call('rand_get_state', dst, engine=_engine(engine))
    return _instruction


@_instr()
def rand2(dst, min, max, name=None):
    current().call('rand2', dst, min, max)


# ---- GpSimd -------------------------------------------------------------------------------

def _pattern(pattern):
    p = _abi.nki_pattern()
    if len(pattern) > len(p.dim):
        raise NkiValidationError('a pattern has at most %d dimensions' % len(p.dim))
    for i, (step, num) in enumerate(pattern):
        p.dim[i].step, p.dim[i].num = int(step), int(num)
    return p


@_instr()
def _iota(dst, pattern, offset=0, channel_multiplier=0, name=None):
    current().call('iota', dst, _pattern(pattern), offset=int(offset),
                   channel_multiplier=int(channel_multiplier))


def iota(dst, pattern=None, offset=0, channel_multiplier=0, name=None, dtype=None):
    from ._index import Index
    if not isinstance(dst, Index):
        return _iota(dst=dst, pattern=pattern, offset=offset, channel_multiplier=channel_multiplier)
    # The earlier form: an index expression becomes a tile of its values.
    index, axes = dst, dst.axes
    terms = dict(index.terms)
    cm = terms.pop(axes[0], 0) if axes[0] else 0
    free = [[terms.get(v, 0) if v else 0, v.size if v else 1] for v in axes[1:]] or [[0, 1]]
    t = tile(index.shape, dtype or 'int32', sbuf)
    _iota(dst=t, pattern=free, offset=index.const, channel_multiplier=cm)
    return t


def affine_select(dst=None, pattern=None, channel_multiplier=0, on_true_tile=None,
                  on_false_value=0.0, cmp_op=None, offset=0, name=None, pred=None, dtype=None):
    result = None
    if isinstance(pred, Mask) or isinstance(dst, Mask):	# the earlier form
        mask = pred if isinstance(pred, Mask) else dst
        if isinstance(dst, Mask) and isinstance(pattern, NkiTensor):
            on_true_tile, on_false_value = pattern, channel_multiplier or on_false_value
        (index, bound), = mask.conditions
        index = index * -1 + bound	# index <= bound: bound - index >= 0
        terms, axes = dict(index.terms), index.axes
        channel_multiplier = terms.pop(axes[0], 0) if axes[0] else 0
        pattern = [[terms.get(v, 0) if v else 0, v.size if v else 1] for v in axes[1:]]
        offset, cmp_op = index.const, 'equal' if mask.exact else 'greater_equal'
        result = dst = tile(on_true_tile.shape, dtype or on_true_tile.dtype, sbuf)
    current().call('affine_select', dst, _pattern(pattern), int(channel_multiplier), on_true_tile,
                   float(on_false_value), cmp_op=_ops.alu(cmp_op or 'equal'), offset=int(offset))
    return _instruction if result is None else result


@_instr(old='src_buffer index num_elem_per_idx num_valid_indices',
        shape=lambda a: (a.src_buffer.shape[0], a.index.shape[-1] * 16 *
                         getattr(a, 'num_elem_per_idx', 1)),
        dtype=lambda a: a.src_buffer.dtype)
def local_gather(dst, src_buffer, index, num_elem_per_idx=1, num_valid_indices=None, name=None):
    current().call('local_gather', dst, src_buffer, index, num_elem_per_idx=num_elem_per_idx,
                   num_valid_indices=num_valid_indices or 0)


@_instr(old='data indices', shape=lambda a: a.indices.shape)
def nc_n_gather(dst, data, indices, name=None):
    current().call('nc_n_gather', dst, data, indices)


@_instr(old='segment_ids', shape=lambda a: (1, 2, a.segment_ids.shape[-1]),
        dtype=lambda a: a.segment_ids.dtype)
def sequence_bounds(dst, segment_ids, name=None):
    current().call('sequence_bounds', dst, segment_ids)


@_instr()
def nonzero_with_count(dst, src, index_offset=0, padding_val=-1, name=None):
    current().call('nonzero_with_count', dst, src, index_offset=int(index_offset),
                   padding_val=integer(padding_val))


def topk(val_dst, idx_dst, src, n, name=None):
    current().call('topk', val_dst, idx_dst, src, int(n))
    return _instruction


# ---- several cores ---------------------------------------------------------------------------

def sendrecv(src, dst, send_to_rank, recv_from_rank, pipe_id, dma_engine=dma_engine.dma, name=None):
    current().call('sendrecv', src, dst, int(send_to_rank), int(recv_from_rank), int(pipe_id),
                   dma_engine=_value(dma_engine))
    return _instruction


def core_barrier(data, cores, engine=engine.gpsimd, name=None):
    if sorted(cores) != [0, 1]:
        raise NkiValidationError('nki.isa.core_barrier: cores are (0, 1)')
    current().call('core_barrier', data, engine=_engine(engine))
    return _instruction


# ---- registers --------------------------------------------------------------------------------

def register_alloc(x=None):
    """A new register; an integer or a 1 x 1 tile sets it."""
    if isinstance(x, NkiTensor):
        return load_register(x)
    c = current()
    reg = Reg(c.call('register_alloc'))
    if x is not None:
        c.call('register_move', reg, integer(x))
    return reg


def register_move(dst, src):
    current().call('register_move', dst, integer(src))


def register_load(dst, src):
    current().call('register_load', dst, src)


def register_store(dst, src):
    current().call('register_store', dst, src)


