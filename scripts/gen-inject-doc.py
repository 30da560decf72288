#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Make Documentation/hardware/fault-list.rst from uapi/neuron/inject.def.

With --check: fail when the file is not what the table gives.
"""

import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
DEF = os.path.join(TOP, 'uapi/neuron/inject.def')
OUT = os.path.join(TOP, 'Documentation/hardware/fault-list.rst')
WHEN = {'ONCE': 'Happens at once.', 'EVENT': 'Armed.', 'STATE': 'Lasts until it is cleared.'}
TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|([(),])|([^"(),]+)')


def rows(text, macro):
    """Arguments of every MACRO(...) at the start of a line; adjacent strings are one."""
    for start in re.finditer(r'^%s\(' % macro, text, re.M):
        args, depth = [''], 0
        for m in TOKEN.finditer(text, start.end()):
            string, mark, other = m.groups()
            if string is not None:
                args[-1] += string
            elif mark == ',' and not depth:
                args.append('')
            elif mark == ')' and not depth:
                break
            else:
                depth += {'(': 1, ')': -1}.get(mark, 0)
                args[-1] += (mark or other).strip()
        yield args


def literal(line):
    return f'``{line}``'


def sentence(text):
    text = text[0].upper() + text[1:]
    return text if text.endswith('.') else text + '.'


def make(text):
    params = {ident: (name, what) for ident, name, what in rows(text, 'NEURON_INJECT_PARAM')}
    words = {}
    for param, word, value in rows(text, 'NEURON_INJECT_WORD'):
        words.setdefault(param, []).append(word)
    out = ['.. SPDX-License-Identifier: MIT', '.. Made by scripts/gen-inject-doc.py from uapi/neuron/inject.def', '',
           '==============', 'List of faults', '==============', '',
           'How to ask for them is in faults.rst. All of it is our own definition.', '']
    for _, name, when, mask, count, what, seen in rows(text, 'NEURON_INJECT'):
        given = [params[p][0] for p in re.findall(r'NEURON_INJECT_P\((\w+)\)', mask)]
        out += [name, '=' * len(name), '', sentence(what), '',
                f'*Software sees:* {sentence(seen)}', '', WHEN[when] + ' ' + (
                    'Parameters: ' + ', '.join(literal(p) for p in given) if given else 'No parameters') +
                (f' (default {count}).' if 'count' in given else '.'), '']
    out += ['Parameters', '==========', '']
    for ident, (name, what) in params.items():
        out += [literal(name), '\t' + sentence(what)]
        if ident == 'ERROR':
            out.append('\t' + ', '.join(literal(w) for w in words[ident]) + '.')
    return '\n'.join(out) + '\n'


def main():
    with open(DEF, encoding='utf-8') as f:
        new = make(f.read())
    if '--check' not in sys.argv:
        with open(OUT, 'w', encoding='utf-8') as f:
            f.write(new)
        return
    with open(OUT, encoding='utf-8') as f:
        if f.read() != new:
            sys.exit(f'{OUT} is not what {DEF} gives: run scripts/gen-inject-doc.py')


if __name__ == '__main__':
    main()
