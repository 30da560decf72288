// SPDX-License-Identifier: MIT
/*
 * A run in a file: a guest under software emulation is slow at floating point, so it
 * only writes down what the chip gave, and the host checks it.
 *
 * File run.bin: struct header, the epochs, the outcome; in the machine's own byte
 * order, read on the same kind of machine.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run.h"

struct header {
	char magic[8];
	uint32_t epochs;
	uint32_t epoch_size;
	uint64_t seed;
	uint64_t reserved[5];
};

#define RUN_MAGIC "NMNRUN01"

struct recorder {
	int fd;
	char path[4096];
};

static int put(struct recorder *r, const void *data, size_t size)
{
	const char *p = data;

	while (size) {
		ssize_t n = write(r->fd, p, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return fail("cannot write %s: %s", r->path, strerror(n < 0 ? errno : EIO));
		p += n;
		size -= (size_t)n;
	}
	return 0;
}

int recorder_open(struct recorder **out, const char *folder, uint64_t seed, unsigned int epochs)
{
	struct header h = { .magic = RUN_MAGIC, .epochs = epochs,
			    .epoch_size = sizeof(struct epoch), .seed = seed };
	struct recorder *r;

	*out = NULL;
	if (!folder)
		return 0;
	r = calloc(1, sizeof(*r));
	if (!r)
		return fail("out of memory");
	if (snprintf(r->path, sizeof(r->path), "%s/run.bin", folder) >= (int)sizeof(r->path)) {
		free(r);
		return fail("the folder's name is too long");
	}
	r->fd = open(r->path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
	if (r->fd < 0) {
		fail("cannot create %s: %s", r->path, strerror(errno));
		free(r);
		return -1;
	}
	*out = r;
	return put(r, &h, sizeof(h));
}

int recorder_epoch(struct recorder *r, const struct epoch *e)
{
	return r ? put(r, e, sizeof(*e)) : 0;
}

int recorder_close(struct recorder *r, const struct outcome *outcome)
{
	int err = 0;

	if (!r)
		return 0;
	if (outcome)
		err = put(r, outcome, sizeof(*outcome));
	if (close(r->fd) && !err)
		err = fail("cannot write %s: %s", r->path, strerror(errno));
	free(r);
	return err;
}

static int map_file(struct recording *rec, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return fail("cannot open %s: %s", path, strerror(errno));
	if (fstat(fd, &st) || st.st_size < (off_t)sizeof(struct header)) {
		close(fd);
		return fail("%s is no recording of a run", path);
	}
	rec->size = (size_t)st.st_size;
	rec->map = mmap(NULL, rec->size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (rec->map == MAP_FAILED) {
		rec->map = NULL;
		return fail("cannot map %s: %s", path, strerror(errno));
	}
	return 0;
}

int recording_open(struct recording *rec, const char *folder)
{
	const struct header *h;
	char path[4096];

	memset(rec, 0, sizeof(*rec));
	if (snprintf(path, sizeof(path), "%s/run.bin", folder) >= (int)sizeof(path))
		return fail("the folder's name is too long");
	if (map_file(rec, path))
		return -1;
	h = rec->map;
	if (memcmp(h->magic, RUN_MAGIC, 8) || h->epoch_size != sizeof(struct epoch) ||
	    rec->size != sizeof(*h) + (uint64_t)h->epochs * sizeof(struct epoch) +
			 sizeof(struct outcome)) {
		recording_close(rec);
		return fail("%s is damaged, or the run did not end", path);
	}
	rec->seed = h->seed;
	rec->epochs = h->epochs;
	rec->epoch = (const void *)(h + 1);
	rec->outcome = (const void *)(rec->epoch + h->epochs);
	return 0;
}

void recording_close(struct recording *rec)
{
	if (rec->map)
		munmap(rec->map, rec->size);
	memset(rec, 0, sizeof(*rec));
}
