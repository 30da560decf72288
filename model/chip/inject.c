// SPDX-License-Identifier: MIT
/* Faults on demand: reading what is asked for, arming, listing, clearing. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chip.h"

#define NEURON_INJECT_P(x)	(1u << NEURON_INJECT_PARAM_##x)
#define MAX_COUNT		1000000000000ull
#define DEFAULT_SIZE		64

enum when { ONCE, EVENT, STATE };

static const struct kind {
	const char *name;
	enum when when;
	uint32_t params;
	uint64_t count;
} kinds[CHIP_INJECT_KINDS] = {
#define NEURON_INJECT(id, name, when, params, count, what, seen) \
	[CHIP_INJECT_##id] = { name, when, params, count },
#include "neuron/inject.def"
};

static const char *const param_name[CHIP_INJECT_PARAMS] = {
#define NEURON_INJECT_PARAM(id, name, text) [NEURON_INJECT_PARAM_##id] = name,
#include "neuron/inject.def"
};

static const struct word {
	enum chip_inject_param param;
	const char *word;
	uint64_t value;
} words[] = {
#define NEURON_INJECT_WORD(param, word, value) { NEURON_INJECT_PARAM_##param, word, value },
#include "neuron/inject.def"
};

/* Where the text of an error goes. */
struct complaint {
	char *text;
	size_t size;
};

