# SPDX-License-Identifier: MIT
"""The C libraries: the builder (libneuron-nki.so) and the runtime (libnrt.so.1)."""
import ctypes as C
import os

from . import _abi

_HERE = os.path.dirname(os.path.abspath(__file__))


def _find(name, variable, near):
    """A library by environment variable, beside the package in a build folder, or installed."""
    if os.environ.get(variable):
        return os.environ[variable]
    for folder in near:
        path = os.path.join(_HERE, folder, name)
        if os.path.exists(path):
            return path
    return name


class Builder:
    """The builder's functions, with their types."""

    def __init__(self):
        lib = C.CDLL(_find('libneuron-nki.so', 'NKI_LIBRARY', ['.', '..', '../../../../lib']))
        for name, (result, args) in _abi.FUNCTIONS.items():
            function = getattr(lib, name, None)
            if function is None:
                continue
            function.restype = result
            function.argtypes = [kind for _, kind in args]
            setattr(self, name, function)


_builder = None


def builder():
    global _builder
    if _builder is None:
        _builder = Builder()
    return _builder


def runtime_path():
    return _find('libnrt.so.1', 'NRT_LIBRARY',
                 ['../../../libnrt', '../../../../lib'])
