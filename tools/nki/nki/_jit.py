# SPDX-License-Identifier: MIT
"""@nki.jit: a Python function becomes a program, once for each set of shapes."""
import ctypes as C
import functools
import inspect
import os
import tempfile

from . import _dtypes, _profile, _runtime
from ._array import Array, as_array, is_array
from ._context import Context, NkiValidationError, Retrace, active
from ._tensor import NkiTensor, hbm_tensor, whole

_ARCHES = {'gen2': 'trn1', 'gen3': 'trn2', 'gen4': 'trn3', 'trn1n': 'trn1'}


def default_arch():
    for variable in ('NKI_PLATFORM_TARGET', 'NEURON_PLATFORM_TARGET_OVERRIDE', 'NEURON_RT_SIM'):
        value = os.environ.get(variable)
        if value:
            return value.split(':')[0]
    return 'trn2'


class Program:
    """A traced kernel.

    neff: bytes of the NEFF. inputs, outputs: (name, dtype, shape) in order.
    edges: number of semaphores that order it. cores: physical cores it runs on.
    """

    def __init__(self, arch, neff, inputs, outputs, written, returned, edges, cores=1):
        self.cores = cores
        self.arch, self.neff, self.inputs, self.outputs = arch, neff, inputs, outputs
        self.written, self.returned, self.edges = written, returned, edges

    def save(self, path):
        with open(path, 'wb') as f:
            f.write(self.neff)

    def __call__(self, arrays, strict=None, profile=None):
        """arrays: Array by argument name. The kernel's result."""
        initial = {name: arrays[name].data for name in self.written}
        outputs = [(n, _bytes(d, s), initial.get(n)) for n, d, s in self.outputs]
        inputs = [(n, arrays[n].data) for n, _, _ in self.inputs]
        if strict is None:
            strict = os.environ.get('NKI_STRICT', '1') != '0'
        self.last = _runtime.run(self.neff, self.arch, inputs, outputs, strict, profile=profile,
                                cores=self.cores)
        results = {n: Array(self.last.outputs[n], d, s) for n, d, s in self.outputs}
        return _rebuild(self.returned, results)


def _bytes(dtype, shape):
    n = _dtypes.size(dtype)
    for s in shape:
        n *= s
    return n


def _rebuild(shape_of_result, results):
    """The structure that the kernel returned, with arrays in place of tensors."""
    if isinstance(shape_of_result, _Ref):
        return results[shape_of_result.name]
    if isinstance(shape_of_result, (list, tuple)):
        return type(shape_of_result)(_rebuild(x, results) for x in shape_of_result)
    if isinstance(shape_of_result, dict):
        return {k: _rebuild(v, results) for k, v in shape_of_result.items()}
    return shape_of_result


class _Ref:
    def __init__(self, name):
        self.name = name


def _references(value):
    if isinstance(value, NkiTensor):
        s = value.storage
        if s.kind not in ('OUTPUT', 'INPUT'):
            raise NkiValidationError('a kernel returns tensors in nl.shared_hbm, not %r' % value)
        return _Ref(s.name)
    if isinstance(value, (list, tuple)):
        return type(value)(_references(x) for x in value)
    if isinstance(value, dict):
        return {k: _references(v) for k, v in value.items()}
    return value


def _plain(value, numpy_in):
    """Results in the caller's kind of array."""
    if isinstance(value, Array):
        return value.numpy() if numpy_in and _dtypes.numpy is not None else value
    if isinstance(value, (list, tuple)):
        return type(value)(_plain(x, numpy_in) for x in value)
    if isinstance(value, dict):
        return {k: _plain(v, numpy_in) for k, v in value.items()}
    return value


def _key(value):
    if isinstance(value, (list, tuple)):
        return tuple(_key(v) for v in value)
    if isinstance(value, dict):
        return tuple(sorted((k, _key(v)) for k, v in value.items()))
    try:
        hash(value)
    except TypeError:
        return id(value)
    return value


