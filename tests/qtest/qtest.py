# SPDX-License-Identifier: MIT
"""QEMU without a guest: QMP plays the operator, the qtest protocol the CPU, whose
config space is behind the ports cf8 and cfc and whose BARs are memory.
"""

import json
import os
import socket
import subprocess
import tempfile

ECAM_PORT = 0xcf8
PORT_DEV = 0x08 << 3            # the root port, bus 0 device 8
CHIP_BUS = 1
BAR0, BAR2, BAR4 = 0x100_0000_0000, 0x110_0000_0000, 0x200_0000_0000
MISC = 0x06c84000               # Trn2 and Trn3
CHIP = '/machine/peripheral/neuron0'


class Qmp:
    def __init__(self, sock):
        self.f = sock.makefile('rw', encoding='utf-8')
        self.read()
        self.call('qmp_capabilities')

    def read(self):
        while True:
            msg = json.loads(self.f.readline())
            if 'event' not in msg:
                return msg

    def call(self, command, **arguments):
        self.f.write(json.dumps({'execute': command, 'arguments': arguments}) + '\n')
        self.f.flush()
        return self.read()

    def set(self, name, value):
        """The text of the error, or ''."""
        msg = self.call('qom-set', path=CHIP, property=name, value=value)
        return msg.get('error', {}).get('desc', '')

    def get(self, name):
        return self.call('qom-get', path=CHIP, property=name)['return']


class Cpu:
    """The other end of -qtest."""

    def __init__(self, sock):
        self.f = sock.makefile('rw', encoding='ascii')

    def ask(self, *words):
        self.f.write(' '.join(w if isinstance(w, str) else hex(w) for w in words) + '\n')
        self.f.flush()
        while True:
            answer = self.f.readline().split()
            if answer and answer[0] != 'IRQ':
                assert answer[0] == 'OK', answer
                return answer[1] if len(answer) > 1 else '0'

    def call(self, *words):
        return int(self.ask(*words), 0)

    def read(self, addr, size):
        return bytes.fromhex(self.ask('read', addr, size)[2:]) if size else b''

    def write(self, addr, data):
        if data:
            self.ask('write', addr, len(data), '0x' + data.hex())

    def config(self, bus, devfn, reg):
        self.call('outl', ECAM_PORT, 1 << 31 | bus << 16 | devfn << 8 | (reg & ~3))

    def cfg_read(self, bus, devfn, reg, size=4):
        self.config(bus, devfn, reg)
        return self.call({1: 'inb', 2: 'inw', 4: 'inl'}[size], 0xcfc + (reg & 3))

    def cfg_write(self, bus, devfn, reg, value, size=4):
        self.config(bus, devfn, reg)
        self.call({1: 'outb', 2: 'outw', 4: 'outl'}[size], 0xcfc + (reg & 3), value)

    def capability(self, bus, devfn, ident):
        at = self.cfg_read(bus, devfn, 0x34, 1)
        while at and self.cfg_read(bus, devfn, at, 1) != ident:
            at = self.cfg_read(bus, devfn, at + 1, 1)
        return at


class Machine:
    """A chip under a root port, its BARs assigned; prop: more properties, ',a=b'."""

    def __init__(self, build, *extra, prop=''):
        here = [socket.socketpair(), socket.socketpair()]
        argv = [os.path.join(build, 'qemu-system-x86_64'), '-M', 'q35', '-accel', 'qtest', '-S',
                '-nodefaults', '-no-user-config', '-display', 'none', '-m', '64M',
                '-L', '/usr/share/qemu', '-L', '/usr/share/seabios',
                # native hot-plug: presence is the root port's to show, not ACPI's
                '-global', 'ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off',
                '-chardev', f'socket,id=q,fd={here[0][1].fileno()}', '-mon', 'chardev=q,mode=control',
                '-chardev', f'socket,id=t,fd={here[1][1].fileno()}', '-qtest', 'chardev:t',
                '-device', 'pcie-root-port,id=rp0,chassis=1,slot=1,bus=pcie.0,addr=8',
                '-device', f'neuron,id=neuron0,bus=rp0,routing-id=5{prop}', *extra]
        self.err = tempfile.TemporaryFile()
        self.proc = subprocess.Popen(argv, pass_fds=[s[1].fileno() for s in here], stderr=self.err,
                                     stdin=subprocess.DEVNULL)
        for s in here:
            s[1].close()
        self.qmp = Qmp(here[0][0])
        self.cpu = Cpu(here[1][0])
        self.assign()

    def assign(self):
        """What firmware and the kernel do: bus numbers, windows, BARs, decoding."""
        c = self.cpu
        c.cfg_write(0, PORT_DEV, 0x18, 0x00010100)
        base, limit = BAR0 >> 16, (BAR4 + (512 << 30) - 1) >> 16
        c.cfg_write(0, PORT_DEV, 0x24, (limit & 0xffff) << 16 & 0xfff00000 | (base & 0xfff0))
        c.cfg_write(0, PORT_DEV, 0x28, base >> 16)
        c.cfg_write(0, PORT_DEV, 0x2c, limit >> 16)
        c.cfg_write(0, PORT_DEV, 0x04, 6, 2)
        self.assign_chip()

    def assign_chip(self):
        for reg, bar in ((0x10, BAR0), (0x18, BAR2), (0x20, BAR4)):
            self.cpu.cfg_write(CHIP_BUS, 0, reg, bar & 0xffffffff)
            self.cpu.cfg_write(CHIP_BUS, 0, reg + 4, bar >> 32)
        self.cpu.cfg_write(CHIP_BUS, 0, 0x04, 6, 2)

    def misc(self, offset):
        return self.cpu.call('readl', BAR0 + MISC + offset)

    def quit(self):
        self.qmp.call('quit')
        return self.proc.wait(10)


results = []


def check(name, *conditions):
    """Each condition: (got, want), or a plain truth."""
    bad = [c for c in conditions if (c[0] != c[1] if isinstance(c, tuple) else not c)]
    results.append(not bad)
    print(f'{"not ok" if bad else "ok"} {len(results)} {name}')
    for c in bad:
        print(f'#   {c}')
