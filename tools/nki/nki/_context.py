# SPDX-License-Identifier: MIT
"""The program being traced, and calls of the builder with Python's file and line."""
import ctypes as C
import os
import sys
import threading

from . import _abi, _dtypes, _lib

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_local = threading.local()


class NkiValidationError(Exception):
    """A kernel breaks a rule of the hardware or of the language."""


class Retrace(Exception):
    """Start again: an argument turned out to be written to."""


def current():
    context = getattr(_local, 'context', None)
    if context is None:
        raise NkiValidationError('nki operations run inside a kernel: call it through @nki.jit')
    return context


def active():
    return getattr(_local, 'context', None) is not None


class Reg:
    """A sequencer register (VirtualRegister of nki.isa)."""

    def __init__(self, reg):
        self.reg = reg

    def _alu(self, op, a, b):
        c = current()
        out = Reg(c.call('register_alloc'))
        c.call('register_alu', out, _abi.ALU[op], integer(a), integer(b))
        return out

    def __add__(self, other):
        return self._alu('add', self, other)

    def __radd__(self, other):
        return self._alu('add', other, self)

    def __sub__(self, other):
        return self._alu('subtract', self, other)

    def __rsub__(self, other):
        return self._alu('subtract', other, self)

    def __mul__(self, other):
        return self._alu('multiply', self, other)

    def __rmul__(self, other):
        return self._alu('multiply', other, self)

    def __bool__(self):
        raise NkiValidationError('a register has its value on the chip only: use nl.while_loop')


def reg_struct(reg):
    return reg.reg if isinstance(reg, Reg) else reg


