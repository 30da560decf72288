#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Make Documentation/isa/tables.rst from uapi/neuron/isa.def, and coverage.rst from
that, nki.def beside it, the headers of the builder and the tests.

With --check: fail when a file is not what the tables give, when a row has no
semantics test, or when the builder lacks an instruction.
"""

import glob
import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
DEF = os.path.join(TOP, 'uapi/neuron/isa.def')
OUT = os.path.join(TOP, 'Documentation/isa/tables.rst')
COVERAGE = os.path.join(TOP, 'Documentation/isa/coverage.rst')

NC = {'2': 'Trn1, Inf2', '3': 'Trn2', '4': 'Trn3'}
SPACES = {'S': 'SBUF', 'P': 'PSUM'}
TYPES = {
    'a': 'any', 'f': 'float', 'h': '16-bit float', 'b': 'bf16', 'p': 'PE input', 'i': 'integer',
    'd': '32 bits', 'w': '32-bit integer', 'u': 'unsigned', 'o': 'uint16, uint32', 'm': 'packed MX',
    'e': 'E8M0', '4': 'fp32, 32-bit integer', '-': '',
}
OPS = {'A': 'ALU', 'R': 'reduction', 'C': 'comparison', 'F': 'activation'}
COST = {
    'SEQ': 'sequencer only', 'REGMEM': 'round trip to memory',
    'LDWEIGHTS': 'M / 4; fp32 M', 'MATMUL': 'max(min(64, M), N); fp32 x 4, 0/1 or transposed x 2',
    'SCAN': 'max(64, 2 N)', 'SRC_N': 'max(64, N of the source)', 'EXP4': 'max(64, N / 4)',
    'BN_AGGR': 'max(64, 13 N / 3 of the source)', 'LOCAL_GATHER': '150 + valid e C, see timing.rst',
    'TOPK': '4 n + K',
    'MII': '64', 'N': 'max(64, N)', 'COPY': 'max(64, N), fast modes',
    'COPY_PRED': 'max(64, 2 N); N with PSUM', 'MEMSET': 'max(64, N); N / 2 for 16-bit zero',
    'TENSOR_TENSOR': 'max(64, 2 N); N with PSUM or simple bf16; fast mode',
    'TENSOR_SCALAR': 'max(64, N), fast modes', 'SCALAR_TT': 'max(64, 2 N)',
    'REDUCE': 'max(64, N); N / 2 for bf16', 'RECIP': 'max(64, 8 N)',
    'POOL150': '150 + N', 'DMA': 'see timing.rst', 'DRAIN': 'sequencer only',
    'HBMREG': 'round trip to HBM', 'DEBUG': 'max(64, N)',
}


def rows(text, macro):
    """Arguments of every MACRO(...) line of the table."""
    out = []
    for m in re.finditer(r'^%s\(([^\n]*(?:,\n\s[^\n]*)*)\)' % macro, text, re.M):
        args = re.findall(r'"(?:[^"\\]|\\.)*"|(?:[^,"()]|\([^()]*\))+', m.group(1))
        out.append([a.strip().strip('"') for a in args if a.strip()])
    return out


def table(widths, head, body):
    lines = ['.. list-table::', '   :header-rows: 1', '   :widths: %s' % widths, '']
    for row in [head] + body:
        for i, cell in enumerate(row):
            lines.append('   %s %s' % ('* -' if i == 0 else '  -', cell))
    return '\n'.join(lines).replace(' \n', '\n').rstrip() + '\n'


def engines(mask):
    names = re.findall(r'E\((\w+)\)', mask)
    return 'all' if names == ['ALL'] else ', '.join(names)


def operands(aps, types):
    out = []
    for i in range(len(aps) // 2):
        two = aps[2 * i:2 * i + 2].replace('-', '')
        if two:
            out.append('%d%s: %s; %s' % (i, ' (result)' if two.islower() else '',
                                         ', '.join(SPACES[c] for c in two.upper()), TYPES[types[i]]))
    return '. '.join(out)


def operators(ops):
    return ', '.join('op%d %s' % (i, OPS[c]) for i, c in enumerate(ops) if c != '-')


def instructions(text):
    body = []
    for r in rows(text, 'NEURON_INSN'):
        code, name, shown, mask, nc, words, aps, types, ops, imms, aux, limit, cost, summary = r
        body.append(['``%s``' % code, '``%s``' % name, '``%s``' % shown, engines(mask), NC[nc], words,
                     operands(aps, types), operators(ops), imms, '' if aux == '-' else aux,
                     '' if limit == '0' else limit, COST[cost], summary])
    return table('6 14 14 10 8 5 24 12 5 8 6 14 30',
                 ['code', 'name', 'text', 'engines', 'since', 'words', 'access patterns', 'operators',
                  'scalars', 'aux', 'limit', 'engine cycles', 'effect'], body)


def generate():
    with open(DEF) as f:
        text = f.read()
    dtypes = [['``%s``' % c, '``%s``' % n, t, b] for c, n, t, b in rows(text, 'NEURON_DTYPE')]
    alu = [['``%s``' % c, '``%s``' % n, t, 'bits' if k == 'B' else 'fp32', a, 'yes' if r == '1' else '']
           for c, n, t, k, a, r in rows(text, 'NEURON_ALU')]
    act = [['``%s``' % c, '``%s``' % n, t] for c, n, t in rows(text, 'NEURON_ACTFN')]
    parts = ['.. SPDX-License-Identifier: MIT',
             '.. Made by scripts/gen-isa-doc.py from uapi/neuron/isa.def: do not edit.', '',
             'Tables of the instruction set', '=============================', '',
             'Instructions', '------------', '',
             'N is the number of elements of each partition of the destination (of the source, for a',
             'reduction), M the columns of a stationary matrix.', '', instructions(text),
             'Data types', '----------', '', table('10 20 20 10', ['code', 'name', 'text', 'bytes'], dtypes),
             'ALU operators', '-------------', '',
             table('10 20 20 10 10 10', ['code', 'name', 'text', 'class', 'operands', 'reduces'], alu),
             'Activation functions', '--------------------', '',
             table('10 30 30', ['code', 'name', 'text'], act)]
    return '\n'.join(parts)


def read(*names):
    """The text of all files that the patterns name."""
    text = ''
    for path in sorted(p for n in names for p in glob.glob(os.path.join(TOP, n))):
        with open(path) as f:
            text += f.read()
    return text


def tests_of():
    """Row -> file of its test; a row without one does not link in core_insn."""
    found = {}
    for path in sorted(glob.glob(os.path.join(TOP, 'tests/unit/core_insn_*.c'))):
        with open(path) as f:
            for row in re.findall(r'^void row_(\w+)\(', f.read(), re.M):
                found[row] = os.path.basename(path)
    return found


def generations(since):
    return ', '.join(NC[v] for v in sorted(NC) if int(v) >= since)


def coverage():
    """The text of coverage.rst and what is wrong."""
    isa = {r[1]: r for r in rows(read('uapi/neuron/isa.def'), 'NEURON_INSN')}
    macros = set(re.findall(r'^#define (nki_\w+)\(', read('nki/nki.h', 'nki/nki_insn.h'), re.M))
    nki = re.findall(r'^NKI\((\w+), (\w+), "([^"]*)", (\d), "([^"]*)"\)', read('Documentation/isa/nki.def'), re.M)
    tests, used, wrong, body, done = tests_of(), set(), [], [], 0
    for n, (name, builder, needs, since, note) in enumerate(nki, 1):
        names = re.findall(r'\w+', needs)
        missing = [r for r in names if r not in isa]
        used.update(names)
        done += not missing
        if builder not in macros:
            wrong.append('%s: the builder has no %s()' % (name, builder))
        wrong += ['%s: row %s has no test' % (name, r) for r in names if r in isa and r not in tests]
        who = sorted({e for r in names if r in isa for e in engines(isa[r][3]).split(', ')})
        body.append([str(n), '``%s``' % name,
                     ', '.join(('``%s``' if r in isa else '``%s`` (missing)') % r for r in names),
                     'all' if 'all' in who else ', '.join(who), generations(int(since)), '``%s``' % builder,
                     ', '.join(sorted({tests[r] for r in names if r in tests})), note])
    others = [['``%s``' % r, engines(isa[r][3]), generations(int(isa[r][4])), tests.get(r, '')]
              for r in isa if r not in used]
    wrong += ['row %s has no test' % r for r in isa if r not in tests]
    parts = ['.. SPDX-License-Identifier: MIT',
             '.. Made by scripts/gen-isa-doc.py from nki.def and uapi/neuron/isa.def: do not edit.', '',
             'Coverage of the published instructions', '======================================', '',
             'Each instruction of nki.isa, the rows of :doc:`tables` that it becomes, the macro of the C builder',
             '(:doc:`../nki`) and the file in ``tests/unit`` whose ``row_NAME()`` compares the row with a reference,',
             'once for each generation (PE: on those that the test names).',
             'That other engines and generations refuse it is ``insn_absent()`` in core_insn_indirect.c.', '',
             '%d of %d instructions have all their rows.' % (done, len(nki)), '',
             table('4 18 24 10 16 20 16 20', ['', 'nki.isa', 'rows', 'engines', 'generations', 'builder', 'test', ''],
                   body),
             'Other rows', '----------', '', 'Sequencer, read-out and what the builder makes itself.', '',
             table('24 14 20 20', ['row', 'engines', 'generations', 'test'], others)]
    return '\n'.join(parts), wrong


def main():
    text, wrong = coverage()
    made = {OUT: generate(), COVERAGE: text}
    if wrong:
        sys.exit('\n'.join(wrong))
    if sys.argv[1:] == ['--check']:
        for path, text in made.items():
            with open(path) as f:
                if f.read() != text:
                    sys.exit('%s is not what the tables say: run scripts/gen-isa-doc.py' % path)
        return
    if sys.argv[1:]:
        sys.exit(__doc__)
    for path, text in made.items():
        with open(path, 'w') as f:
            f.write(text)


main()
