// SPDX-License-Identifier: MIT
/* A program from text: directives, labels, lines. */
#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "asm.h"
#include "isa_text.h"
#include "neff.h"
#include "rules.h"

#define MAX_WORDS	(1u << 24)
#define MAX_DATA	(1ull << 32)

struct label {
	struct label *next;
	char name[64];
	unsigned int core, engine, line;
	uint32_t word;
};

/* A branch to a name that is not known yet. */
struct fixup {
	struct fixup *next;
	char name[64];
	unsigned int core, engine, line;
	uint32_t word;
};

/**
 * struct source - a program being assembled
 * @line: of the text, from 1
 * @core, @engine: where the next instruction goes; -1: nowhere yet
 * @room: words allocated, by core and engine
 * @sems: one past the highest semaphore used, by core
 * @explicit_lines: ".line" was given, so the table is complete
 */
struct source {
	const char *path;
	struct neff *neff;
	unsigned int line;
	unsigned int core;
	int engine;
	bool unchecked;
	bool has_target;
	bool explicit_lines[NEFF_MAX_CORES];
	uint32_t room[NEFF_MAX_CORES][NEURON_ENGINE_COUNT];
	uint32_t line_room[NEFF_MAX_CORES];
	unsigned int sems[NEFF_MAX_CORES];
	uint64_t filled[NEURON_MAX_ARGS];
	struct label *labels;
	struct fixup *fixups;
	char *error;
	size_t size;
	int ret;
};

