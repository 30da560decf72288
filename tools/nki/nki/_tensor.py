# SPDX-License-Identifier: MIT
"""Tensors of a kernel: memory in HBM, SBUF or PSUM, and views of it."""
import ctypes as C
import weakref

from . import _abi, _dtypes
from ._context import NkiValidationError, Reg, Retrace, current
from ._index import Index

MAX_DIMS = 6


class MemoryRegion:
    """Where a tensor is: nl.sbuf, nl.psum, nl.private_hbm or nl.shared_hbm."""

    def __init__(self, name, space):
        self.name, self.space = name, space

    def __repr__(self):
        return 'nki.language.%s' % self.name


sbuf = MemoryRegion('sbuf', _abi.CONST['NEURON_SPACE_SBUF'])
psum = MemoryRegion('psum', _abi.CONST['NEURON_SPACE_PSUM'])
private_hbm = MemoryRegion('private_hbm', _abi.CONST['NEURON_SPACE_HBM'])
shared_hbm = MemoryRegion('shared_hbm', _abi.CONST['NEURON_SPACE_HBM'])
hbm = shared_hbm


def region(buffer):
    if buffer is None:
        return sbuf
    if isinstance(buffer, MemoryRegion):
        return buffer
    regions = {'sbuf': sbuf, 'psum': psum, 'private_hbm': private_hbm, 'shared_hbm': shared_hbm,
               'hbm': hbm}
    if buffer in regions:
        return regions[buffer]
    raise NkiValidationError('buffer %r is not one of %s' % (buffer, ', '.join(regions)))


class Storage:
    """Memory: the builder's view of all of it. A tile is given back with its last view."""

    def __init__(self, context, base, buffer, shape, dtype, name, kind):
        self.context, self.base, self.buffer = context, base, buffer
        self.k = context.k	# of the core
        self.shape, self.dtype, self.name, self.kind = shape, dtype, name, kind
        self.depth = context.loop_depth
        self.products = []	# regions of a PSUM tile that matrix products wrote
        self.last = context.calls + 1	# a tile that nobody uses
        self.given_back = False
        if buffer in (sbuf, psum):
            if context.dry:
                context.tiles.append(self)
            elif context.last_use is not None:
                context.tiles.append(weakref.proxy(self))

    def give_back(self):
        try:
            self._give_back()
        except ReferenceError:	# its object is gone already
            pass

    def _give_back(self):
        c = self.context
        if self.buffer in (sbuf, psum) and c.k and not c.dry and not self.given_back and \
                c.loop_depth == self.depth:
            self.given_back = True
            loc = _abi.nki_loc(b'', 0, b'free')
            c.keep.append(loc)
            c.lib.nki_free_(self.k, loc, self.base)

    def __del__(self):
        try:
            self._give_back()
        except Exception:	# the interpreter is ending
            pass




def _contiguous(shape):
    strides, n = [], 1
    for size in reversed(shape):
        strides.insert(0, n)
        n *= size
    return strides


def _uint32s(values):
    return (C.c_uint32 * len(values))(*values)


