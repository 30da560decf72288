#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Run the unit tests of the Python package and print KTAP.

usage: run.py BUILD [NAME...]
"""
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))


class Ktap(unittest.TestResult):
    def __init__(self, out):
        super().__init__()
        self.out, self.n, self.lost = out, 0, 0

    def _line(self, test, text, comment=''):
        self.n += 1
        name = '.'.join(test.id().split('.')[-2:])
        self.out.write('%s %d %s%s\n' % (text, self.n, name, comment))
        self.out.flush()

    def addSuccess(self, test):
        self._line(test, 'ok')

    def _lost(self, test, err):
        self.lost += 1
        for line in self._exc_info_to_string(err, test).splitlines():
            self.out.write('# %s\n' % line)
        self._line(test, 'not ok')

    def addFailure(self, test, err):
        self._lost(test, err)

    def addError(self, test, err):
        self._lost(test, err)

    def addSkip(self, test, reason):
        self.skipped.append((test, reason))
        self._line(test, 'ok', ' # SKIP %s' % reason)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self._lost(subtest, err)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    build = os.path.abspath(sys.argv[1])
    sys.path[:0] = [os.path.join(build, 'tools/nki'), os.path.join(HERE, '../../examples/python'), HERE]
    loader = unittest.TestLoader()
    if sys.argv[2:]:
        suite = loader.loadTestsFromNames(sys.argv[2:])
    else:
        suite = loader.discover(HERE, 'test_*.py')
    if loader.errors:
        sys.exit('\n'.join(loader.errors))
    print('TAP version 13\n1..%d' % suite.countTestCases(), flush=True)
    result = Ktap(sys.stdout)
    suite.run(result)
    print('# Totals: pass:%d fail:%d xfail:0 xpass:0 skip:%d error:0' %
          (result.n - result.lost - len(result.skipped), result.lost, len(result.skipped)))
    sys.exit(1 if result.lost or result.n == 0 else 0)


main()