static bool fail_at(struct source *s, unsigned int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static bool fail_at(struct source *s, unsigned int line, const char *fmt, ...)
{
	va_list ap;
	int n = snprintf(s->error, s->size, "%s:%u: ", s->path, line);

	s->ret = -EINVAL;
	if (n < 0 || (size_t)n >= s->size)
		return false;
	va_start(ap, fmt);
	vsnprintf(s->error + n, s->size - n, fmt, ap);
	va_end(ap);
	return false;
}

#define fail(s, ...) fail_at(s, (s)->line, __VA_ARGS__)

static bool no_memory(struct source *s)
{
	fail(s, "the host is out of memory");
	s->ret = -ENOMEM;
	return false;
}

/* ------------------------------------------------------------------------ */
/* Words of a line							    */

static char *skip_blank(char *p)
{
	while (*p && isspace((unsigned char)*p))
		p++;
	return p;
}

/* The next word, or what stands between two quotes; NULL: none. Ends with 0. */
static char *next_word(char **p)
{
	char *word = skip_blank(*p);
	char *stop;

	if (!*word)
		return NULL;
	if (*word == '"') {
		word++;
		stop = strchr(word, '"');
		if (!stop)
			stop = word + strlen(word);
	} else {
		stop = word + strcspn(word, " \t\r\n");
	}
	*p = *stop ? stop + 1 : stop;
	*stop = 0;
	return word;
}

static bool parse_number(const char *text, uint64_t max, uint64_t *value)
{
	char *stop;

	if (!text || !isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*value = strtoull(text, &stop, 0);
	return !errno && !*stop && *value <= max;
}

/* ------------------------------------------------------------------------ */
/* Program and arguments						    */

static bool set_text(struct source *s, char *to, size_t size, const char *text, const char *what)
{
	if (!text || !*text || strlen(text) >= size)
		return fail(s, "%s must have 1 to %zu bytes", what, size - 1);
	strcpy(to, text);
	return true;
}

static bool set_target(struct source *s, const char *name)
{
	static const struct {
		const char *name;
		unsigned int nc;
	} archs[] = {
#define NEURON_ARCH(id, name, product, device_id, nc_version, cores, stacks, stack_gib, stride, \
		    sbuf_kib, host_bit, lnc, udma, h2t) \
		{ name, nc_version },
#include "neuron/arch.def"
#undef NEURON_ARCH
	};
	char allowed[128] = "";

	for (size_t i = 0; i < sizeof(archs) / sizeof(archs[0]); i++) {
		if (name && !strcmp(name, archs[i].name)) {
			s->neff->nc_version = archs[i].nc;
			s->has_target = true;
			return set_text(s, s->neff->target, sizeof(s->neff->target), name, "a target");
		}
		snprintf(allowed + strlen(allowed), sizeof(allowed) - strlen(allowed), "%s%s", i ? ", " : "",
			 archs[i].name);
	}
	return fail(s, "unknown target \"%s\"; allowed: %s", name ? name : "", allowed);
}

static bool arg_shape(struct neff_arg *arg, char *text)
{
	char *open = strchr(text, '[');
	uint64_t n, bytes;
	char *state = NULL;

	if (!open)
		return false;
	*open++ = 0;
	bytes = neff_dtype_size(text, &arg->dtype);
	if (!bytes || !strchr(open, ']'))
		return false;
	*strchr(open, ']') = 0;
	for (char *t = strtok_r(open, ", \t", &state); t; t = strtok_r(NULL, ", \t", &state)) {
		if (arg->ndim == NEFF_MAX_DIMS || !parse_number(t, UINT32_MAX, &n) || !n || bytes > (1ull << 40) / n)
			return false;
		bytes *= n;
		arg->shape[arg->ndim++] = n;
	}
	arg->size = bytes;
	return true;
}

static struct neff_arg *arg_at(struct source *s, uint64_t n)
{
	struct neff *neff = s->neff;

	if (n >= neff->arg_count) {
		struct neff_arg *more = realloc(neff->args, (n + 1) * sizeof(*more));

		if (!more)
			return NULL;
		memset(&more[neff->arg_count], 0, (n + 1 - neff->arg_count) * sizeof(*more));
		neff->args = more;
		neff->arg_count = n + 1;
	}
	return &neff->args[n];
}

static bool set_arg(struct source *s, char *p)
{
	static const char *const allowed = "allowed: .arg N KIND NAME TYPE[DIMENSIONS] (input, output) or BYTES (file, tmp-buf)";
	char *number = next_word(&p), *kind = next_word(&p), *name = next_word(&p);
	enum neff_var_type type = NEFF_VAR_NONE;
	struct neff_arg *arg;
	uint64_t n, bytes;

	p = skip_blank(p);
	for (unsigned int t = NEFF_VAR_INPUT; kind && t <= NEFF_VAR_TMP; t++) {
		if (!strcmp(kind, neff_var_type_name(t)))
			type = t;
	}
	if (!parse_number(number, NEURON_MAX_ARGS - 1, &n) || !type || !name || !*name || strlen(name) > 255 || !*p)
		return fail(s, "%s", allowed);
	arg = arg_at(s, n);
	if (!arg)
		return no_memory(s);
	if (arg->type)
		return fail(s, "argument %u exists already", (unsigned int)n);
	arg->type = type;
	arg->name = strdup(name);
	if (!arg->name)
		return no_memory(s);
	if (type == NEFF_VAR_INPUT || type == NEFF_VAR_OUTPUT)
		return arg_shape(arg, p) || fail(s, "%s", allowed);
	if (!parse_number(next_word(&p), type == NEFF_VAR_FILE ? MAX_DATA : 1ull << 40, &bytes) || !bytes)
		return fail(s, "%s", allowed);
	arg->size = bytes;
	arg->data = type == NEFF_VAR_FILE ? calloc(1, bytes) : NULL;
	return type != NEFF_VAR_FILE || arg->data || no_memory(s);
}

static struct neff_arg *file_arg(struct source *s, char **p, uint64_t *n)
{
	if (parse_number(next_word(p), NEURON_MAX_ARGS - 1, n) && *n < s->neff->arg_count &&
	    s->neff->args[*n].type == NEFF_VAR_FILE)
		return &s->neff->args[*n];
	fail(s, "the number must be that of an argument of kind file");
	return NULL;
}

static int hex(char c)
{
	if (isdigit((unsigned char)c))
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool add_data(struct source *s, char *p)
{
	struct neff_arg *arg;
	uint64_t n;

	arg = file_arg(s, &p, &n);
	if (!arg)
		return false;
	for (p = skip_blank(p); *p; p = skip_blank(p + 2)) {
		if (hex(p[0]) < 0 || hex(p[1]) < 0)
			return fail(s, "\"%.2s\" is not a byte in hexadecimal", p);
		if (s->filled[n] == arg->size)
			return fail(s, "more than the argument's %llu bytes", (unsigned long long)arg->size);
		((uint8_t *)arg->data)[s->filled[n]++] = hex(p[0]) << 4 | hex(p[1]);
	}
	return true;
}

static bool include_data(struct source *s, char *p)
{
	struct neff_arg *arg;
	const char *path;
	uint64_t n;
	size_t got;
	FILE *f;

	arg = file_arg(s, &p, &n);
	path = arg ? next_word(&p) : NULL;
	if (!path)
		return arg ? fail(s, "allowed: .incbin N \"FILE\"") : false;
	f = fopen(path, "rb");
	if (!f) {
		fail(s, "%s: %s", path, strerror(errno));
		s->ret = -errno;
		return false;
	}
	got = fread((uint8_t *)arg->data + s->filled[n], 1, arg->size - s->filled[n], f);
	s->filled[n] += got;
	got = fgetc(f) != EOF;
	fclose(f);
	return !got || fail(s, "%s has more than the argument's %llu bytes", path,
			    (unsigned long long)arg->size);
}

/* ------------------------------------------------------------------------ */
/* Streams								    */

static bool set_core(struct source *s, const char *text)
{
	uint64_t core;

	if (!parse_number(text, NEFF_MAX_CORES - 1, &core))
		return fail(s, "core %s; allowed: 0, 1", text ? text : "");
	s->core = core;
	s->engine = -1;
	if (core >= s->neff->core_count)
		s->neff->core_count = core + 1;
	return true;
}

static bool set_engine(struct source *s, const char *name)
{
	char allowed[64] = "";

	for (unsigned int e = 0; e < NEURON_ENGINE_COUNT; e++) {
		const char *key = neff_engine_key(e);

		if (!key)
			continue;
		if (name && !strcmp(name, key)) {
			s->engine = e;
			return true;
		}
		snprintf(allowed + strlen(allowed), sizeof(allowed) - strlen(allowed), "%s%s",
			 *allowed ? ", " : "", key);
	}
	return fail(s, "unknown engine \"%s\"; allowed: %s", name ? name : "", allowed);
}

static bool set_semaphores(struct source *s, const char *text)
{
	uint64_t n;

	if (!parse_number(text, NEURON_SEMAPHORES, &n))
		return fail(s, "allowed: .semaphores 0 to %d", NEURON_SEMAPHORES);
	s->sems[s->core] = n;
	return true;
}

/* Returns the entry's number, from 1; 0: no memory, or too many. */
static uint32_t add_line(struct source *s, const char *file, uint32_t line, const char *name)
{
	struct neff_core *core = &s->neff->core[s->core];
	struct neff_line *more = core->lines;

	if (core->line_count == NEFF_MAX_LINES)
		return 0;
	if (core->line_count == s->line_room[s->core]) {
		uint32_t room = core->line_count ? 2 * core->line_count : 64;

		more = realloc(core->lines, room * sizeof(*more));
		if (!more)
			return 0;
		core->lines = more;
		s->line_room[s->core] = room;
	}
	more += core->line_count;
	*more = (struct neff_line){ strdup(file), strdup(name), line };
	if (!more->file || !more->name) {
		free(more->file);
		free(more->name);
		return 0;
	}
	return ++core->line_count;
}

static bool set_line(struct source *s, char *p)
{
	char *number = next_word(&p), *file = next_word(&p), *line = next_word(&p), *name = next_word(&p);
	uint64_t n, l;

	if (!parse_number(number, NEFF_MAX_LINES, &n) || n != s->neff->core[s->core].line_count + 1 ||
	    !parse_number(line, UINT32_MAX, &l) || !file || !name)
		return fail(s, "allowed: .line N \"FILE\" LINE \"NAME\", N from 1 on in order");
	s->explicit_lines[s->core] = true;
	return add_line(s, file, l, name) || no_memory(s);
}

static bool put_words(struct source *s, const struct neuron_insn *word, unsigned int words)
{
	struct neff_core *core = &s->neff->core[s->core];
	uint32_t *room = &s->room[s->core][s->engine], count = core->words[s->engine];

	if (count > MAX_WORDS - words)
		return fail(s, "more than %u words in a stream", MAX_WORDS);
	if (count + words > *room) {
		uint32_t more = *room ? 2 * *room : 64;
		void *stream = realloc(core->stream[s->engine], (size_t)more * sizeof(*word));

		if (!stream)
			return no_memory(s);
		core->stream[s->engine] = stream;
		*room = more;
	}
	memcpy((struct neuron_insn *)core->stream[s->engine] + count, word, words * sizeof(*word));
	core->words[s->engine] = count + words;
	return true;
}

static bool raw_word(struct source *s, char *p)
{
	uint8_t word[NEURON_WORD_BYTES];
	size_t n = 0;

	if (s->engine < 0)
		return fail(s, "a word before .engine");
	for (p = skip_blank(p); *p; p = skip_blank(p + 2)) {
		if (n == sizeof(word) || hex(p[0]) < 0 || hex(p[1]) < 0)
			break;
		word[n++] = hex(p[0]) << 4 | hex(p[1]);
	}
	if (n != sizeof(word) || *p)
		return fail(s, "allowed: .word and %zu bytes in hexadecimal", sizeof(word));
	return put_words(s, (const struct neuron_insn *)word, 1);
}

/* ------------------------------------------------------------------------ */
/* Rules of the table							    */

static bool engine_ok(struct source *s, const struct isa_text_row *row)
{
	char allowed[64] = "";

	if (s->has_target && s->neff->nc_version < row->min_nc)
		return fail(s, "%s needs NeuronCore-v%u; the target is %s", row->text, row->min_nc,
			    s->neff->target);
	if (row->engines & 1u << s->engine)
		return true;
	for (unsigned int e = 0; e < NEURON_ENGINE_COUNT; e++) {
		if (row->engines & 1u << e && neff_engine_key(e))
			snprintf(allowed + strlen(allowed), sizeof(allowed) - strlen(allowed), "%s%s",
				 *allowed ? ", " : "", neff_engine_key(e));
	}
	return fail(s, "%s does not run on %s; allowed: %s", row->text, neff_engine_key(s->engine), allowed);
}

static bool operand_ok(struct source *s, const struct isa_text_row *row, const struct neuron_ap *ap,
		       unsigned int slot)
{
	const char *name = isa_text_key(row->opcode, 'a', slot), *allowed = row->aps + 2 * slot;
	bool sbuf = (allowed[0] | 0x20) == 's' || (allowed[1] | 0x20) == 's';
	bool psum = (allowed[0] | 0x20) == 'p' || (allowed[1] | 0x20) == 'p';
	char rule = slot < 3 ? row->types[slot] : '-';

	if (ap->space == NEURON_SPACE_NONE)
		return true;
	if (!(ap->space == NEURON_SPACE_SBUF && sbuf) && !(ap->space == NEURON_SPACE_PSUM && psum))
		return fail(s, "%s is in space %u; allowed: %s", name, ap->space,
			    sbuf && psum ? "SBUF, PSUM" : sbuf ? "SBUF" : "PSUM");
	if (!nki_type_fits(ap->dtype, rule))
		return fail(s, "%s is %s; allowed: %s", name, nki_dtype_text(ap->dtype),
			    nki_type_allowed(rule));
	return true;
}

static bool rules_ok(struct source *s, const struct nki_asm_insn *insn)
{
	const struct isa_text_row *row = isa_text_row(insn->word[0].opcode);
	const struct neuron_insn_ext *ext = (const struct neuron_insn_ext *)&insn->word[1];
	unsigned int slots = strlen(row->aps) / 2;

	if (s->unchecked)
		return true;
	if (!engine_ok(s, row))
		return false;
	for (unsigned int i = 0; i < slots; i++) {
		if (!operand_ok(s, row, i < 3 ? &insn->word[0].ap[i] : &ext->ap[i - 3], i))
			return false;
	}
	return true;
}

/* ------------------------------------------------------------------------ */
/* Instructions and labels						    */

static void count_semaphores(struct source *s, const struct neuron_insn *w)
{
	unsigned int *sems = &s->sems[s->core];

	for (unsigned int i = 0; i < 2; i++) {
		unsigned int cond = w->wait[i].cond & NEURON_WAIT_COND_MASK;

		if (cond && cond < NEURON_WAIT_EVENT && w->wait[i].sem >= *sems)
			*sems = w->wait[i].sem + 1;
	}
	if (w->update.op && (w->update.op & NEURON_UPDATE_OP_MASK) < NEURON_UPDATE_EVENT_SET &&
	    w->update.sem >= *sems)
		*sems = w->update.sem + 1;
}

static bool branch_to(struct source *s, const char *name)
{
	struct fixup *f = calloc(1, sizeof(*f));

	if (!f)
		return no_memory(s);
	strcpy(f->name, name);
	f->core = s->core;
	f->engine = s->engine;
	f->line = s->line;
	f->word = s->neff->core[s->core].words[s->engine];
	f->next = s->fixups;
	s->fixups = f;
	return true;
}

static bool instruction(struct source *s, const char *text)
{
	static const char blank[] = " \t\r\n";
	char error[256], name[64];
	struct nki_asm_insn insn;
	uint32_t line;

	if (s->engine < 0)
		return fail(s, "an instruction before .engine");
	if (nki_asm(text, &insn, error, sizeof(error)))
		return fail(s, "%s", error);
	if (!rules_ok(s, &insn))
		return false;
	if (!insn.has_line && !s->explicit_lines[s->core]) {
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(text, blank), text);
		line = add_line(s, s->path, s->line, name);
		if (!line)
			return no_memory(s);
		insn.word[0].debug_id = htole32(line);
	}
	count_semaphores(s, &insn.word[0]);
	if (*insn.label && !branch_to(s, insn.label))
		return false;
	return put_words(s, insn.word, insn.words);
}

static struct label *find_label(struct source *s, const char *name, unsigned int core, unsigned int engine)
{
	for (struct label *l = s->labels; l; l = l->next) {
		if (l->core == core && l->engine == engine && !strcmp(l->name, name))
			return l;
	}
	return NULL;
}

static bool set_label(struct source *s, const char *name)
{
	struct label *l;

	if (s->engine < 0)
		return fail(s, "a label before .engine");
	if (!*name || strlen(name) >= sizeof(l->name) || isdigit((unsigned char)*name))
		return fail(s, "a label has 1 to %zu characters and begins with no digit", sizeof(l->name) - 1);
	l = find_label(s, name, s->core, s->engine);
	if (l)
		return fail(s, "label \"%s\" exists already (line %u)", name, l->line);
	l = calloc(1, sizeof(*l));
	if (!l)
		return no_memory(s);
	strcpy(l->name, name);
	l->core = s->core;
	l->engine = s->engine;
	l->line = s->line;
	l->word = s->neff->core[s->core].words[s->engine];
	l->next = s->labels;
	s->labels = l;
	return true;
}

static bool resolve(struct source *s)
{
	for (struct fixup *f = s->fixups; f; f = f->next) {
		struct label *l = find_label(s, f->name, f->core, f->engine);
		struct neuron_insn *stream = s->neff->core[f->core].stream[f->engine];

		if (!l)
			return fail_at(s, f->line, "label \"%s\" is not in this stream", f->name);
		stream[f->word].aux = htole32(l->word);
	}
	return true;
}

/* ------------------------------------------------------------------------ */
/* The file								    */

static bool directive(struct source *s, char *p)
{
	const char *name = next_word(&p);

	if (!strcmp(name, ".program"))
		return set_text(s, s->neff->name, sizeof(s->neff->name), next_word(&p), "a program's name");
	if (!strcmp(name, ".target"))
		return set_target(s, next_word(&p));
	if (!strcmp(name, ".arg"))
		return set_arg(s, p);
	if (!strcmp(name, ".data"))
		return add_data(s, p);
	if (!strcmp(name, ".incbin"))
		return include_data(s, p);
	if (!strcmp(name, ".core"))
		return set_core(s, next_word(&p));
	if (!strcmp(name, ".engine"))
		return set_engine(s, next_word(&p));
	if (!strcmp(name, ".semaphores"))
		return set_semaphores(s, next_word(&p));
	if (!strcmp(name, ".line"))
		return set_line(s, p);
	if (!strcmp(name, ".word"))
		return raw_word(s, p);
	if (!strcmp(name, ".unchecked")) {
		s->unchecked = true;
		return true;
	}
	return fail(s, "unknown directive \"%s\"; allowed: .program .target .arg .data .incbin .core .engine .semaphores .line .word .unchecked",
		    name);
}

/* A comment begins with #, outside of quotes. */
static void cut_comment(char *p)
{
	bool quoted = false;

	for (; *p; p++) {
		if (*p == '"')
			quoted = !quoted;
		if (*p == '#' && !quoted) {
			*p = 0;
			return;
		}
	}
}

static bool one_line(struct source *s, char *p)
{
	char *colon;

	cut_comment(p);
	for (p = skip_blank(p); *p && *p != '.'; p = skip_blank(colon + 1)) {
		colon = p + strcspn(p, ": \t\r");
		if (*colon != ':')
			return instruction(s, p);
		*colon = 0;
		if (!set_label(s, p))
			return false;
	}
	return !*p || directive(s, p);
}

static bool all_lines(struct source *s, char *text)
{
	for (char *p = text; p;) {
		char *next = strchr(p, '\n');

		if (next)
			*next++ = 0;
		s->line++;
		if (!one_line(s, p))
			return false;
		p = next;
	}
	if (!s->has_target)
		return fail(s, "no .target; it says what the program runs on");
	if (!*s->neff->name)
		strcpy(s->neff->name, "program");
	for (unsigned int c = 0; c < NEFF_MAX_CORES; c++)
		s->neff->core[c].semaphore_count = s->sems[c];
	return resolve(s);
}

static void free_source(struct source *s)
{
	while (s->labels) {
		struct label *next = s->labels->next;

		free(s->labels);
		s->labels = next;
	}
	while (s->fixups) {
		struct fixup *next = s->fixups->next;

		free(s->fixups);
		s->fixups = next;
	}
	free(s);
}

int nki_asm_file(const char *path, const char *text, struct neff **neff, char *error, size_t size)
{
	struct source *s = calloc(1, sizeof(*s));
	char *copy = strdup(text);
	int ret = -ENOMEM;

	*neff = calloc(1, sizeof(**neff));
	if (s && copy && *neff) {
		s->path = path;
		s->neff = *neff;
		s->engine = -1;
		s->error = error;
		s->size = size;
		(*neff)->core_count = 1;
		(*neff)->isa_version = NEURON_ISA_VERSION;
		snprintf((*neff)->tool_version, sizeof((*neff)->tool_version), "neuron-accel %s", NKI_VERSION);
		ret = all_lines(s, copy) ? 0 : s->ret;
	}
	if (s)
		free_source(s);
	free(copy);
	if (ret) {
		nki_asm_free(*neff);
		*neff = NULL;
	}
	return ret;
}

void nki_asm_free(struct neff *neff)
{
	neff_free(neff);
}