class NkiTensor:
    """A view: shape, strides and offset in elements, as in numpy.

    Of a tile (SBUF, PSUM) dimension 0 is the partition; its stride is that of the
    tile's free elements and only says that partitions are contiguous.
    """

    def __init__(self, storage, shape, strides, offset=0, part=0, dtype=None, dynamic=None,
                 index=None, indirect=None):
        self.storage = storage
        self.shape, self.strides = tuple(shape), tuple(strides)
        self.offset, self.part = offset, part
        self.dtype = dtype or storage.dtype
        self.dynamic = dynamic		# (register, elements per unit)
        self.index = index		# (P, 1) tile of row numbers
        self.indirect_index = indirect
        self.axes = None		# variables of index arrays, by dimension
        self.outside = None		# what is wrong unless a mask leaves it out

    # ---- what it is -----------------------------------------------------------

    @property
    def buffer(self):
        return self.storage.buffer

    @property
    def name(self):
        return self.storage.name

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def size(self):
        n = 1
        for s in self.shape:
            n *= s
        return n

    @property
    def is_tile(self):
        return self.storage.buffer in (sbuf, psum)

    @property
    def free(self):
        return self.shape[1:]

    def is_contiguous(self):
        first = 1 if self.is_tile else 0
        return list(self.strides[first:]) == _contiguous(self.shape[first:])

    def is_indirect(self):
        return self.index is not None or self.dynamic is not None

    def get_pattern(self):
        return [[st, n] for st, n in zip(self.strides, self.shape)]

    def __repr__(self):
        return '<%s %s %s %s>' % (self.name or 'tensor', self.dtype, list(self.shape),
                                  self.buffer.name)

    def __len__(self):
        return self.shape[0]

    def __bool__(self):
        raise NkiValidationError(
            'the value of %r is known on the chip only: use nl.where, a register with '
            'nl.while_loop, or a static Python value' % self)

    def copy_of(self, **changes):
        fields = dict(shape=self.shape, strides=self.strides, offset=self.offset, part=self.part,
                      dtype=self.dtype, dynamic=self.dynamic, index=self.index,
                      indirect=self.indirect_index)
        fields.update(changes)
        return NkiTensor(self.storage, **fields)

    # ---- for the builder --------------------------------------------------------

    def view(self, dtype=None):
        """With @dtype: the same bytes as another type (nl); without: the builder's view."""
        if dtype is not None:
            return self.as_type(dtype)
        if self.outside:
            raise IndexError(self.outside)
        shape, strides = list(self.shape), list(self.strides)
        if not self.is_tile and not shape:
            shape, strides = [1], [1]
        if len(shape) > MAX_DIMS:
            shape, strides = self._merged()
        v = _abi.nki_view.from_buffer_copy(self.storage.base)
        v.dtype = _dtypes.code(self.dtype)
        v.dims = len(shape)
        v.num[:] = shape + [0] * (MAX_DIMS - len(shape))
        v.step[:] = strides + [0] * (MAX_DIMS - len(shape))
        if self.is_tile:
            v.step[0] = 1
            v.part += self.part
        v.offset += self.offset * _dtypes.size(self.dtype)
        if self.dynamic:
            v.reg = self.dynamic[0].reg
            v.reg_scale = self.dynamic[1] * _dtypes.size(self.dtype)
        c = self.storage.context
        if c.dry:
            return v
        if self.index is not None:
            v.num[0] = self.storage.shape[0]	# all rows; as many as indices come back
            v = c.lib.nki_gather_(c.k, c.loc('gather'), v, self.index.view())
            c.check()
        if self.indirect_index is not None:
            v = c.call('indirect', _Raw(v), self.indirect_index)
        return v

    def _merged(self):
        """Shape and strides with neighbours that are one run joined."""
        first = 1 if self.is_tile else 0
        shape, strides = list(self.shape[:first]), list(self.strides[:first])
        for n, st in zip(self.shape[first:], self.strides[first:]):
            if n == 1:
                continue
            if len(shape) > first and strides[-1] == n * st:
                shape[-1] *= n
                strides[-1] = st
            else:
                shape.append(n)
                strides.append(st)
        if len(shape) > MAX_DIMS:
            raise NkiValidationError('%r has %d dimensions that cannot be joined; an access '
                                     'pattern has %d' % (self, len(shape), MAX_DIMS))
        return shape, strides

    # ---- indexing -----------------------------------------------------------------

    def __getitem__(self, key):
        key = key if isinstance(key, tuple) else (key,)
        if any(isinstance(k, Index) for k in key):
            return self._affine(key)
        if Ellipsis in [k for k in key if not isinstance(k, NkiTensor)]:
            at = [i for i, k in enumerate(key) if k is Ellipsis][0]
            fill = self.ndim - (len(key) - 1 - sum(k is None for k in key))
            key = key[:at] + (slice(None),) * fill + key[at + 1:]
        out, dim = self, 0
        for k in key:
            if k is None:
                out = out.expand_dim(dim)
                dim += 1
            elif isinstance(k, (int, Reg, NkiTensor)) or hasattr(k, '__index__'):
                if dim >= out.ndim:
                    raise IndexError('%r has %d dimensions' % (self, self.ndim))
                if dim == 0 and out.is_tile:
                    out = out.slice(0, int(k), int(k) + 1)	# a tile keeps its partitions
                    dim += 1
                else:
                    out = out.select(dim, k)
            else:
                out = out._slice_key(dim, k)
                dim += 1
        return out

    def _slice_key(self, dim, k):
        if dim >= self.ndim:
            raise IndexError('%r has %d dimensions' % (self, self.ndim))
        if isinstance(k, DynSlice):
            if isinstance(k.start, (Reg, NkiTensor)):
                return self.slice(dim, 0, k.size)._move(dim, k.start)
            return self.slice(dim, k.start, k.start + k.size)
        if not isinstance(k, slice):
            raise IndexError('%r cannot index a tensor' % (k,))
        n = self.shape[dim]
        start = 0 if k.start is None else k.start
        stop = n if k.stop is None else k.stop
        if isinstance(start, (Reg, NkiTensor)):
            raise NkiValidationError('a slice from a register has a static size: use nl.ds(start, size)')
        start, stop = (int(x) + n if x < 0 else int(x) for x in (start, stop))
        return self.slice(dim, start, stop, k.step or 1)

    def _affine(self, key):
        """Index arrays: strides of the result's axes from the coefficients."""
        if len(key) != self.ndim:
            raise IndexError('%d indices for %r' % (len(key), self))
        axes = ()
        for k in key:
            if isinstance(k, Index) and len(k.axes) > len(axes):
                axes = (None,) * (len(k.axes) - len(axes)) + axes
            if isinstance(k, Index):
                pad = (None,) * (len(axes) - len(k.axes)) + k.axes
                axes = tuple(a or b for a, b in zip(axes, pad))
        offset, part, strides = self.offset, self.part, {v: 0 for v in axes if v}
        low_part, outside, rows = None, None, None
        for dim, k in enumerate(key):
            if isinstance(k, NkiTensor) and dim == 0 and not self.is_tile:
                rows = k	# row numbers: the first axis follows the tile's partitions
                continue
            if not isinstance(k, (Index, int)):
                raise IndexError('index arrays go with integers, not with %r' % (k,))
            const = k.const if isinstance(k, Index) else k
            terms = k.terms if isinstance(k, Index) else {}
            high = const + sum(c * (v.size - 1) for v, c in terms.items() if c > 0)
            low = const + sum(c * (v.size - 1) for v, c in terms.items() if c < 0)
            if low < 0 or high >= self.shape[dim]:
                outside = 'elements %d to %d of dimension %d of %r' % (low, high, dim, self)
            if dim == 0 and self.is_tile:
                part += const
                low_part = terms
                continue
            offset += const * self.strides[dim]
            for v, c in terms.items():
                strides[v] += c * self.strides[dim]
        out_axes = list(axes)
        if self.is_tile:
            moving = [v for v, c in low_part.items() if c]
            if len(moving) > 1 or any(low_part[v] != 1 for v in moving):
                raise NkiValidationError('partitions are contiguous and follow one index')
            first = moving[0] if moving else None
            if first is not None and out_axes[0] is not first:
                raise NkiValidationError('the partition index must be the first axis')
            if first is None and out_axes and out_axes[0] is not None:
                out_axes.insert(0, None)
        if rows is not None and (not out_axes or out_axes[0] is not None):
            out_axes.insert(0, None)
        shape = [v.size if v else 1 for v in out_axes]
        steps = [strides.get(v, 0) if v else 0 for v in out_axes]
        if rows is not None:
            shape[0], steps[0] = rows.shape[0], self.strides[0]
        out = NkiTensor(self.storage, shape, steps, offset, part, self.dtype, index=rows)
        out.axes, out.outside, out.parent = out_axes, outside, (self, key)
        return out

    def clip(self, mask):
        """Only the elements that the mask leaves in."""
        limits = mask.limits()
        if limits is None or 0 in limits.values():
            return None
        if self.axes is None:
            axes = {v: d for i, _ in mask.conditions for d, v in enumerate(i.axes) if v}
            out = self
            for v, n in limits.items():
                if axes[v] >= out.ndim:
                    continue
                out = out.slice(axes[v], 0, min(n, out.shape[axes[v]]))
            return out
        tensor, key = self.parent
        new = {v: type(v)(n) for v, n in limits.items()}
        return tensor[tuple(k.replace(new) if isinstance(k, Index) else k for k in key)]

    def __setitem__(self, key, value):
        from . import language
        language.assign(self[key], value)

    # ---- views ------------------------------------------------------------------------

    def slice(self, dim, start, end, step=1):
        n = self.shape[dim]
        if start < 0 or end > n or start >= end or step < 1:
            raise NkiValidationError('elements %d to %d, step %d, of dimension %d of %r' %
                                     (start, end - 1, step, dim, self))
        shape, strides = list(self.shape), list(self.strides)
        shape[dim] = (end - start + step - 1) // step
        if dim == 0 and self.is_tile:
            if step != 1:
                raise NkiValidationError('partitions are contiguous: step %d' % step)
            return self.copy_of(shape=shape, part=self.part + start)
        offset = self.offset + start * strides[dim]
        strides[dim] *= step
        return self.copy_of(shape=shape, strides=strides, offset=offset)

    def _move(self, dim, amount):
        """Start at element @amount (a register, or a 1 x 1 tile that is loaded to one)."""
        if self.dynamic:
            raise NkiValidationError('%r: one dynamic offset per view' % self)
        if dim == 0 and self.is_tile:
            raise NkiValidationError('a partition cannot be chosen by a register')
        if isinstance(amount, NkiTensor):
            amount = load_register(amount)
        return self.copy_of(dynamic=(amount, self.strides[dim]))

    def select(self, dim, index):
        if isinstance(index, (Reg, NkiTensor)):
            return self.slice(dim, 0, 1)._move(dim, index).squeeze_dim(dim)
        index = int(index)
        n = self.shape[dim]
        if not -n <= index < n:
            raise IndexError('element %d of dimension %d of %r' % (index, dim, self))
        return self.slice(dim, index % n, index % n + 1).squeeze_dim(dim)

    def vector_select(self, dim, vector_offset):
        if dim:
            raise NkiValidationError('rows are gathered from dimension 0, not %d' % dim)
        return self.copy_of(shape=(vector_offset.shape[0],) + self.shape[1:], index=vector_offset)

    def squeeze_dim(self, dim):
        if self.shape[dim] != 1:
            raise NkiValidationError('dimension %d of %r has more than one element' % (dim, self))
        if dim == 0 and self.is_tile:
            raise NkiValidationError('a tile keeps its partition dimension')
        return self.copy_of(shape=self.shape[:dim] + self.shape[dim + 1:],
                            strides=self.strides[:dim] + self.strides[dim + 1:])

    def expand_dim(self, dim):
        stride = self.shape[dim] * self.strides[dim] if dim < self.ndim else 1
        if dim == 0 and self.is_tile:
            raise NkiValidationError('a new dimension cannot come before the partitions')
        return self.copy_of(shape=self.shape[:dim] + (1,) + self.shape[dim:],
                            strides=self.strides[:dim] + (stride,) + self.strides[dim:])

    def broadcast(self, dim, size):
        if self.shape[dim] not in (1, size):
            raise NkiValidationError('dimension %d of %r cannot be read %d times' % (dim, self, size))
        if self.shape[dim] == size:
            return self
        if dim == 0 and self.is_tile:
            raise NkiValidationError('partitions cannot be broadcast by a view: use nl.broadcast_to')
        shape, strides = list(self.shape), list(self.strides)
        shape[dim], strides[dim] = size, 0
        return self.copy_of(shape=shape, strides=strides)

    def broadcast_to(self, shape):
        from . import language
        return language.broadcast_to(self, shape)

    def permute(self, dims):
        if sorted(dims) != list(range(self.ndim)):
            raise NkiValidationError('permute%r of %r' % (tuple(dims), self))
        if self.is_tile and dims[0] != 0:
            raise NkiValidationError('dimension 0 of a tile is the partition and stays first')
        return self.copy_of(shape=[self.shape[d] for d in dims],
                            strides=[self.strides[d] for d in dims])

    def reshape_dim(self, dim, shape):
        shape = list(shape)
        if -1 in shape:
            known = 1
            for s in shape:
                known *= s if s != -1 else 1
            shape[shape.index(-1)] = self.shape[dim] // known
        n = 1
        for s in shape:
            n *= s
        if n != self.shape[dim] or (dim == 0 and self.is_tile and len(shape) > 1):
            raise NkiValidationError('dimension %d of %r cannot become %r' % (dim, self, shape))
        strides = [s * self.strides[dim] for s in _contiguous(shape)]
        return self.copy_of(shape=self.shape[:dim] + tuple(shape) + self.shape[dim + 1:],
                            strides=self.strides[:dim] + tuple(strides) + self.strides[dim + 1:])

    def flatten_dims(self, start_dim, end_dim):
        for d in range(start_dim, end_dim):
            if self.strides[d] != self.shape[d + 1] * self.strides[d + 1] and self.shape[d] != 1:
                raise NkiValidationError('dimensions %d and %d of %r are not one run' %
                                         (d, d + 1, self))
        n = 1
        for s in self.shape[start_dim:end_dim + 1]:
            n *= s
        return self.copy_of(
            shape=self.shape[:start_dim] + (n,) + self.shape[end_dim + 1:],
            strides=self.strides[:start_dim] + (self.strides[end_dim],) + self.strides[end_dim + 1:])

    def reshape(self, *shape):
        shape = list(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else list(shape)
        first = 1 if self.is_tile else 0
        n = 1
        for s in shape:
            n *= s if s != -1 else 1
        if -1 in shape:
            shape[shape.index(-1)] = self.size // n
            n = self.size
        if n != self.size or (first and shape[0] != self.shape[0]) or not self.is_contiguous():
            raise NkiValidationError('%r cannot become %r: same elements, in one run, '
                                     'and partitions stay' % (self, tuple(shape)))
        return self.copy_of(shape=shape, strides=[0] * first + _contiguous(shape[first:]))

    def rearrange(self, src_pattern, dst_pattern, fixed_sizes=None):
        """Names for dimensions, a tuple for one that is split or joined."""
        sizes, out = dict(fixed_sizes or {}), self
        names = []
        for dim, item in enumerate(src_pattern):
            parts = item if isinstance(item, (tuple, list)) else (item,)
            n = self.shape[dim]
            unknown = [p for p in parts if p not in sizes]
            if len(unknown) > 1:
                raise NkiValidationError('the sizes of %s are not known' % ', '.join(unknown))
            for p in parts:
                if p in sizes:
                    n //= sizes[p]
            for p in unknown:
                sizes[p] = n
            if len(parts) > 1:
                out = out.reshape_dim(len(names), [sizes[p] for p in parts])
            names += parts
        flat = [p for item in dst_pattern
                for p in (item if isinstance(item, (tuple, list)) else (item,))]
        out = out.permute([names.index(p) for p in flat])
        at = 0
        for item in dst_pattern:
            n = len(item) if isinstance(item, (tuple, list)) else 1
            if n > 1:
                out = out.flatten_dims(at, at + n - 1)
            at += 1
        return out

    def as_type(self, dtype):
        """The same bytes as @dtype; the last dimension grows or shrinks with its size."""
        name = _dtypes.name_of(dtype)
        old, new = _dtypes.size(self.dtype), _dtypes.size(name)
        if old == new:
            return self.copy_of(dtype=name)
        first = 1 if self.is_tile else 0
        if self.ndim <= first or self.strides[-1] != 1 or self.shape[-1] * old % new or \
                self.offset * old % new or any(s * old % new for s in self.strides[first:-1]):
            raise NkiValidationError('%r cannot be seen as %s' % (self, name))
        strides = [s * old // new for s in self.strides[:-1]] + [1]
        return self.copy_of(dtype=name, shape=self.shape[:-1] + (self.shape[-1] * old // new,),
                            strides=strides, offset=self.offset * old // new)

    reinterpret_cast = as_type

    def astype(self, dtype):
        from . import language
        return language.copy(self, dtype=dtype)

    def ap(self, pattern, offset=None, scalar_offset=None, vector_offset=None, indirect_dim=0,
           dtype=None):
        """An access pattern: [step, num] pairs, outermost first, over the whole tensor."""
        base = self if dtype is None else self.copy_of(dtype=_dtypes.name_of(dtype))
        start = base.offset if offset is None else offset
        shape, strides = [n for _, n in pattern], [st for st, _ in pattern]
        part = self.part
        if self.is_tile:
            per_partition = 1
            for n in self.storage.shape[1:]:
                per_partition *= n
            per_partition = per_partition * _dtypes.size(self.storage.dtype) // \
                _dtypes.size(base.dtype)
            if offset is not None:
                part, start = offset // per_partition, offset % per_partition
        out = base.copy_of(shape=shape, strides=strides, offset=start, part=part)
        if vector_offset is not None:
            return out.copy_of(shape=[vector_offset.shape[0]] + shape[1:], index=vector_offset)
        if scalar_offset is not None:
            scale = 1
            for n in self.storage.shape[indirect_dim + 1:]:
                scale *= n
            reg = scalar_offset
            if isinstance(reg, NkiTensor):
                reg = load_register(reg)
            return out.copy_of(dynamic=(reg, scale))
        return out

    def indirect(self, index, num_elem=None):
        n = num_elem if num_elem is not None else index.shape[-1]
        return self.copy_of(shape=(self.shape[0], n), strides=(0, 1), indirect=index)

    # ---- operators: see language.py ---------------------------------------------------

    def _binary(self, name, x, y):
        from . import language
        return getattr(language, name)(x, y)

    def __add__(self, other):
        return self._binary('add', self, other)

    def __radd__(self, other):
        return self._binary('add', other, self)

    def __sub__(self, other):
        return self._binary('subtract', self, other)

    def __rsub__(self, other):
        return self._binary('subtract', other, self)

    def __mul__(self, other):
        return self._binary('multiply', self, other)

    def __rmul__(self, other):
        return self._binary('multiply', other, self)

    def __truediv__(self, other):
        return self._binary('divide', self, other)

    def __rtruediv__(self, other):
        return self._binary('divide', other, self)

    def __pow__(self, other):
        return self._binary('power', self, other)

    def __mod__(self, other):
        return self._binary('mod', self, other)

    def __neg__(self):
        from . import language
        return language.negative(self)

    def __invert__(self):
        from . import language
        return language.invert(self)

    def __lt__(self, other):
        return self._binary('less', self, other)

    def __le__(self, other):
        return self._binary('less_equal', self, other)

    def __gt__(self, other):
        return self._binary('greater', self, other)

    def __ge__(self, other):
        return self._binary('greater_equal', self, other)

    def __and__(self, other):
        return self._binary('bitwise_and', self, other)

    def __or__(self, other):
        return self._binary('bitwise_or', self, other)

    def __xor__(self, other):
        return self._binary('bitwise_xor', self, other)

    def __iadd__(self, other):
        return self._in_place('add', other)

    def __isub__(self, other):
        return self._in_place('subtract', other)

    def __imul__(self, other):
        return self._in_place('multiply', other)

    def __itruediv__(self, other):
        return self._in_place('divide', other)

    def _in_place(self, name, other):
        from . import language
        language.assign_op(self, name, other)
        return self


class _Raw:
    """The builder's view, passed through."""

    def __init__(self, v):
        self.v = v

    def view(self):
        return self.v


class DynSlice:
    """nl.ds(start, size)"""

    def __init__(self, start, size):
        self.start, self.size = start, size


def whole(storage):
    first = 1 if storage.buffer in (sbuf, psum) else 0
    strides = _contiguous(storage.shape[first:])
    if first:
        strides = [strides[0] * storage.shape[1] if strides else 1] + strides
    return NkiTensor(storage, storage.shape, strides)


def tile(shape, dtype, buffer, name=''):
    """A new tile."""
    c = current()
    shape = [int(s) for s in shape]
    if not shape:
        raise NkiValidationError('a tile has at least the partition dimension')
    buffer = region(buffer)
    base = c.call('tile', buffer.space, _dtypes.code(dtype), _uint32s(shape), len(shape))
    return whole(Storage(c, base, buffer, tuple(shape), _dtypes.name_of(dtype), name, 'tile'))


def hbm_tensor(shape, dtype, name, kind, data=None):
    """A tensor of the program; kind: INPUT, OUTPUT, SCRATCH or CONST."""
    c = current()
    shape = [int(s) for s in shape] or [1]
    base = c.call('tensor', _abi.CONST['NKI_TENSOR_' + kind], name.encode(), _dtypes.code(dtype),
                  data, _uint32s(shape), len(shape))
    return Storage(c, base, private_hbm if kind in ('SCRATCH', 'CONST') else shared_hbm,
                   tuple(shape), _dtypes.name_of(dtype), name, kind)


def will_write(t):
    """An input that is written to is an output that starts with the caller's data."""
    s = t.storage
    if s.kind == 'INPUT':
        s.context.written.add(s.name)
        raise Retrace
    if s.kind == 'CONST':
        raise NkiValidationError('%r is constant' % t)


def load_register(t):
    """A new register with the value of a 1 x 1 tile."""
    c = current()
    reg = Reg(c.call('register_alloc'))
    c.call('register_load', reg, t)
    return reg
