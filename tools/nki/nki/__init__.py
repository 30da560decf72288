# SPDX-License-Identifier: MIT
"""Kernels of the Neuron Kernel Interface, run on the open stack.

    import nki, nki.isa as nisa, nki.language as nl

    @nki.jit
    def add_one(x):
        t = nl.load(x)
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nl.store(out, t + 1.0)
        return out

    y = add_one(array)			# on the driver, or on a chip in this process
    print(nki.profile(add_one, array))

Documentation/python.rst has the rest. Modelled time is no measurement of hardware.
"""
from . import _context, _dtypes, isa, language
from ._array import Array, array
from ._context import NkiValidationError
from ._jit import (Kernel, Program, baremetal, benchmark, jit, profile, run, simulate, simulate_kernel,
                   trace)
from ._runtime import NrtError
from .typing import tensor

__all__ = ['Array', 'Kernel', 'NkiValidationError', 'NrtError', 'Program', 'array', 'isa', 'jit',
           'baremetal', 'benchmark', 'language', 'profile', 'run', 'simulate', 'simulate_kernel', 'tensor',
           'trace']
