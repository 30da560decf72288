// SPDX-License-Identifier: MIT
/* The allocator of device addresses, against a bitmap. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "va.h"
#include "kselftest_harness.h"

#define PAGE	4096ull
#define START	(1ull << 32)
#define PAGES	4096ull

static unsigned int holes(const struct va_space *s)
{
	unsigned int n = 0;
	struct va_range *r;

	TAILQ_FOREACH(r, &s->free, link)
		n++;
	return n;
}

TEST(whole_space)
{
	struct va_space s;
	uint64_t va, other;

	ASSERT_EQ(0, va_init(&s, START, PAGES * PAGE));
	ASSERT_EQ(0, va_alloc(&s, PAGES * PAGE, PAGE, &va));
	EXPECT_EQ(START, va);
	EXPECT_EQ(-ENOSPC, va_alloc(&s, PAGE, PAGE, &other));
	ASSERT_EQ(0, va_free(&s, va, PAGES * PAGE));
	EXPECT_EQ(-ENOSPC, va_alloc(&s, PAGES * PAGE + PAGE, PAGE, &other));
	EXPECT_EQ(-ENOSPC, va_alloc(&s, UINT64_MAX, PAGE, &other));
	EXPECT_EQ(-ENOSPC, va_alloc(&s, UINT64_MAX - PAGE, 1ull << 40, &other));
	EXPECT_EQ(0, va_alloc(&s, PAGES * PAGE, PAGE, &other));
	va_fini(&s);
}

TEST(alignment)
{
	struct va_space s;
	uint64_t a, b, c;

	ASSERT_EQ(0, va_init(&s, START, 1ull << 30));
	ASSERT_EQ(0, va_alloc(&s, PAGE, PAGE, &a));
	ASSERT_EQ(0, va_alloc(&s, 2ull << 20, 2ull << 20, &b));
	EXPECT_EQ(0, b % (2ull << 20));
	/* The hole that alignment left is used. */
	ASSERT_EQ(0, va_alloc(&s, PAGE, PAGE, &c));
	EXPECT_EQ(a + PAGE, c);
	ASSERT_EQ(0, va_free(&s, a, PAGE));
	ASSERT_EQ(0, va_free(&s, b, 2ull << 20));
	ASSERT_EQ(0, va_free(&s, c, PAGE));
	EXPECT_EQ(1, holes(&s));
	va_fini(&s);
}

TEST(random_sizes)
{
	static unsigned char used[PAGES];
	struct { uint64_t va, pages; } live[256] = { 0 };
	struct va_space s;

	srand(1);
	ASSERT_EQ(0, va_init(&s, START, PAGES * PAGE));
	for (int i = 0; i < 200000; i++) {
		int n = rand() % 256;
		uint64_t pages = 1 + rand() % 40, align = PAGE << rand() % 5, va;

		if (live[n].pages) {
			memset(used + (live[n].va - START) / PAGE, 0, live[n].pages);
			ASSERT_EQ(0, va_free(&s, live[n].va, live[n].pages * PAGE));
			live[n].pages = 0;
		} else if (!va_alloc(&s, pages * PAGE, align, &va)) {
			ASSERT_EQ(0, va % align);
			ASSERT_GE(va, START);
			ASSERT_LE(va + pages * PAGE, START + PAGES * PAGE);
			ASSERT_EQ(NULL, memchr(used + (va - START) / PAGE, 1, pages));
			memset(used + (va - START) / PAGE, 1, pages);
			live[n].va = va;
			live[n].pages = pages;
		}
	}
	for (int n = 0; n < 256; n++)
		if (live[n].pages)
			ASSERT_EQ(0, va_free(&s, live[n].va, live[n].pages * PAGE));
	EXPECT_EQ(1, holes(&s));
	va_fini(&s);
}

TEST_HARNESS_MAIN
