#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Make nki/_abi.py from nki.h and isa.def: what the package knows of the C builder.

usage: gen-abi.py NKI_H NKI_INSN_H ISA_H REGS_H ISA_DEF OUT

The header is the only description of the builder's calls. Structures become
ctypes classes, functions whose name ends in an underscore (what the macros
call) a table of argument types; a declaration that is not understood is an error.
"""

import re
import sys

BASIC = {
    'unsigned int': 'C.c_uint', 'int': 'C.c_int', 'bool': 'C.c_bool', 'float': 'C.c_float',
    'double': 'C.c_double', 'uint32_t': 'C.c_uint32', 'int32_t': 'C.c_int32',
    'int64_t': 'C.c_int64', 'uint64_t': 'C.c_uint64', 'uint8_t': 'C.c_uint8', 'size_t': 'C.c_size_t',
    'uint16_t': 'C.c_uint16', 'int8_t': 'C.c_int8', 'int16_t': 'C.c_int16',
}


def strip(text):
    text = re.sub(r'/\*.*?\*/', '', text, flags=re.S)
    text = re.sub(r'//[^\n]*', '', text)
    text = re.sub(r'\\\n', ' ', text)
    defines = dict(re.findall(r'^#define\s+(\w+)\s+(\(?[\w<| ]+\)?)\s*$', text, flags=re.M))
    text = re.sub(r'^\s*#[^\n]*$', '', text, flags=re.M)
    return text, defines


def number(text, defines):
    text = text.strip()
    while text in defines:
        text = defines[text].strip()
    return int(re.sub(r'[uUlL]+$', '', text), 0)


def ctype(text, structs):
    """ctypes name of a C type without a declarator."""
    text = re.sub(r'\bconst\b', '', text)
    text = ' '.join(text.split())
    if text.endswith('*'):
        return 'C.c_char_p' if text == 'char *' else 'C.c_void_p'
    if text.startswith('enum '):
        return 'C.c_int'
    if text.startswith('struct '):
        name = text[7:]
        if name not in structs:
            raise SystemExit('struct %s is used and not defined' % name)
        return name
    if text not in BASIC:
        raise SystemExit('unknown type "%s"' % text)
    return BASIC[text]


def fields(body, structs, defines, inner):
    out = []
    for decl in re.findall(r'(struct\s*\{[^{}]*\}[^;]*|[^;{}]+);', body):
        decl = ' '.join(decl.split())
        m = re.match(r'struct \{(.*)\} (\w+)((?:\[\w+\])*)$', decl)
        if m:
            name = '_inner_%d' % len(inner)
            inner.append((name, fields(m.group(1) + '', structs, defines, inner)))
            out.append((m.group(2), array(name, m.group(3), defines)))
            continue
        m = re.match(r'(.*?[\s*])((?:\w+(?:\[\w+\])*\s*,\s*)*\w+(?:\[\w+\])*)$', decl)
        if not m:
            raise SystemExit('cannot read the field "%s"' % decl)
        for var in m.group(2).split(','):
            name, dims = re.match(r'\s*(\w+)((?:\[\w+\])*)', var).groups()
            out.append((name, array(ctype(m.group(1).strip(), structs), dims, defines)))
    return out


def array(kind, dims, defines):
    for n in reversed(re.findall(r'\[(\w+)\]', dims)):
        kind = '%s * %d' % (kind if '*' not in kind else '(%s)' % kind, number(n, defines))
    return kind


def structures(text, defines):
    structs, order = {}, []
    for name, body in re.findall(r'\bstruct\s+(\w+)\s*\{((?:[^{}]|\{[^{}]*\})*)\}\s*;', text):
        inner = []
        members = fields(body, structs, defines, inner)
        structs[name] = members
        order += inner + [(name, members)]
    return structs, order


def functions(text, structs):
    out = []
    for ret, star, name, args in re.findall(
            r'^([\w ]+?)\s*(\*?)\b(nki_\w+)\(([^()]*)\)\s*;', text, flags=re.M):
        if ret.startswith('static') or ret.startswith('typedef'):
            continue
        parsed = []
        for arg in args.split(','):
            arg = ' '.join(arg.split())
            if arg in ('void', ''):
                continue
            m = re.match(r'(.*?[\s*])(\w+)(\[\w*\])?$', arg)
            kind = m.group(1).strip() + (' *' if m.group(3) else '')
            s = re.match(r'(?:const )?struct (\w+_args) \*$', kind)
            parsed.append((m.group(2), 'C.POINTER(%s)' % s.group(1) if s else ctype(kind, structs)))
        result = 'None' if ret == 'void' and not star else ctype(ret + (' *' if star else ''), structs)
        out.append((name, result, parsed))
    return out


def constants(text):
    """Members of the header's plain enumerations."""
    out = {}
    for body in re.findall(r'\benum\s+\w*\s*\{([^{}]*)\}', text):
        value = -1
        for member in body.split(','):
            m = re.match(r'\s*(\w+)\s*(?:=\s*(\S.*?))?\s*$', member, flags=re.S)
            if not m:
                continue
            if m.group(2) is None:
                value += 1
            elif re.fullmatch(r'(0x)?[0-9a-fA-F]+', m.group(2)):
                value = int(m.group(2), 0)
            elif m.group(2) in out:
                value = out[m.group(2)]
            else:
                continue
            out[m.group(1)] = value
    return out


def rows(text, macro):
    return re.findall(r'^%s\((0x\w+),\s*(\w+),\s*"(\w+)"(?:,\s*(\w+))?' % macro, text, flags=re.M)


def main():
    if len(sys.argv) != 7:
        sys.exit(__doc__)
    header, insn_h, isa_h, regs_h, isa_def, out = (open(p).read() if i < 5 else p
                                                    for i, p in enumerate(sys.argv[1:]))
    isa, isa_defines = strip(regs_h + isa_h)
    text, defines = strip(header + insn_h)
    for key, value in isa_defines.items():
        defines.setdefault(key, value)
    structs, order = structures(text, defines)
    lines = ['# SPDX-License-Identifier: MIT', '# Made by gen-abi.py from nki.h and isa.def: do not edit.',
             'import ctypes as C', '']
    for name, members in order:
        lines += ['', 'class %s(C.Structure):' % name, '    _fields_ = [']
        lines += ["        ('%s', %s)," % m for m in members] + ['    ]', '']
    lines += ['', 'FUNCTIONS = {']
    for name, result, args in functions(text, structs):
        lines.append("    '%s': (%s, [%s])," % (name, result,
                                               ', '.join("('%s', %s)" % a for a in args)))
    lines += ['}', '', 'DTYPES = {']
    lines += ["    '%s': (%d, %s)," % (t, int(c, 0), b) for c, n, t, b in rows(isa_def, 'NEURON_DTYPE')]
    lines += ['}', '', 'ALU = {']
    lines += ["    '%s': %d," % (t, int(c, 0)) for c, n, t, b in rows(isa_def, 'NEURON_ALU')]
    lines += ['}', '', 'ACTFN = {']
    lines += ["    '%s': %d," % (t, int(c, 0)) for c, n, t, b in rows(isa_def, 'NEURON_ACTFN')]
    lines += ['}', '', 'CONST = {']
    lines += ["    '%s': %d," % kv for kv in sorted({**constants(isa), **constants(text)}.items())]
    lines += ['}', '']
    with open(out, 'w') as f:
        f.write('\n'.join(lines))


main()