class Kernel:
    """What @nki.jit makes of a function."""

    def __init__(self, function, arch=None, grid=()):
        functools.update_wrapper(self, function)
        self.function, self.arch, self.grid = function, arch, grid
        self.signature = inspect.signature(function)
        self.programs = {}
        self.profile = None	# file for nrt_profile_stop()

    def __getitem__(self, grid):
        """kernel[n, m](...): n * m instances, which see nl.program_id(), one after the other on
        one core; kernel[2](...), from trn2 on: one on each core of a logical one."""
        grid = grid if isinstance(grid, tuple) else (grid,)
        kernel = Kernel(self.function, self.arch, tuple(int(g) for g in grid))
        kernel.programs = self.programs
        return kernel

    def _bind(self, args, kwargs):
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        values, arrays = {}, {}
        for name, value in bound.arguments.items():
            kind = self.signature.parameters[name].kind
            if kind is inspect.Parameter.VAR_POSITIONAL:
                raise NkiValidationError('*%s: a kernel has a fixed number of arguments' % name)
            if kind is inspect.Parameter.VAR_KEYWORD:
                values.update(value)
            else:
                values[name] = value
        for name, value in list(values.items()):
            arrays.update(_arrays_in(name, value))
        return values, arrays

    def trace(self, *args, **kwargs):
        """The program for these arguments; nothing runs."""
        return self._program(*self._bind(args, kwargs))

    def _program(self, values, arrays):
        arch = self.arch or default_arch()
        arch = _ARCHES.get(arch, arch)
        key = (arch, self.grid, tuple((n, a.dtype, a.shape) for n, a in arrays.items()),
               tuple((n, _key(v)) for n, v in values.items() if not _arrays_in(n, v)))
        if key not in self.programs:
            written = set()
            while True:
                try:
                    self.programs[key] = self._trace(arch, values, arrays, written)
                    break
                except Retrace:
                    continue
                except NkiValidationError as e:
                    if 'BUF left' not in str(e) and 'PSUM left' not in str(e):
                        raise
                try:
                    last_use = self._trace(arch, values, arrays, written, dry=True)
                    self.programs[key] = self._trace(arch, values, arrays, written,
                                                     last_use=last_use)
                    break
                except Retrace:
                    continue
        return self.programs[key]

    def _trace(self, arch, values, arrays, written, dry=False, last_use=None):
        """A Program, or, dry: which tiles each call is the last to use."""
        with Context(self.function.__name__, arch, written, dry, last_use) as c:
            c.written = written
            try:
                both = self.grid == (2,) and c.nc_version >= 3
                if both:
                    c.two_cores()
                tensors = {n: self._argument(c, n, a) for n, a in arrays.items()}
                c.grid = self.grid
                returned = None
                for ids in _instances(self.grid):
                    c.program_ids, c.shared_next = ids, 0
                    if both:
                        c.on_core(ids[0])
                        if ids[0]:
                            tensors = {n: self._again(c, t) for n, t in tensors.items()}
                    call = {n: _with_tensors(n, v, tensors) for n, v in values.items()}
                    returned = self.function(**call)
                    call = None
                references = _references(returned)
                returned = None
                return _last_uses(c) if dry else self._finish(c, references)
            finally:
                c.free()

    @staticmethod
    def _argument(c, name, a):
        kind = 'OUTPUT' if name in c.written else 'INPUT'
        s = hbm_tensor(a.shape, a.dtype, c.unique(name), kind)
        (c.outputs if kind == 'OUTPUT' else c.inputs).append(s)
        return s

    @staticmethod
    def _again(c, s):
        """The same argument for the second core."""
        return hbm_tensor(s.shape, s.dtype, s.name, s.kind)

    def _finish(self, c, references):
        data, size = C.c_void_p(), C.c_size_t()
        if c.lib.nki_build(c.root, C.byref(data), C.byref(size)):
            c.k = c.root
            c.check()
            raise MemoryError
        neff = C.string_at(data, size.value)
        C.CDLL(None).free(data)
        shape = lambda s: (s.name, s.dtype, s.shape)
        return Program(c.arch, neff, [shape(s) for s in c.inputs], [shape(s) for s in c.outputs],
                       [s.name for s in c.outputs if s.name in c.written], references,
                       c.lib.nki_edge_count(c.root), c.cores)

    def __call__(self, *args, **kwargs):
        if active():	# a kernel inside a kernel is a function
            return self.function(*args, **kwargs)
        values, arrays = self._bind(args, kwargs)
        numpy_in = not any(isinstance(a, Array) for a in _raw_arrays(values))
        program = self._program(values, arrays)
        self.last_program = program
        result = program(arrays, profile=self.profile)
        self._write_back(program, values)
        return _plain(result, numpy_in)

    @staticmethod
    def _write_back(program, values):
        """NumPy arguments that the kernel writes to change, as on the device."""
        for name, dtype, shape in program.outputs:
            value = values.get(name)
            if name in program.written and not isinstance(value, Array) and is_array(value):
                value[...] = Array(program.last.outputs[name], dtype, shape).numpy()


