#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# conftest.sh OUT CC FLAGS...: write OUT, a header that says which interfaces
# the kernel has. Stable kernels change them too, so versions tell nothing: each
# question is one compilation.
set -eu

out=$1
shift
src=$out.c
failed=$out.log
: > "$out.tmp"

compiles()
{
	{ echo '#include <linux/module.h>'; cat; } > "$src"
	"$@" -fsyntax-only -Werror=implicit-function-declaration \
		-Werror=incompatible-pointer-types -Werror=int-conversion \
		-DKBUILD_MODNAME='"conftest"' -DKBUILD_BASENAME='"conftest"' \
		"$src" 2> "$failed"
}

# ask NAME: the program on standard input compiles -> HAVE_NAME
ask()
{
	name=$1
	shift
	if compiles "$@"; then
		echo "#define HAVE_$name 1" >> "$out.tmp"
	else
		echo "/* HAVE_$name */" >> "$out.tmp"
	fi
}

if ! echo '#include <drm/drm_drv.h>' | compiles "$@"; then
	echo "conftest: the kernel's headers do not compile:" >&2
	cat "$failed" >&2
	exit 1
fi

ask DRM_DRIVER_DATE "$@" <<X
#include <drm/drm_drv.h>
struct drm_driver d = { .date = "0" };
X
ask DRIVER_GEM_GPUVA "$@" <<X
#include <drm/drm_drv.h>
int x = DRIVER_GEM_GPUVA;
X
ask SCHED_INIT_ARGS "$@" <<X
#include <drm/gpu_scheduler.h>
struct drm_sched_init_args a;
X
ask SCHED_JOB_CLIENT_ID "$@" <<X
#include <drm/gpu_scheduler.h>
int f(struct drm_sched_job *j) { return drm_sched_job_init(j, NULL, 1, NULL, 0ULL); }
X
ask SCHED_NO_HANG "$@" <<X
#include <drm/gpu_scheduler.h>
int x = DRM_GPU_SCHED_STAT_NO_HANG;
X
ask GPU_BUDDY "$@" <<X
#include <linux/gpu_buddy.h>
struct gpu_buddy b;
X
ask GPUVM_MAP_REQ "$@" <<X
#include <drm/drm_gpuvm.h>
int f(struct drm_gpuvm *v, const struct drm_gpuvm_map_req *r) { return drm_gpuvm_sm_map(v, NULL, r); }
X
ask GPUVM_BO_OBTAIN_LOCKED "$@" <<X
#include <drm/drm_gpuvm.h>
void *f(struct drm_gpuvm *v) { return drm_gpuvm_bo_obtain_locked(v, NULL); }
X
ask HRTIMER_SETUP "$@" <<X
#include <linux/hrtimer.h>
void f(struct hrtimer *t) { hrtimer_setup(t, NULL, CLOCK_MONOTONIC, HRTIMER_MODE_REL); }
X

rm -f "$src" "$failed"
mv "$out.tmp" "$out"