class Context:
    """One program: the builder's kernel and what Python must remember of it.

    inputs, outputs: lists of (name, storage). shared: HBM tensors by order of
    creation, which all instances of a launch grid share.

    A tile lives as long as its Python object, which gives loops two sets of tiles. When
    memory is too small for that, the kernel is traced dry (nothing is recorded) to learn
    by which call each tile is used last, and then again, giving it back right there.
    """

    def __init__(self, name, arch, written=(), dry=False, last_use=None):
        self.lib = _lib.builder()
        self.arch = arch
        self.k = self.lib.nki_kernel_new(name.encode(), arch.encode())
        if not self.k:
            raise MemoryError
        self.root, self.cores, self.core = self.k, 1, 0
        self.written = set(written)
        self.inputs, self.outputs, self.shared = [], [], []
        self.names, self.locs, self.keep = set(), {}, []
        self.program_ids, self.grid = (), ()
        self.shared_next = 0
        self.identities = {}
        self.loop_depth = 0
        self.dry, self.last_use = dry, last_use
        self.calls, self.tiles, self.loop_starts = 0, [], []
        self.check()
        self.nc_version = self.lib.nki_nc_version(self.k)

    def two_cores(self):
        """Physical cores 0 and 1 of a logical one; see on_core()."""
        self.root, self.cores = self.k, 2
        self.lib.nki_set_lnc(self.root, 2)
        self.check()

    def on_core(self, core):
        """Record for this core from now on; tensors of one name are one tensor."""
        self.k, self.core = self.lib.nki_core(self.root, core), core
        self.identities, self.shared_next = {}, 0

    def __enter__(self):
        self.outer = getattr(_local, 'context', None)
        _local.context = self
        return self

    def __exit__(self, *unused):
        _local.context = self.outer

    def free(self):
        if self.k:
            self.lib.nki_kernel_free(self.root)
        self.k = None

    def check(self):
        error = self.lib.nki_error(self.k)
        if error:
            raise NkiValidationError(error.decode(errors='replace'))

    def unique(self, name):
        base, n = name or 'tensor', 0
        name = base
        while name in self.names:
            n += 1
            name = '%s_%d' % (base, n)
        self.names.add(name)
        return name

    def loc(self, call):
        """Where the kernel's author wrote it: the first frame outside of this package."""
        frame = sys._getframe(2)
        while frame and frame.f_code.co_filename.startswith(_HERE):
            frame = frame.f_back
        where = (frame.f_code.co_filename, frame.f_lineno) if frame else ('?', 0)
        key = where + (call,)
        loc = self.locs.get(key)
        if loc is None:
            # The builder keeps the pointers: the bytes live as long as this program.
            loc = _abi.nki_loc(where[0].encode(), where[1], call.encode())
            self.locs[key] = loc
        return loc

    def call(self, name, *args, **options):
        """nki_NAME_(k, loc, args..., options) of the builder."""
        c_name = 'nki_%s_' % name
        function = getattr(self.lib, c_name, None)
        if function is None:
            raise NkiValidationError('nki.isa.%s is not in this builder library' % name)
        self.calls += 1
        if self.dry:
            return self._dry_call(c_name, args, options)
        kinds = _abi.FUNCTIONS[c_name][1][2:]
        values = [convert(kind, value) for (_, kind), value in zip(kinds, args)]
        if len(values) < len(kinds):
            kind = kinds[len(values)][1]._type_
            struct = kind()
            types = dict(kind._fields_)
            for key, value in options.items():
                if value is None:
                    continue
                if key not in types:
                    raise NkiValidationError('%s has no option %s' % (name, key))
                setattr(struct, key, convert(types[key], value))
            values.append(C.byref(struct))
        result = function(self.k, self.loc(name), *values)
        self.check()
        if self.last_use:
            self._give_back()
        return result

    # ---- tiles by their last use --------------------------------------------------

    def _dry_call(self, c_name, args, options):
        for value in list(args) + list(options.values()):
            storage = getattr(value, 'storage', None)
            while storage is not None:
                storage.last = self.calls
                value = getattr(value, 'index', None)
                storage = getattr(value, 'storage', None)
        kind = _abi.FUNCTIONS[c_name][0]
        return kind() if kind is not None and hasattr(kind, '_fields_') else None

    def loop_begins(self):
        self.loop_depth += 1
        self.loop_starts.append(self.calls)

    def loop_ends(self):
        """What lives outside of a loop and is used in it is used until its end."""
        self.loop_depth -= 1
        start = self.loop_starts.pop()
        for s in self.tiles if self.dry else ():
            if s.depth <= self.loop_depth and s.last >= start:
                s.last = self.calls + 1

    def _give_back(self):
        for n in self.last_use.pop(self.calls, ()):
            self.tiles[n].give_back()


def convert(kind, value):
    """A Python value as the C type that the builder wants."""
    if kind is _abi.nki_view:
        return _abi.nki_view() if value is None else value.view()
    if kind is _abi.nki_scalar:
        return scalar(value)
    if kind is _abi.nki_reg:
        return reg_struct(value)
    if isinstance(value, bool):
        return value
    return value


def scalar(value):
    """A number, a (P, 1) tile or a register as an operand."""
    if isinstance(value, _abi.nki_scalar):
        return value
    s = _abi.nki_scalar()
    if value is None:
        return s
    if isinstance(value, Reg):
        s.kind, s.reg, s.dtype = _abi.CONST['NEURON_IMM_REG'], value.reg, _dtypes.code('int32')
    elif hasattr(value, 'view') and hasattr(value, 'storage'):
        s.kind, s.vec = _abi.CONST['NEURON_IMM_VEC'], value.view()
    elif isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 1 << 24:
        s.kind, s.i = _abi.CONST['NEURON_IMM_I32'], C.c_int32(value).value
    else:
        s.kind, s.f = _abi.CONST['NEURON_IMM_F32'], float(value)
    return s


def integer(value):
    """An integer operand (registers, bit operators)."""
    s = _abi.nki_scalar()
    if isinstance(value, Reg):
        s.kind, s.reg, s.dtype = _abi.CONST['NEURON_IMM_REG'], value.reg, _dtypes.code('int32')
    else:
        s.kind, s.i = _abi.CONST['NEURON_IMM_I32'], C.c_int32(int(value)).value
    return s
