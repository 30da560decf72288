# SPDX-License-Identifier: MIT
"""The tutorials' kernels on every chip generation, against references in fp64."""
import math
import os
import unittest

import nki
import reference as ref
import tutorials

ARCHES = ['trn1', 'trn2', 'trn3']
if os.path.isdir('/dev/accel'):		# on the driver: the chip that is there
    ARCHES = [os.environ.get('NKI_TEST_ARCH', 'trn2')]


class Tutorials(unittest.TestCase):
    def on_all(self, kernel, *args, **kwargs):
        """The kernel's result on each chip, one after the other."""
        for arch in ARCHES:
            with self.subTest(arch=arch):
                yield arch, nki.jit(kernel, platform_target=arch)(*args, **kwargs)

    def near(self, got, want, rtol=1e-5, atol=1e-6):
        self.assertLessEqual(ref.worst(got, want, rtol, atol), 1)

    def test_tensor_add(self):
        a, ra = ref.matrix(256, 512, seed=1)
        b, rb = ref.matrix(256, 512, seed=2)
        want = [x + y for x, y in zip(ref.flat(ra), ref.flat(rb))]
        for _, c in self.on_all(tutorials.tensor_add, a, b):
            self.near(c.flat(), want, 1e-7, 1e-7)

    def test_transpose2d(self):
        x, rows = ref.matrix(64, 3 * 5, seed=3)
        want = [row[i * 5 + j] for row in rows for j in range(5) for i in range(3)]
        for _, c in self.on_all(tutorials.transpose2d, x, (3, 5)):
            self.assertEqual(c.flat(), want)

    def test_average_pool2d(self):
        values = ref.numbers(16 * 6 * 8, seed=4)
        x = nki.array([[[values[(c * 6 + i) * 8 + j] for j in range(8)] for i in range(6)]
                       for c in range(16)])
        v = x.flat()
        want = [sum(v[(c * 6 + 2 * i + di) * 8 + 2 * j + dj] for di in (0, 1) for dj in (0, 1)) / 4
                for c in range(16) for i in range(3) for j in range(4)]
        for _, c in self.on_all(tutorials.average_pool2d, x, 2):
            self.near(c.flat(), want)

    def test_softmax(self):
        x, rows = ref.matrix(256, 300, -10, 10, seed=5)
        want = [p for row in rows for p in ref.softmax(row)]
        for _, c in self.on_all(tutorials.softmax, x):
            self.near(c.flat(), want, 1e-5, 1e-9)

    def test_rmsnorm(self):
        x, rows = ref.matrix(128, 256, -2, 3, seed=6)
        gamma, (g,) = ref.matrix(1, 256, 0.5, 1.5, seed=7)
        want = []
        for row in rows:
            scale = 1 / math.sqrt(sum(v * v for v in row) / len(row) + 1e-5)
            want += [v * scale * w for v, w in zip(row, g)]
        for _, c in self.on_all(tutorials.rmsnorm, x, gamma):
            self.near(c.flat(), want)

    def test_layernorm(self):
        x, rows = ref.matrix(128, 256, -2, 3, seed=8)
        gamma, (g,) = ref.matrix(1, 256, 0.5, 1.5, seed=9)
        beta, (b,) = ref.matrix(1, 256, seed=10)
        want = []
        for row in rows:
            mean = sum(row) / len(row)
            scale = 1 / math.sqrt(sum((v - mean) ** 2 for v in row) / len(row) + 1e-5)
            want += [(v - mean) * scale * w + z for v, w, z in zip(row, g, b)]
        for _, c in self.on_all(tutorials.layernorm, x, gamma, beta):
            self.near(c.flat(), want, 1e-5, 1e-5)

    def test_attention(self):
        q, rq = ref.matrix(64, 256, seed=11)
        k, rk = ref.matrix(64, 256, seed=12)
        v, rv = ref.matrix(256, 64, seed=13)
        want = []
        for i in range(0, 256, 51):
            p = ref.softmax([ref.product(rq, rk, i, j) / 8 for j in range(256)])
            want += [sum(p[j] * rv[j][d] for j in range(256)) for d in range(64)]
        for _, c in self.on_all(tutorials.attention, q, k, v):
            rows = c.tolist()
            self.near([x for i in range(0, 256, 51) for x in rows[i]], want, 1e-5, 1e-5)

    def test_fused_mamba(self):
        delta, rd = ref.matrix(128, 64, 0.01, 0.5, seed=14)
        u, ru = ref.matrix(128, 64, seed=15)
        a, ra = ref.matrix(128, 4, -2, -0.1, seed=16)
        b, rb = ref.matrix(4, 64, seed=17)
        c, rc = ref.matrix(4, 64, seed=18)
        want = []
        for ch in range(128):
            h, y = [0.0] * 4, []
            for t in range(64):
                h = [math.exp(rd[ch][t] * ra[ch][n]) * h[n] + rd[ch][t] * ru[ch][t] * rb[n][t]
                     for n in range(4)]
                y.append(sum(h[n] * rc[n][t] for n in range(4)))
            want += y
        for _, out in self.on_all(tutorials.fused_mamba, delta, u, a, b, c):
            self.near(out.flat(), want, 1e-5, 1e-5)


class MatrixMultiplication(unittest.TestCase):
    """Every step of the tutorial is right, and faster in modelled time than the one before."""

    def test_steps(self):
        a, ra = ref.matrix(512, 1024, seed=1, dtype='bfloat16')
        b, rb = ref.matrix(512, 1024, seed=2, dtype='bfloat16')
        places = [(m, (m * 37 + 11) % 1024) for m in range(0, 1024, 41)]
        want = [ref.product(ra, rb, m, n) for m, n in places]
        steps = (tutorials.matmul_tiled, tutorials.matmul_hoist_load,
                 tutorials.matmul_block_free_dimension, tutorials.matmul_fully_optimized)
        for arch in ARCHES:
            last = None
            for step in steps:
                with self.subTest(arch=arch, step=step.__name__):
                    kernel = nki.jit(step, platform_target=arch)
                    rows = kernel(a, b).tolist()
                    # The result is bf16: half a step of 2^-8.
                    self.assertLessEqual(ref.worst([rows[m][n] for m, n in places], want,
                                                   1 / 256, 1e-3), 1)
                    time = kernel.last_program.last.modelled_ns
                    if last is not None:
                        self.assertLess(time, last)
                    last = time


if __name__ == '__main__':
    unittest.main()