static int bad(struct complaint *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static int bad(struct complaint *c, const char *fmt, ...)
{
	va_list ap;

	if (!c->size)
		return -EINVAL;
	va_start(ap, fmt);
	vsnprintf(c->text, c->size, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* Appends to a list of names; cut when it does not fit. */
static void add_name(char *list, size_t size, const char *name)
{
	size_t len = strlen(list);

	snprintf(list + len, size - len, "%s%s", len ? ", " : "", name);
}

/* --- the text ----------------------------------------------------------------------- */

static const char *skip_blank(const char *s)
{
	while (isspace((unsigned char)*s) || *s == ',')
		s++;
	return s;
}

static size_t token_len(const char *s)
{
	size_t n = 0;

	while (s[n] && s[n] != ',' && s[n] != ';' && s[n] != '=' && !isspace((unsigned char)s[n]))
		n++;
	return n;
}

static bool is_word(const char *s, size_t len, const char *word)
{
	return strlen(word) == len && !strncmp(s, word, len);
}

static int find_kind(const char *s, size_t len, struct complaint *c)
{
	char list[512] = "";
	int i;

	for (i = 0; i < CHIP_INJECT_KINDS; i++) {
		if (is_word(s, len, kinds[i].name))
			return i;
		add_name(list, sizeof(list), kinds[i].name);
	}
	return bad(c, "unknown fault '%.*s': must be one of %s", (int)(len < 40 ? len : 40), s, list);
}

static int find_param(const struct kind *k, const char *s, size_t len, struct complaint *c)
{
	char list[256] = "";
	int i;

	for (i = 0; i < CHIP_INJECT_PARAMS; i++) {
		if (!(k->params >> i & 1))
			continue;
		if (is_word(s, len, param_name[i]))
			return i;
		add_name(list, sizeof(list), param_name[i]);
	}
	return bad(c, "%s: no parameter '%.*s': it takes %s", k->name, (int)(len < 40 ? len : 40), s,
		   *list ? list : "none");
}

static bool takes_words(enum chip_inject_param param)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(words); i++) {
		if (words[i].param == param)
			return true;
	}
	return false;
}

static int word_value(const struct kind *k, enum chip_inject_param param, const char *s, size_t len,
		      uint64_t *value, struct complaint *c)
{
	char list[512] = "";
	size_t i;

	for (i = 0; i < ARRAY_LEN(words); i++) {
		if (words[i].param != param)
			continue;
		if (is_word(s, len, words[i].word)) {
			*value = words[i].value;
			return 0;
		}
		add_name(list, sizeof(list), words[i].word);
	}
	return bad(c, "%s: %s=%.*s: must be one of %s", k->name, param_name[param],
		   (int)(len < 40 ? len : 40), s, list);
}

static int number_value(const struct kind *k, enum chip_inject_param param, const char *s, size_t len,
			uint64_t *value, struct complaint *c)
{
	char text[32], *end;

	if (len && len < sizeof(text) && isdigit((unsigned char)*s)) {
		memcpy(text, s, len);
		text[len] = '\0';
		errno = 0;
		*value = strtoull(text, &end, 0);
		if (!*end && !errno)
			return 0;
	}
	return bad(c, "%s: %s=%.*s: must be a number", k->name, param_name[param],
		   (int)(len < 40 ? len : 40), s);
}

/* One "name,param=value,..." up to a semicolon or the end; @at moves behind it. */
static int parse(const char **at, struct chip_fault *f, struct complaint *c)
{
	const char *s = skip_blank(*at);
	size_t len = token_len(s);
	int kind = find_kind(s, len, c), param, ret;
	const struct kind *k;

	if (kind < 0)
		return kind;
	k = &kinds[kind];
	f->kind = (enum chip_inject_kind)kind;
	f->param[NEURON_INJECT_PARAM_COUNT] = k->count;
	for (s = skip_blank(s + len); *s && *s != ';'; s = skip_blank(s + len)) {
		len = token_len(s);
		param = find_param(k, s, len, c);
		if (param < 0)
			return param;
		if (s[len] != '=')
			return bad(c, "%s: %s needs a value: %s=...", k->name, param_name[param], param_name[param]);
		if (f->given >> param & 1)
			return bad(c, "%s: %s is given twice", k->name, param_name[param]);
		s += len + 1;
		len = token_len(s);
		ret = (takes_words((enum chip_inject_param)param) ? word_value : number_value)
			(k, (enum chip_inject_param)param, s, len, &f->param[param], c);
		if (ret)
			return ret;
		f->given |= 1u << param;
	}
	*at = s;
	return 0;
}

/* --- is it possible on this chip? ------------------------------------------------------ */

static uint64_t limit(const struct neuron_chip *chip, enum chip_inject_param param)
{
	switch (param) {
	case NEURON_INJECT_PARAM_STACK:
		return chip->profile.hbm_stacks - 1;
	case NEURON_INJECT_PARAM_CORE:
		return chip->profile.cores - 1;
	case NEURON_INJECT_PARAM_UDMA:
		return chip->profile.udma_engines - 1;
	case NEURON_INJECT_PARAM_QUEUE:
		return NEURON_UDMA_QUEUES - 1;
	case NEURON_INJECT_PARAM_SLOT:
		return NEURON_MAX_SLOTS - 1;
	case NEURON_INJECT_PARAM_VECTOR:
		return chip->vectors - 1;
	case NEURON_INJECT_PARAM_LINK:
		return CHIP_MAX_LINKS - 1;
	case NEURON_INJECT_PARAM_REPAIR:
	case NEURON_INJECT_PARAM_SCRUB:
		return 1;
	case NEURON_INJECT_PARAM_AFTER:
	case NEURON_INJECT_PARAM_COUNT:
		return MAX_COUNT;
	default:
		return ~0ull;
	}
}

static int check_hbm(struct neuron_chip *chip, struct chip_fault *f, struct complaint *c)
{
	const struct chip_profile *p = &chip->profile;
	uint64_t addr = f->param[NEURON_INJECT_PARAM_ADDR], *size = &f->param[NEURON_INJECT_PARAM_SIZE];
	const uint8_t *at;

	if (f->given & NEURON_INJECT_P(ADDR)) {
		if (f->given & NEURON_INJECT_P(STACK))
			return bad(c, "hbm-ue: addr and stack exclude each other");
		if (!(f->given & NEURON_INJECT_P(SIZE)))
			*size = DEFAULT_SIZE;
		at = chip_hbm_at(chip, addr, *size);
		if (!at || !*size)
			return bad(c, "hbm-ue: addr=0x%" PRIx64 " size=%" PRIu64 ": must be in one of %u stacks, "
				   "0x%" PRIx64 " bytes each, 0x%" PRIx64 " apart", addr, *size, p->hbm_stacks,
				   p->hbm_size, p->hbm_stride);
		f->lo = (uint64_t)(at - chip->hbm);
		f->hi = f->lo + *size;
		return 0;
	}
	if (f->given & NEURON_INJECT_P(SIZE))
		return bad(c, "hbm-ue: size needs addr");
	f->lo = 0;
	f->hi = p->hbm_size * p->hbm_stacks;
	if (f->given & NEURON_INJECT_P(STACK)) {
		f->lo = p->hbm_size * f->param[NEURON_INJECT_PARAM_STACK];
		f->hi = f->lo + p->hbm_size;
	}
	return 0;
}

static int check(struct neuron_chip *chip, struct chip_fault *f, struct complaint *c)
{
	const struct kind *k = &kinds[f->kind];
	unsigned int i;

	for (i = 0; i < CHIP_INJECT_PARAMS; i++) {
		if ((f->given >> i & 1) && f->param[i] > limit(chip, (enum chip_inject_param)i))
			return bad(c, "%s: %s=%" PRIu64 ": must be 0 to %" PRIu64, k->name, param_name[i],
				   f->param[i], limit(chip, (enum chip_inject_param)i));
	}
	if (!(f->given & NEURON_INJECT_P(REPAIR)))
		f->param[NEURON_INJECT_PARAM_REPAIR] = 1;
	if (!(f->given & NEURON_INJECT_P(SEED)))
		f->param[NEURON_INJECT_PARAM_SEED] = 1;
	if (f->kind == CHIP_INJECT_HBM_UE)
		return check_hbm(chip, f, c);
	if (f->kind == CHIP_INJECT_DOORBELL_LOST && (f->given & NEURON_INJECT_P(SLOT)) &&
	    (f->given & (NEURON_INJECT_P(UDMA) | NEURON_INJECT_P(QUEUE))))
		return bad(c, "doorbell-lost: slot excludes udma and queue");
	if (f->kind == CHIP_INJECT_AER && !(f->given & NEURON_INJECT_P(ERROR)))
		return bad(c, "aer: error=... is missing");
	return 0;
}

/* --- arming ------------------------------------------------------------------------------ */

/* Faults' lock held. */
static void update_armed(struct chip_faults *all)
{
	unsigned int i, armed = 0;

	for (i = 0; i < CHIP_INJECT_MAX; i++) {
		if (all->item[i].id && !all->item[i].spent)
			armed |= 1u << all->item[i].kind;
	}
	atomic_store(&all->armed, armed);
}

/* A free entry, or the oldest that is used up. */
static struct chip_fault *find_room(struct chip_faults *all)
{
	struct chip_fault *best = NULL, *f;

	for (f = all->item; f < all->item + CHIP_INJECT_MAX; f++) {
		if (!f->id)
			return f;
		if (f->spent && (!best || f->id < best->id))
			best = f;
	}
	return best;
}

static int arm(struct neuron_chip *chip, struct chip_fault *f, struct complaint *c)
{
	struct chip_faults *all = &chip->faults;
	struct chip_fault *room;

	f->skip = f->param[NEURON_INJECT_PARAM_AFTER];
	f->left = f->param[NEURON_INJECT_PARAM_COUNT];
	pthread_mutex_lock(&all->lock);
	room = find_room(all);
	if (room) {
		f->id = ++all->last_id;
		*room = *f;
		update_armed(all);
	}
	pthread_mutex_unlock(&all->lock);
	if (!room) {
		bad(c, "%s: %u faults are armed, no more fit: clear some", kinds[f->kind].name, CHIP_INJECT_MAX);
		return -ENOSPC;
	}
	return (int)f->id;
}

/* Jobs that run have not been told to come by. */
static void call_jobs(struct neuron_chip *chip)
{
	unsigned int i;

	pthread_mutex_lock(&chip->lock);
	for (i = 0; i < NEURON_MAX_SLOTS; i++) {
		if (chip->slot[i].on_cpu)
			atomic_store(&chip->slot[i].poll, true);
	}
	pthread_mutex_unlock(&chip->lock);
}

static void pull_out(struct neuron_chip *chip)
{
	atomic_store(&chip->removed, true);
	neuron_chip_reset(chip, NEURON_CHIP_RESET_BUS);
	if (chip->host.pci)
		chip->host.pci(chip->opaque, NEURON_CHIP_PCI_PRESENCE, 0);
}

static void plug_in(struct neuron_chip *chip)
{
	if (!atomic_exchange(&chip->removed, false))
		return;
	neuron_chip_reset(chip, NEURON_CHIP_RESET_BUS);
	if (chip->host.pci)
		chip->host.pci(chip->opaque, NEURON_CHIP_PCI_PRESENCE, 1);
}

/* Faults that happen at once. */
static int happen(struct neuron_chip *chip, struct chip_fault *f, struct complaint *c)
{
	uint64_t count = f->param[NEURON_INJECT_PARAM_COUNT];

	switch (f->kind) {
	case CHIP_INJECT_HBM_CE:
		chip_misc_ecc(chip, NEURON_MISC_HBM_ECC(f->param[NEURON_INJECT_PARAM_STACK]), true, count);
		return 0;
	case CHIP_INJECT_SRAM_CE:
		chip_misc_ecc(chip, NEURON_MISC_SRAM_ECC, true, count);
		return 0;
	case CHIP_INJECT_FLR:
		if (!chip->host.pci || chip->host.pci(chip->opaque, NEURON_CHIP_PCI_FLR, 0))
			neuron_chip_reset(chip, NEURON_CHIP_RESET_FLR);
		return 0;
	case CHIP_INJECT_AER:
		if (chip->host.pci &&
		    !chip->host.pci(chip->opaque, NEURON_CHIP_PCI_AER, f->param[NEURON_INJECT_PARAM_ERROR]))
			return 0;
		bad(c, "aer: this chip is not on a bus that reports errors (in QEMU: below a root port)");
		return -EOPNOTSUPP;
	default:
		return -EINVAL;
	}
}

static int inject_one(struct neuron_chip *chip, const char **at, struct complaint *c)
{
	struct chip_fault f = { .id = 0 };
	int ret = parse(at, &f, c);

	if (!ret)
		ret = check(chip, &f, c);
	if (ret)
		return ret;
	chip_log(chip, NEURON_CHIP_LOG_GUEST, "fault asked for: %s", kinds[f.kind].name);
	if (kinds[f.kind].when == ONCE)
		return happen(chip, &f, c);
	ret = arm(chip, &f, c);
	if (ret < 0)
		return ret;
	if (f.param[NEURON_INJECT_PARAM_SCRUB])
		chip_inject_scrub(chip, (unsigned int)ret);
	if (f.kind == CHIP_INJECT_SRAM_UE || f.kind == CHIP_INJECT_ENGINE_STUCK)
		call_jobs(chip);
	if (f.kind == CHIP_INJECT_SURPRISE_REMOVAL)
		pull_out(chip);
	return ret;
}

int neuron_chip_inject(struct neuron_chip *chip, const char *spec, char *error, size_t size)
{
	struct complaint c = { error, error ? size : 0 };
	int ret = 0;

	if (c.size)
		*error = '\0';
	if (!spec)
		return bad(&c, "no fault is named");
	do {
		ret = inject_one(chip, &spec, &c);
	} while (ret >= 0 && *spec++ == ';' && *skip_blank(spec));
	return ret;
}

/* --- clearing ---------------------------------------------------------------------------- */

/* What a fault has left behind. */
static void end_effects(struct neuron_chip *chip, uint32_t gone)
{
	unsigned int i;

	if (gone >> CHIP_INJECT_DMA_STUCK & 1)
		chip_udma_unstick(chip);
	if (gone >> CHIP_INJECT_SURPRISE_REMOVAL & 1)
		plug_in(chip);
	pthread_mutex_lock(&chip->lock);
	if (gone >> CHIP_INJECT_RESET_HANG & 1) {
		chip->fw_reset_hung = false;
		atomic_store(&chip->dead, false);
	}
	for (i = 0; i < NEURON_MAX_SLOTS && (gone >> CHIP_INJECT_ENGINE_STUCK & 1); i++)
		chip->slot[i].stuck = false;
	pthread_cond_broadcast(&chip->cond);
	pthread_mutex_unlock(&chip->lock);
}

int neuron_chip_clear(struct neuron_chip *chip, unsigned int id)
{
	struct chip_faults *all = &chip->faults;
	struct chip_fault *f;
	uint32_t gone = 0;

	pthread_mutex_lock(&all->lock);
	for (f = all->item; f < all->item + CHIP_INJECT_MAX; f++) {
		if (!f->id || (id && f->id != id))
			continue;
		gone |= 1u << f->kind;
		f->id = 0;
	}
	update_armed(all);
	pthread_mutex_unlock(&all->lock);
	if (id && !gone)
		return -ENOENT;
	end_effects(chip, id ? gone : ~0u);
	return 0;
}

/* --- the list ---------------------------------------------------------------------------- */

static const char *word_of(enum chip_inject_param param, uint64_t value)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(words); i++) {
		if (words[i].param == param && words[i].value == value)
			return words[i].word;
	}
	return NULL;
}

