# SPDX-License-Identifier: MIT
"""Operators: functions of nki.language (or NumPy's of the same name) as codes of the builder."""
from . import _abi
from ._context import NkiValidationError

_SAME = {
    'max': 'maximum', 'min': 'minimum', 'absolute': 'abs', 'mul': 'multiply', 'sub': 'subtract',
    'rshift': 'right_shift', 'lshift': 'left_shift', 'bitwise_right_shift': 'right_shift',
    'bitwise_left_shift': 'left_shift', 'bitwise_not': 'invert', 'amax': 'maximum',
    'amin': 'minimum', 'sum': 'add', 'identity': 'copy', 'logical_not': 'equal',
}
BITVEC = {'invert', 'bitwise_and', 'bitwise_or', 'bitwise_xor', 'left_shift', 'right_shift'}
COMPARE = {'equal', 'not_equal', 'greater_equal', 'greater', 'less_equal', 'less'}


def name_of(op):
    name = op if isinstance(op, str) else getattr(op, '__name__', None)
    if name is None:
        raise NkiValidationError('%r is no operator' % (op,))
    return _SAME.get(name, name)


def is_op(value):
    if isinstance(value, str) or not (callable(value) or hasattr(value, '__name__')):
        return False
    name = _SAME.get(getattr(value, '__name__', ''), getattr(value, '__name__', ''))
    return name in _abi.ALU or name in _abi.ACTFN


def alu(op):
    name = name_of(op)
    if name not in _abi.ALU:
        raise NkiValidationError('%s is not an ALU operator: %s' % (name, ', '.join(_abi.ALU)))
    return _abi.ALU[name]


def activation(op):
    name = name_of(op)
    if name not in _abi.ACTFN:
        raise NkiValidationError('%s is not an activation function: %s' %
                                 (name, ', '.join(_abi.ACTFN)))
    return 0x100 | _abi.ACTFN[name]


def is_bitvec(op):
    return op is not None and name_of(op) in BITVEC
