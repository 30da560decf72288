// SPDX-License-Identifier: MIT
/*
 * An empty program, from nrt_execute() to its return, in turn with a 4 KiB O_DIRECT
 * read of a block device: medians of pairs.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "nki.h"
#include "nrt/nrt.h"

enum { PAIRS = 2000, WARM = 100, BLOCK = 4096, BLOCKS = 1024 };

static nrt_model_t *load_empty(void)
{
	nrt_instance_info_t info;
	struct nki_kernel *k;
	nrt_model_t *model;
	void *neff;
	size_t size;

	BENCH_CHECK(nrt_get_instance_info(&info, sizeof(info)));
	k = nki_kernel_new("empty", info.arch_name);
	if (nki_build(k, &neff, &size))
		bench_die("%s", k ? nki_error(k) : "out of memory");
	BENCH_CHECK(nrt_load(neff, size, -1, -1, &model));
	free(neff);
	nki_kernel_free(k);
	return model;
}

int main(int argc, char **argv)
{
	static uint64_t job[PAIRS], disk[PAIRS];
	nrt_tensor_set_t *in, *out;
	nrt_model_t *model;
	void *block;
	int fd;

	if (argc != 2)
		bench_die("usage: latency BLOCK-DEVICE");
	fd = open(argv[1], O_RDONLY | O_DIRECT);
	if (fd < 0)
		bench_die("%s: %s", argv[1], strerror(errno));
	if (posix_memalign(&block, BLOCK, BLOCK))
		bench_die("out of memory");
	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 0);
	BENCH_CHECK(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""));
	BENCH_CHECK(nrt_allocate_tensor_set(&in));
	BENCH_CHECK(nrt_allocate_tensor_set(&out));
	model = load_empty();
	for (int i = -WARM; i < PAIRS; i++) {
		uint64_t start = bench_ns(), middle, end;

		BENCH_CHECK(nrt_execute(model, in, out));
		middle = bench_ns();
		if (pread(fd, block, BLOCK, (off_t)((i + WARM) * 7 % BLOCKS) * BLOCK) != BLOCK)
			bench_die("read of %s: %s", argv[1], strerror(errno));
		end = bench_ns();
		if (i >= 0) {
			job[i] = middle - start;
			disk[i] = end - middle;
		}
	}
	BENCH_CHECK(nrt_unload(model));
	nrt_destroy_tensor_set(&in);
	nrt_destroy_tensor_set(&out);
	nrt_close();
	close(fd);
	free(block);
	printf("job_ns %llu\n", (unsigned long long)bench_median(job, PAIRS));
	printf("disk_ns %llu\n", (unsigned long long)bench_median(disk, PAIRS));
	return 0;
}