static void print_fault(const struct chip_fault *f, char *line, size_t size)
{
	size_t n = (size_t)snprintf(line, size, "%u %s", f->id, kinds[f->kind].name);
	const char *word;
	unsigned int i;

	for (i = 0; i < CHIP_INJECT_PARAMS && n < size; i++) {
		if (!(f->given >> i & 1))
			continue;
		word = word_of((enum chip_inject_param)i, f->param[i]);
		if (word)
			n += (size_t)snprintf(line + n, size - n, ",%s=%s", param_name[i], word);
		else
			n += (size_t)snprintf(line + n, size - n, i == NEURON_INJECT_PARAM_ADDR ?
					      ",%s=0x%" PRIx64 : ",%s=%" PRIu64, param_name[i], f->param[i]);
	}
	if (n < size)
		snprintf(line + n, size - n, " hits=%" PRIu64 "%s\n", f->hits, f->spent ? " spent" : "");
}

size_t neuron_chip_injected(struct neuron_chip *chip, char *text, size_t size)
{
	struct chip_faults *all = &chip->faults;
	unsigned int id, i;
	char line[512];
	size_t n = 0;

	if (size)
		*text = '\0';
	pthread_mutex_lock(&all->lock);
	/* The oldest first, which need not be where it was put. */
	for (id = 1; id <= all->last_id; id++) {
		for (i = 0; i < CHIP_INJECT_MAX; i++) {
			if (all->item[i].id == id)
				break;
		}
		if (i == CHIP_INJECT_MAX)
			continue;
		print_fault(&all->item[i], line, sizeof(line));
		if (n < size)
			snprintf(text + n, size - n, "%s", line);
		n += strlen(line);
	}
	pthread_mutex_unlock(&all->lock);
	return n;
}

void chip_inject_init(struct chip_faults *faults)
{
	pthread_mutex_init(&faults->lock, NULL);
}

void chip_inject_free(struct chip_faults *faults)
{
	pthread_mutex_destroy(&faults->lock);
}
