# SPDX-License-Identifier: MIT
"""Run a kernel of a file on random data and show its profile.

    python3 -m nki FILE.py:KERNEL --shape 128x512 --shape 512,bfloat16 [--arg NAME=VALUE]...
"""
import argparse
import importlib.util
import os
import random
import sys

import nki
from nki import _dtypes


def load(spec):
    path, _, name = spec.rpartition(':')
    if not path:
        sys.exit('%s: give FILE.py:KERNEL' % spec)
    path = os.path.abspath(path)
    sys.path.insert(0, os.path.dirname(path))
    module_spec = importlib.util.spec_from_file_location('kernel_file', path)
    if module_spec is None or not os.path.exists(path):
        sys.exit('%s: no such Python file' % path)
    module = importlib.util.module_from_spec(module_spec)
    module_spec.loader.exec_module(module)
    kernel = getattr(module, name, None)
    if kernel is None:
        names = [n for n, v in vars(module).items() if isinstance(v, nki.Kernel)]
        sys.exit('%s has no %s; its kernels: %s' % (path, name, ', '.join(names) or 'none'))
    return kernel


def random_array(text, numbers):
    shape, _, dtype = text.partition(',')
    shape, dtype, n = tuple(int(s) for s in shape.split('x')), dtype or 'float32', 1
    for s in shape:
        n *= s
    if _dtypes.is_int(dtype):
        values = [numbers.randrange(100) for _ in range(n)]
    else:
        values = [2 * numbers.random() - 1 for _ in range(n)]
    return nki.Array(_dtypes.encode(dtype, values), dtype, shape)


def value(text):
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return {'True': True, 'False': False, 'None': None}.get(text, text)


def main():
    parser = argparse.ArgumentParser(prog='python3 -m nki', description=__doc__.split('\n')[0])
    parser.add_argument('kernel', metavar='FILE.py:KERNEL')
    parser.add_argument('--shape', action='append', default=[], metavar='NxM[,DTYPE]',
                        help='an array argument, in order; default type float32')
    parser.add_argument('--arg', action='append', default=[], metavar='NAME=VALUE',
                        help='another argument')
    parser.add_argument('--target', help='trn1, inf2, trn2 or trn3')
    parser.add_argument('--neff', metavar='FILE', help='also write the program')
    options = parser.parse_args()
    numbers = random.Random(0)
    kernel = nki.jit(load(options.kernel), platform_target=options.target)
    arrays = [random_array(s, numbers) for s in options.shape]
    named = {}
    for text in options.arg:
        name, _, given = text.partition('=')
        named[name] = value(given)
    try:
        result = nki.profile(kernel, *arrays, **named)
    except (nki.NkiValidationError, nki.NrtError, TypeError, AssertionError) as e:
        sys.exit('%s: %s' % (type(e).__name__, e))
    if options.neff:
        result.program.save(options.neff)
    print(result)
    outputs = result.result if isinstance(result.result, (list, tuple)) else [result.result]
    for n, array in enumerate(outputs):
        print('output %d: %s' % (n, array))


if __name__ == '__main__':
    main()