def _last_uses(c):
    out = {}
    for n, storage in enumerate(c.tiles):
        out.setdefault(storage.last, []).append(n)
    return out


def _raw_arrays(values):
    for v in values.values():
        if is_array(v):
            yield v
        elif isinstance(v, (list, tuple)):
            for x in v:
                if is_array(x):
                    yield x


def _arrays_in(name, value):
    if is_array(value):
        return {name: as_array(value)}
    if isinstance(value, (list, tuple)) and value and all(is_array(v) for v in value):
        return {'%s_%d' % (name, i): as_array(v) for i, v in enumerate(value)}
    return {}


def _with_tensors(name, value, tensors):
    if is_array(value):
        return whole(tensors[name])
    if isinstance(value, (list, tuple)) and value and all(is_array(v) for v in value):
        return type(value)(whole(tensors['%s_%d' % (name, i)]) for i in range(len(value)))
    return value


def _instances(grid):
    """Every program id of a launch grid."""
    if not grid:
        yield ()
        return
    n = 1
    for g in grid:
        n *= g
    for i in range(n):
        ids, rest = [], i
        for g in reversed(grid):
            ids.insert(0, rest % g)
            rest //= g
        yield tuple(ids)


def jit(function=None, platform_target=None, **unused):
    """Decorator. platform_target: 'trn1', 'inf2', 'trn2' or 'trn3'; the other options of
    AWS's decorator choose how it compiles and are accepted."""
    if function is None:
        return lambda f: jit(f, platform_target)
    if isinstance(function, Kernel):
        return Kernel(function.function, platform_target or function.arch, function.grid)
    return Kernel(function, platform_target)


trace = baremetal = jit		# the earlier decorators


def benchmark(function=None, platform_target=None, save_neff_name=None, **unused):
    """The earlier decorator. A modelled time does not vary: one run says it (nki.profile)."""
    if function is None:
        return lambda f: benchmark(f, platform_target, save_neff_name)
    return jit(function, platform_target)


def _kernel(kernel):
    return kernel if isinstance(kernel, Kernel) else Kernel(kernel)


def run(kernel, *args, **kwargs):
    """kernel(*args), also for a plain function."""
    return _kernel(kernel)(*args, **kwargs)


def simulate_kernel(kernel, *args, **kwargs):
    """The earlier form of simulate()."""
    return run(kernel, *args, **kwargs)


def simulate(kernel):
    """The kernel itself: it runs on the modelled chip, with capacity, races and time."""
    return _kernel(kernel)


class Profile:
    """modelled_ns, instructions, summary (text of neuron-profile) and the result."""

    def __init__(self, result, program, summary):
        self.result, self.program, self.summary = result, program, summary
        self.modelled_ns = program.last.modelled_ns
        self.instructions = program.last.instructions

    def __str__(self):
        return self.summary or 'modelled %d ns, %d instructions' % (self.modelled_ns,
                                                                    self.instructions)


def profile(kernel, *args, **kwargs):
    """Run it and say where the (modelled) time goes."""
    kernel = _kernel(kernel)
    with tempfile.TemporaryDirectory() as folder:
        kernel.profile = os.path.join(folder, 'profile.tar')
        try:
            result = kernel(*args, **kwargs)
            return Profile(result, kernel.last_program, _profile.summary(kernel.profile))
        finally:
            kernel.profile = None
