# SPDX-License-Identifier: MIT
"""Views, operations of nki.language, loops, errors and arrays of the package."""
import math
import os
import time
import unittest

import nki
import nki.isa as nisa
import nki.language as nl
import reference as ref
from nki import _dtypes

ON_DRIVER = os.path.isdir('/dev/accel')


def elementwise(function, *inputs, dtype='float32'):
    """function applied to tiles of the inputs, as a flat list."""
    @nki.jit
    def kernel(x):
        tiles = [nl.load(t) for t in x]
        result = function(*tiles)
        out = nl.ndarray(result.shape, result.dtype, buffer=nl.shared_hbm)
        nl.store(out, result)
        return out
    return kernel(list(inputs)).flat()


class Elementwise(unittest.TestCase):
    def setUp(self):
        self.x, self.rx = ref.matrix(64, 40, -3, 3, seed=1)
        self.y, self.ry = ref.matrix(64, 40, 0.5, 2, seed=2)
        self.fx, self.fy = ref.flat(self.rx), ref.flat(self.ry)

    def near(self, got, want, rtol=2e-6, atol=2e-6):
        self.assertLessEqual(ref.worst(got, want, rtol, atol), 1)

    def test_arithmetic(self):
        for function, fp64 in ((nl.add, lambda a, b: a + b), (nl.subtract, lambda a, b: a - b),
                               (nl.multiply, lambda a, b: a * b), (nl.divide, lambda a, b: a / b),
                               (nl.maximum, max), (nl.minimum, min)):
            with self.subTest(function.__name__):
                self.near(elementwise(function, self.x, self.y),
                          [fp64(a, b) for a, b in zip(self.fx, self.fy)])

    def test_scalars_on_both_sides(self):
        self.near(elementwise(lambda x: 2.0 - x, self.x), [2 - a for a in self.fx])
        self.near(elementwise(lambda x: 1.0 / x, self.y), [1 / a for a in self.fy])
        self.near(elementwise(lambda x: x * 3.0 + 1.0, self.x), [a * 3 + 1 for a in self.fx])

    def test_functions(self):
        sigmoid = lambda a: 1 / (1 + math.exp(-a))
        cases = [(nl.exp, math.exp), (nl.tanh, math.tanh), (nl.sigmoid, sigmoid), (nl.erf, math.erf),
                 (nl.silu, lambda a: a * sigmoid(a)), (nl.square, lambda a: a * a),
                 (nl.abs, abs), (nl.negative, lambda a: -a), (nl.sin, math.sin), (nl.cos, math.cos),
                 (nl.relu, lambda a: max(a, 0.0))]
        for function, fp64 in cases:
            with self.subTest(function.__name__):
                self.near(elementwise(function, self.x), [fp64(a) for a in self.fx], 3e-6, 3e-6)
        for function, fp64 in ((nl.log, math.log), (nl.sqrt, math.sqrt), (nl.reciprocal, lambda a: 1 / a),
                               (nl.rsqrt, lambda a: 1 / math.sqrt(a))):
            with self.subTest(function.__name__):
                self.near(elementwise(function, self.y), [fp64(a) for a in self.fy], 3e-6, 3e-6)

    def test_rounding(self):
        x = nki.array([[-2.5, -2.0, -1.7, -0.5, -0.2, 0.0, 0.2, 0.5, 1.5, 1.7, 2.5, 3.0]])
        for function, fp64 in ((nl.floor, math.floor), (nl.ceil, math.ceil), (nl.trunc, math.trunc)):
            with self.subTest(function.__name__):
                self.assertEqual(elementwise(function, x), [float(fp64(a)) for a in x.flat()])
        self.near(elementwise(lambda a: nl.mod(a, 0.75), x), [a % 0.75 for a in x.flat()])
        self.near(elementwise(lambda a: nl.fmod(a, 0.75), x), [math.fmod(a, 0.75) for a in x.flat()])

    def test_comparisons(self):
        got = elementwise(lambda x, y: nl.where(nl.less(x, y), x, y), self.x, self.y)
        self.assertEqual(got, [min(a, b) for a, b in zip(self.fx, self.fy)])
        got = elementwise(lambda x, y: nl.greater_equal(x, y), self.x, self.y)
        self.assertEqual(got, [int(a >= b) for a, b in zip(self.fx, self.fy)])

    def test_broadcast(self):
        column, rc = ref.matrix(64, 1, seed=3)
        row, (rr,) = ref.matrix(1, 40, seed=4)
        self.near(elementwise(nl.add, self.x, column),
                  [a + rc[i // 40][0] for i, a in enumerate(self.fx)])
        self.near(elementwise(nl.multiply, self.x, row), [a * rr[i % 40] for i, a in enumerate(self.fx)])
        self.near(elementwise(nl.add, column, row), [rc[i][0] + rr[j] for i in range(64) for j in range(40)])

    def test_reductions(self):
        for function, fp64 in ((nl.sum, sum), (nl.max, max), (nl.min, min),
                               (nl.mean, lambda r: sum(r) / len(r))):
            with self.subTest(function.__name__):
                self.near(elementwise(lambda x: function(x, axis=[1]), self.x),
                          [fp64(r) for r in self.rx], 1e-5, 1e-5)
        mean = [sum(r) / 40 for r in self.rx]
        self.near(elementwise(lambda x: nl.var(x, axis=1), self.x),
                  [sum((v - m) ** 2 for v in r) / 40 for r, m in zip(self.rx, mean)], 1e-5, 1e-5)

    def test_matmul(self):
        a, ra = ref.matrix(64, 48, seed=5)
        b, rb = ref.matrix(48, 200, seed=6)
        turned = [list(r) for r in zip(*ra)]
        want = [ref.product(turned, rb, m, n) for m in range(64) for n in range(200)]
        self.near(elementwise(lambda x, y: nl.copy(nl.matmul(x, y)), a, b), want, 1e-5, 1e-5)


class Views(unittest.TestCase):
    def run_view(self, function, shape):
        n = 1
        for s in shape:
            n *= s
        x = nki.Array(_dtypes.encode('float32', range(n)), 'float32', shape)

        @nki.jit
        def kernel(x):
            v = function(nl.load(x))
            t = nl.copy(v)
            out = nl.ndarray(t.shape, t.dtype, buffer=nl.shared_hbm)
            nl.store(out, t)
            return out
        return kernel(x).tolist()

    def at(self, shape, index):
        n = 0
        for s, i in zip(shape, index):
            n = n * s + i
        return float(n)

    def test_slices(self):
        shape = (8, 6, 10)
        got = self.run_view(lambda t: t[0:5, 1::2, 3:9:3], shape)
        self.assertEqual(got, [[[self.at(shape, (p, i, j)) for j in (3, 6)] for i in (1, 3, 5)]
                               for p in range(5)])

    def test_permute_and_reshape(self):
        shape = (4, 6, 10)
        got = self.run_view(lambda t: t.permute((0, 2, 1)), shape)
        self.assertEqual(got, [[[self.at(shape, (p, i, j)) for i in range(6)] for j in range(10)]
                               for p in range(4)])
        got = self.run_view(lambda t: t.rearrange(('p', ('a', 'b'), 'j'), ('p', 'b', 'a', 'j'),
                                                  {'a': 2}), shape)
        self.assertEqual(got, [[[[self.at(shape, (p, a * 3 + b, j)) for j in range(10)]
                                 for a in range(2)] for b in range(3)] for p in range(4)])

    def test_access_pattern(self):
        shape = (4, 60)
        got = self.run_view(lambda t: t.ap([[60, 4], [1, 3], [20, 2]], offset=5), shape)
        self.assertEqual(got, [[[self.at(shape, (p, 5 + i + 20 * j)) for j in range(2)]
                                for i in range(3)] for p in range(4)])

    def test_index_arrays(self):
        shape = (4, 60)

        def view(t):
            p = nl.arange(4)[:, None, None]
            i, j = nl.arange(3)[None, :, None], nl.arange(2)[None, None, :]
            return t[p, 7 + i + 20 * j]
        self.assertEqual(self.run_view(view, shape),
                         [[[self.at(shape, (p, 7 + i + 20 * j)) for j in range(2)] for i in range(3)]
                          for p in range(4)])


class Programs(unittest.TestCase):
    def test_device_loop(self):
        """One body, run by the chip; its counter moves both views."""
        @nki.jit
        def kernel(x):
            out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)

            def body(i):
                t = nl.load(x[nl.ds(i, 1), :])
                nl.store(out[nl.ds(i, 1), :], t * 2.0)
            nl.fori_loop(0, 50, body)
            return out
        x, rows = ref.matrix(50, 8, seed=1)
        self.assertEqual(kernel(x).flat(), [2 * v for v in ref.flat(rows)])
        self.assertLess(len(kernel.trace(x).neff), 60000)

    def test_launch_grid(self):
        @nki.jit
        def kernel(x):
            out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
            p, f = nl.ds(nl.program_id(0) * 16, 16), nl.ds(nl.program_id(1) * 10, 10)
            nl.store(out[p, f], nl.load(x[p, f]) + float(10 * nl.program_id(0) + nl.program_id(1)))
            return out
        x, rows = ref.matrix(32, 30, seed=1)
        got = kernel[2, 3](x).tolist()
        for i in range(32):
            for j in range(30):
                self.assertAlmostEqual(got[i][j], rows[i][j] + 10 * (i // 16) + j // 10, places=5)

    def test_two_cores(self):
        """Each core doubles its half, then they swap tiles and add what the other sent."""
        @nki.jit(platform_target='trn3' if not ON_DRIVER else None)
        def kernel(x):
            out = nl.ndarray((64, 32), x.dtype, buffer=nl.shared_hbm)
            rank = nl.program_id(0)
            mine = nl.load(x[nl.ds(rank * 32, 32), :]) * 2.0
            theirs = nl.ndarray(mine.shape, mine.dtype, buffer=nl.sbuf)
            nisa.sendrecv(src=mine, dst=theirs, send_to_rank=1 - rank, recv_from_rank=1 - rank,
                          pipe_id=0)
            nl.store(out[nl.ds(rank * 32, 32), :], mine + theirs * 10.0)
            return out
        x, rows = ref.matrix(64, 32, seed=9)
        got = kernel[2](x).tolist()
        want = [[2 * rows[i][j] + 20 * rows[(i + 32) % 64][j] for j in range(32)] for i in range(64)]
        self.assertLessEqual(ref.worst(ref.flat(got), ref.flat(want), 1e-6, 1e-6), 1)
        self.assertEqual(kernel[2].trace(x).cores, 2)

    def test_argument_that_is_written(self):
        @nki.jit
        def kernel(x):
            nisa.dma_copy(dst=x[0:2, :], src=nl.full((2, 4), 7.0, nl.float32))
            return x
        x = nki.array([[float(4 * i + j) for j in range(4)] for i in range(4)])
        self.assertEqual(kernel(x).tolist(), [[7.0] * 4] * 2 + [[8.0, 9.0, 10.0, 11.0],
                                                               [12.0, 13.0, 14.0, 15.0]])

    def test_numpy_argument_that_is_written(self):
        if _dtypes.numpy is None:
            self.skipTest('NumPy is not here, or NKI_NO_NUMPY is set')

        @nki.jit
        def kernel(x):
            nl.store(x[0:1, :], nl.load(x[1:2, :]) + 1.0)
        x = _dtypes.numpy.arange(8, dtype='float32').reshape(2, 4)
        kernel(x)
        self.assertEqual(x.tolist(), [[5, 6, 7, 8], [4, 5, 6, 7]])

    def test_accumulation(self):
        """The first product of a PSUM tile overwrites, the next add."""
        @nki.jit
        def kernel(a, b):
            out = nl.ndarray((32, 64), nl.float32, buffer=nl.shared_hbm)
            psum = nl.ndarray((32, 64), nl.float32, buffer=nl.psum)
            for i in range(3):
                nisa.nc_matmul(psum, nl.load(a[i * 16:(i + 1) * 16]), nl.load(b[i * 16:(i + 1) * 16]))
            nl.store(out, psum)
            return out
        a, ra = ref.matrix(48, 32, seed=1)
        b, rb = ref.matrix(48, 64, seed=2)
        want = [ref.product(ra, rb, m, n) for m in range(32) for n in range(64)]
        self.assertLessEqual(ref.worst(kernel(a, b).flat(), want, 1e-5, 1e-5), 1)

    def test_memory_is_reused(self):
        """Lists of tiles that live too long: given back by their last use."""
        @nki.jit
        def kernel(x):
            out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
            for i in range(4):
                banks = [nl.ndarray((128, 512), nl.float32, buffer=nl.psum) for _ in range(8)]
                t = nl.load(x[i * 128:(i + 1) * 128])
                nisa.nc_transpose(dst=banks[i][0:64, 0:128], data=t)
                nisa.nc_transpose(dst=banks[i + 1][0:128, 0:64], data=nl.copy(banks[i][0:64, 0:128]))
                nl.store(out[i * 128:(i + 1) * 128], nl.copy(banks[i + 1][0:128, 0:64]))
            return out
        x, rows = ref.matrix(512, 64, seed=1)
        self.assertEqual(kernel(x).flat(), ref.flat(rows))

    def test_profile(self):
        @nki.jit
        def kernel(x):
            out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
            nl.store(out, nl.exp(nl.load(x)))
            return out
        x, _ = ref.matrix(128, 512, seed=1)
        p = nki.profile(kernel, x)
        # Two transfers of at least their trigger's 1,300 ns are in it.
        self.assertGreater(p.modelled_ns, 2600)
        self.assertIn('ACT', str(p))

    def test_tracing_is_fast(self):
        """10,000 instructions in under 2 s (alone; a busy machine gets three times that)."""
        def kernel(x):
            out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
            t = nl.load(x)
            for i in range(5000):
                nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=1.0)
                nisa.activation(dst=t, op=nl.copy, data=t)
            nl.store(out, t)
            return out
        x, _ = ref.matrix(16, 16)
        start = time.process_time()
        nki.jit(kernel).trace(x)
        self.assertLess(time.process_time() - start, 6 if ON_DRIVER is False else 60)


class Instructions(unittest.TestCase):
    """Instructions of the second half of nki.isa, with the documents' examples."""

    def test_match_replace(self):
        @nki.jit
        def kernel(data, vals):
            out = nl.ndarray(data.shape, data.dtype, buffer=nl.shared_hbm)
            at = nl.ndarray((1, 8), nl.uint32, buffer=nl.shared_hbm)
            t = nl.ndarray(data.shape, data.dtype, buffer=nl.sbuf)
            idx = nl.ndarray((1, 8), nl.uint32, buffer=nl.sbuf)
            nisa.nc_match_replace8(dst=t, data=nl.load(data), vals=nl.load(vals), imm=-5.0, dst_idx=idx)
            nl.store(out, t)
            nl.store(at, idx)
            return out, at
        out, at = kernel(nki.array([[1.0, 2, 3, 4] + [8] * 7]), nki.array([[3.0] + [8] * 7]))
        self.assertEqual(at.flat(), [2, 10, 9, 8, 7, 6, 5, 4])
        self.assertEqual(out.flat(), [1, 2, -5, 4] + [-5] * 7)

    def test_while_loop(self):
        """As many passes as a number in HBM says."""
        @nki.jit
        def kernel(n):
            out = nl.ndarray((1, 1), nl.float32, buffer=nl.shared_hbm)
            total = nl.full((1, 1), 0, nl.float32)
            left = nisa.register_alloc(nl.load(n))

            def body(left):
                nisa.tensor_scalar(dst=total, data=total, op0=nl.add, operand0=2.5)
                return left - 1
            nl.while_loop(left, body)
            nl.store(out, total)
            return out
        for n in (0, 1, 7):
            self.assertEqual(kernel(nki.array([[n]], 'int32')).flat(), [2.5 * n])

    def test_bn_stats(self):
        x, rows = ref.matrix(16, 200, -2, 5, seed=3)

        @nki.jit
        def kernel(x):
            stats = nl.ndarray((16, 6), nl.float32, buffer=nl.sbuf)
            result = nl.ndarray((16, 2), nl.float32, buffer=nl.sbuf)
            out = nl.ndarray((16, 2), nl.float32, buffer=nl.shared_hbm)
            nisa.bn_stats(dst=stats, data=nl.load(x))
            nisa.bn_aggr(dst=result, data=stats)
            nl.store(out, result)
            return out
        want = []
        for row in rows:
            mean = sum(row) / 200
            want += [mean, sum((v - mean) ** 2 for v in row) / 200]
        self.assertLessEqual(ref.worst(kernel(x).flat(), want, 1e-5, 1e-6), 1)


class Errors(unittest.TestCase):
    """The Python line, the rule, what was given and what is allowed."""

    def fails(self, function, *texts):
        x, _ = ref.matrix(128, 64)

        @nki.jit
        def kernel(x):
            function(nl.load(x))
            return nl.ndarray((1,), nl.float32, buffer=nl.shared_hbm)
        with self.assertRaises(nki.NkiValidationError) as caught:
            kernel(x)
        for text in texts:
            self.assertIn(text, str(caught.exception))

    def test_location(self):
        def wrong(t):
            nisa.tensor_tensor(dst=t, data1=t, data2=t[:, 0:32], op=nl.add)
        self.fails(wrong, 'test_language.py:%d' % (wrong.__code__.co_firstlineno + 1), '64', '32')

    def test_too_many_partitions(self):
        self.fails(lambda t: nl.ndarray((200, 4), nl.float32, buffer=nl.sbuf), '200', '128')

    def test_first_partition(self):
        self.fails(lambda t: nisa.memset(dst=t[2:5, :], value=0), '2', '0, 32, 64')

    def test_value_of_a_tile(self):
        def branch(t):
            if t[0:1, 0:1] > 0.0:
                pass
        self.fails(branch, 'known on the chip only')

    def test_memory_is_full(self):
        def fill(t):
            tiles = [nl.ndarray((128, 32768), nl.float32, buffer=nl.sbuf) for _ in range(3)]
            for tile in tiles:
                nisa.memset(dst=tile, value=0)
            nisa.tensor_tensor(dst=tiles[0], data1=tiles[1], data2=tiles[2], op=nl.add)
        self.fails(fill, 'no SBUF left')

    def test_outside_of_a_kernel(self):
        with self.assertRaises(nki.NkiValidationError):
            nl.ndarray((4, 4), nl.float32)

    def test_fault_names_the_line(self):
        """An index out of bounds is found by the chip."""
        @nki.jit
        def kernel(table, ids):
            out = nl.ndarray((4, 8), nl.float32, buffer=nl.shared_hbm)
            t = nl.ndarray((4, 8), nl.float32, buffer=nl.sbuf)
            nisa.dma_copy(dst=t, src=table.ap([[8, 4], [1, 8]], vector_offset=nl.load(ids)))
            nl.store(out, t)
            return out
        table, _ = ref.matrix(16, 8)
        with self.assertRaises(nki.NrtError) as caught:
            kernel(table, nki.array([[1], [2], [99], [3]], 'int32'))
        self.assertIn('test_language.py', str(caught.exception))


class Types(unittest.TestCase):
    def test_bfloat16(self):
        """Nearest, ties to even: 1 + 2^-8 goes down, 1 + 3 * 2^-8 up."""
        values = [1.0, 1 + 2.0 ** -8, 1 + 3 * 2.0 ** -8, -2.5, float('inf'), 3e38]
        self.assertEqual(_dtypes.decode('bfloat16', _dtypes.encode('bfloat16', values))[:5],
                         [1.0, 1.0, 1 + 2.0 ** -6, -2.5, float('inf')])

    def test_eight_bits(self):
        """Largest values of the published formats, and a round trip of every number."""
        for name, most in (('float8_e4m3', 240.0), ('float8_e4m3fn', 448.0), ('float8_e5m2', 57344.0)):
            self.assertEqual(_dtypes.decode(name, _dtypes.encode(name, [1e9])), [most])
            finite = [v for v in _dtypes.decode(name, bytes(range(256))) if math.isfinite(v)]
            self.assertEqual(_dtypes.decode(name, _dtypes.encode(name, finite)), finite)

    def test_numpy(self):
        if _dtypes.numpy is None:
            self.skipTest('NumPy is not here, or NKI_NO_NUMPY is set')
        np = _dtypes.numpy
        x = np.arange(24, dtype='float32').reshape(4, 6)

        @nki.jit
        def double(x):
            out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
            nl.store(out, nl.load(x) * 2.0)
            return out
        got = double(x)
        self.assertIsInstance(got, np.ndarray)
        self.assertTrue((got == 2 * x).all())


if __name__ == '__main__':
    unittest.main()
