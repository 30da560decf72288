# SPDX-License-Identifier: MIT
"""Running a program: libnrt on the driver, or on a chip in this process."""
import atexit
import ctypes as C
import glob
import os

from . import _lib

_SUCCESS = 0


class NrtError(RuntimeError):
    """nrt_* failed; the text says what and where in the kernel."""


class _Source(C.Structure):
    _fields_ = [('file', C.c_char * 256), ('function', C.c_char * 256), ('line', C.c_uint32),
                ('pc', C.c_uint32), ('core', C.c_uint32), ('engine', C.c_uint32)]


class _Execution(C.Structure):
    _fields_ = [('status', C.c_int), ('fault', C.c_uint32), ('modelled_ns', C.c_uint64),
                ('wall_ns', C.c_uint64), ('instructions', C.c_uint64), ('seqno', C.c_uint64),
                ('fault_at', _Source), ('fault_other', _Source),
                ('fault_record', C.c_uint8 * 64), ('fault_text', C.c_char * 1024)]


STRICT = 1


class Runtime:
    def __init__(self):
        self.lib = C.CDLL(_lib.runtime_path())
        self.arch = self.cores = None
        atexit.register(self.close)

    def close(self):
        if self.arch is not None:
            self.lib.nrt_close()
        self.arch = None

    def check(self, status, what):
        if status != _SUCCESS:
            name = self.lib.nrt_get_status_as_str
            name.restype = C.c_char_p
            raise NrtError('%s: %s' % (what, (name(status) or b'?').decode()))

    def start(self, arch, cores=1):
        """On the driver when there is one, else on a chip in this process; @cores: physical
        ones of a logical core."""
        if self.arch == arch and self.cores == cores:
            return
        self.close()
        if os.environ.get('NEURON_RT_SIM') or not glob.glob('/dev/accel/accel*'):
            os.environ['NEURON_RT_SIM'] = arch
        os.environ['NEURON_LOGICAL_NC_CONFIG'] = str(cores)
        os.environ.setdefault('NEURON_RT_VISIBLE_CORES', '0')
        self.check(self.lib.nrt_init(1, b'', b''), 'nrt_init')
        self.arch, self.cores = arch, cores

    def set_of(self, tensors):
        handle = C.c_void_p()
        self.check(self.lib.nrt_allocate_tensor_set(C.byref(handle)), 'nrt_allocate_tensor_set')
        for name, tensor in tensors:
            self.check(self.lib.nrt_add_tensor_to_tensor_set(handle, name.encode(), tensor), name)
        return handle

    def tensor(self, name, size, data=None):
        handle = C.c_void_p()
        self.check(self.lib.nrt_tensor_allocate(0, 0, C.c_size_t(size), name.encode(),
                                                C.byref(handle)), 'nrt_tensor_allocate %s' % name)
        if data is not None:
            self.check(self.lib.nrt_tensor_write(handle, data, C.c_uint64(0), C.c_size_t(size)), name)
        return handle

    def read(self, tensor, size):
        data = C.create_string_buffer(size)
        self.check(self.lib.nrt_tensor_read(tensor, data, C.c_uint64(0), C.c_size_t(size)),
                   'nrt_tensor_read')
        return data.raw


_runtime = None


def runtime():
    global _runtime
    if _runtime is None:
        _runtime = Runtime()
    return _runtime


class Result:
    """modelled_ns: modelled length; outputs: bytes by name."""

    def __init__(self, outputs, execution):
        self.outputs = outputs
        self.modelled_ns, self.instructions = execution.modelled_ns, execution.instructions


def run(neff, arch, inputs, outputs, strict=False, seed=0, profile=None, cores=1):
    """@inputs: [(name, bytes)]; @outputs: [(name, size, bytes or None)], initial bytes;
    @profile: file that nrt_profile_stop() writes."""
    r = runtime()
    r.start(arch, cores)
    model, execution = C.c_void_p(), _Execution()
    r.check(r.lib.nrt_load(neff, C.c_size_t(len(neff)), 0, 1, C.byref(model)), 'nrt_load')
    made = []
    try:
        ins = [(n, r.tensor(n, len(d), d)) for n, d in inputs]
        made += [t for _, t in ins]
        outs = [(n, r.tensor(n, size, d)) for n, size, d in outputs]
        made += [t for _, t in outs]
        in_set, out_set = r.set_of(ins), r.set_of(outs)
        if strict or seed:
            r.lib.nrtx_model_set_flags(model, STRICT if strict else 0, C.c_uint64(seed))
        if profile:
            r.check(r.lib.nrt_profile_start(model, profile.encode()), 'nrt_profile_start')
        status = r.lib.nrt_execute(model, in_set, out_set)
        if profile:
            r.check(r.lib.nrt_profile_stop(profile.encode()), 'nrt_profile_stop')
        r.lib.nrtx_get_last_execution(model, C.byref(execution), C.c_size_t(C.sizeof(execution)))
        if status != _SUCCESS:
            at = execution.fault_at
            raise NrtError('%s (%s:%d)' % (execution.fault_text.decode(errors='replace') or
                                           'nrt_execute: status %d' % status,
                                           at.file.decode(errors='replace'), at.line))
        result = Result({n: r.read(t, size) for (n, t), (_, size, _) in zip(outs, outputs)}, execution)
        r.lib.nrt_destroy_tensor_set(C.byref(in_set))
        r.lib.nrt_destroy_tensor_set(C.byref(out_set))
        return result
    finally:
        for t in made:
            r.lib.nrt_tensor_free(C.byref(t))
        r.lib.nrt_unload(model)
