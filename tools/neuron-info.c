// SPDX-License-Identifier: MIT
/*
 * neuron-info: versions of all that belongs to a working chip, and a health check
 * that says what is wrong and what to do about it.
 */
#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <libudev.h>

#include "common/accel.h"
#include "common/tool.h"
#include "nrt/nrt_version.h"

#define NAME		"neuron-info"
#define PCI_VENDOR	"0x1d0f"
#define MIN_KERNEL	6012	/* 6.12, the floor of the driver */

enum verdict { OK, WARN, BAD, SKIP };

/**
 * struct check - one question
 * @what: short name, also key of the JSON
 * @text: what was found
 * @fix: what to do; "" nothing
 */
struct check {
	const char *what;
	enum verdict verdict;
	char text[256];
	char fix[256];
};

struct report {
	struct check check[16];
	unsigned int count;
	struct accel_list list;
	int opened;
	bool bad;
};

static const char help[] =
	"Usage: neuron-info [OPTION]...\n"
	"Versions of driver, runtime and chips, and what keeps them from working.\n\n"
	"  -j, --json            JSON instead of text\n"
	"  -h, --help            this text\n"
	"      --version         version\n\n"
	"Exit status: 0 everything works; 1 something does not; 2 usage.\n";

static const char *const names[] = { [OK] = "ok", [WARN] = "warning", [BAD] = "error", [SKIP] = "skipped" };

static struct check *found(struct report *r, const char *what, enum verdict verdict,
			   const char *format, ...) __attribute__((format(printf, 4, 5)));

static struct check *found(struct report *r, const char *what, enum verdict verdict,
			   const char *format, ...)
{
	struct check *c = &r->check[r->count++];
	va_list args;

	c->what = what;
	c->verdict = verdict;
	va_start(args, format);
	vsnprintf(c->text, sizeof(c->text), format, args);
	va_end(args);
	r->bad |= verdict == BAD;
	return c;
}

static void __attribute__((format(printf, 2, 3))) fix(struct check *c, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(c->fix, sizeof(c->fix), format, args);
	va_end(args);
}

/* --- checks ------------------------------------------------------------------------- */

static void check_kernel(struct report *r)
{
	unsigned int major = 0, minor = 0;
	struct utsname u;
	struct check *c;

	if (uname(&u) || sscanf(u.release, "%u.%u", &major, &minor) != 2) {
		found(r, "kernel", WARN, "the release is not readable");
		return;
	}
	if (major * 1000 + minor >= MIN_KERNEL) {
		found(r, "kernel", OK, "Linux %s", u.release);
		return;
	}
	c = found(r, "kernel", BAD, "Linux %s; the driver needs 6.12 or later", u.release);
	fix(c, "install a newer kernel, or use the in-process chip: NEURON_RT_SIM=trn2");
}

/* Chips on the PCI bus, whether or not a driver has them. */
static unsigned int pci_chips(unsigned int *unbound)
{
	struct udev *udev = udev_new();
	struct udev_enumerate *e = udev ? udev_enumerate_new(udev) : NULL;
	struct udev_list_entry *entry;
	unsigned int n = 0;

	*unbound = 0;
	if (e) {
		udev_enumerate_add_match_subsystem(e, "pci");
		udev_enumerate_add_match_sysattr(e, "vendor", PCI_VENDOR);
		udev_enumerate_scan_devices(e);
		udev_list_entry_foreach(entry, udev_enumerate_get_list_entry(e)) {
			struct udev_device *d = udev_device_new_from_syspath(udev, udev_list_entry_get_name(entry));
			const char *id = d ? udev_device_get_sysattr_value(d, "device") : NULL;

			if (id && (!strncmp(id, "0x7164", 6) || !strncmp(id, "0x7264", 6) ||
				   !strncmp(id, "0x7364", 6) || !strncmp(id, "0x756", 5))) {
				n++;
				*unbound += !udev_device_get_driver(d);
			}
			udev_device_unref(d);
		}
		udev_enumerate_unref(e);
	}
	udev_unref(udev);
	return n;
}

static void check_chips(struct report *r)
{
	unsigned int unbound, n = pci_chips(&unbound);
	struct check *c;

	if (n) {
		c = found(r, "pci", unbound ? WARN : OK, "%u chip%s on the PCI bus, %u without a driver", n,
			  n == 1 ? "" : "s", unbound);
		if (unbound)
			fix(c, "modprobe neuron; dmesg says why a probe failed");
		return;
	}
	c = found(r, "pci", BAD, "no Neuron chip on the PCI bus");
	fix(c, "run on an instance or in the guest that has one (make shell), or in-process: NEURON_RT_SIM=trn2");
}

static void check_module(struct report *r)
{
	char text[64];
	struct check *c;

	if (!access("/sys/module/neuron", F_OK)) {
		if (tool_read_file("/sys/module/neuron/version", text, sizeof(text)) > 0 ||
		    tool_read_file("/sys/module/neuron/srcversion", text, sizeof(text)) > 0)
			found(r, "module", OK, "neuron %s", text);
		else
			found(r, "module", OK, "neuron is loaded");
		return;
	}
	c = found(r, "module", BAD, "the kernel module neuron is not loaded");
	fix(c, "modprobe neuron (as root), or insmod build/module/neuron.ko from a checkout");
}

static void check_nodes(struct report *r)
{
	struct group *g;
	struct check *c;

	r->opened = accel_open(&r->list);
	if (!r->opened) {
		found(r, "nodes", OK, "%u node%s under /dev/accel", r->list.count, r->list.count == 1 ? "" : "s");
		return;
	}
	c = found(r, "nodes", BAD, "%s", r->list.error[0] ? r->list.error : strerror(-r->opened));
	if (r->opened == -EACCES) {
		g = getgrnam("render");
		fix(c, "join the group that owns the nodes: usermod -aG %s %s, then log in again",
		    g ? g->gr_name : "render", getenv("USER") ?: "USER");
	} else if (access("/dev/accel", F_OK)) {
		fix(c, "no driver has made a node: see module and pci above");
	}
}

static void check_chip(struct report *r, const struct accel_dev *d)
{
	bool exec = d->device.flags & DRM_NEURON_DEVICE_HAS_EXEC;
	struct check *c;

	c = found(r, d->node + strlen("/dev/accel/"), exec ? OK : WARN,
		  "%s at %s, %u cores%s", d->arch, d->bdf, d->device.core_count,
		  exec ? "" : ", memory and copies only");
	if (!exec)
		fix(c, "the execution block is not there: on real silicon and at PCI revision 0xff programs cannot run");
}

static void check_runtime(struct report *r)
{
	nrt_version_t v = { 0 };

	if (nrt_get_version(&v, sizeof(v))) {
		found(r, "runtime", BAD, "libnrt does not say its version");
		return;
	}
	found(r, "runtime", OK, "libnrt API %llu.%llu, %s", (unsigned long long)v.rt_major,
	      (unsigned long long)v.rt_minor, v.rt_detail);
}

static void check_all(struct report *r)
{
	unsigned int i;

	check_kernel(r);
	check_runtime(r);
	check_chips(r);
	check_module(r);
	check_nodes(r);
	/* The first ones are enough to see a pattern; neuron-ls lists them all. */
	for (i = 0; i < r->list.count && i < 8; i++)
		check_chip(r, &r->list.devs[i]);
}

/* --- output ---------------------------------------------------------------------------- */

static void print_text(const struct report *r)
{
	unsigned int i;

	printf("%-10s %-8s %s\n", "tools", "ok", "neuron-accel " TOOL_VERSION);
	for (i = 0; i < r->count; i++) {
		const struct check *c = &r->check[i];

		printf("%-10s %-8s %s\n", c->what, names[c->verdict], c->text);
		if (c->fix[0])
			printf("%-10s %-8s -> %s\n", "", "", c->fix);
	}
}

static int print_json(const struct report *r)
{
	json_t *checks = json_array(), *root;
	unsigned int i;
	int ret;

	for (i = 0; i < r->count; i++) {
		const struct check *c = &r->check[i];

		json_array_append_new(checks, json_pack("{s:s, s:s, s:s, s:s}", "check", c->what, "result",
							names[c->verdict], "text", c->text, "fix", c->fix));
	}
	root = json_pack("{s:s, s:b, s:o}", "version", TOOL_VERSION, "healthy", !r->bad, "checks", checks);
	if (!root)
		return -ENOMEM;
	ret = json_dumpf(root, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(root);
	return ret;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	static struct report r;
	bool json = false;
	int c, ret = 0;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "jh", longs, NULL)) != -1) {
		switch (c) {
		case 'j':
			json = true;
			break;
		case 'h':
			fputs(help, stdout);
			return tool_finish(NAME);
		case 'V':
			tool_version(NAME);
			return tool_finish(NAME);
		default:
			tool_error(NAME, "unknown option");
			fputs("Try 'neuron-info --help'.\n", stderr);
			return 2;
		}
	}
	check_all(&r);
	if (json)
		ret = print_json(&r);
	else
		print_text(&r);
	accel_close(&r.list);
	return ret || tool_finish(NAME) || r.bad;
}
