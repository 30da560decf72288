// SPDX-License-Identifier: MIT
/* The full-screen view. */
#include <curses.h>
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/tool.h"
#include "top.h"

enum { COLOUR_LOW = 1, COLOUR_MID, COLOUR_HIGH, COLOUR_TITLE };
enum sort_core { CORE_INDEX, CORE_WALL, CORE_JOBS, CORE_SORTS };
enum sort_process { PROCESS_WALL, PROCESS_HBM, PROCESS_PID, PROCESS_SORTS };

#define MIN_DELAY	0.1
#define MAX_DELAY	60.0
#define FIXED_COLUMNS	60	/* of a core's line, without the history */

static const char *const core_sorts[] = { "core", "wall", "jobs" };
static const char *const process_sorts[] = { "wall", "HBM", "PID" };

struct screen {
	struct top_source *source;
	struct top_state state;
	double delay;
	enum sort_core sort_core;
	enum sort_process sort_process;
	bool hide_idle;
	bool paused;
	bool help;
	bool flops;
	bool utf8;
	bool ended;		/* the recording is over */
	unsigned int scroll;
};

struct core_ref {
	const struct top_core *core;
	unsigned int dev;
	unsigned int index;
};

/* --- drawing ------------------------------------------------------------------------ */

static int level_colour(double percent)
{
	int pair = percent < 50 ? COLOUR_LOW : percent < 90 ? COLOUR_MID : COLOUR_HIGH;

	return has_colors() ? COLOR_PAIR(pair) : percent < 90 ? A_NORMAL : A_BOLD;
}

static void draw_title(const char *text)
{
	attr_t attr = has_colors() ? COLOR_PAIR(COLOUR_TITLE) | A_BOLD : A_REVERSE;

	attron(attr);
	printw("%-*.*s", COLS, COLS, text);
	attroff(attr);
}

static void draw_cell(double percent, bool utf8)
{
	static const char *const block[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	static const char *const ascii[] = { " ", ".", ".", ":", ":", "+", "+", "#", "#" };
	int level = percent <= 0 ? 0 : 1 + (int)(percent * 7.99 / 100);

	level = level > 8 ? 8 : level;
	attron(level_colour(percent));
	addstr(utf8 ? block[level] : ascii[level]);
	attroff(level_colour(percent));
}

static void draw_history(const struct top_core *c, int width, bool utf8)
{
	int i;

	if (width > TOP_HISTORY)
		width = TOP_HISTORY;
	for (i = width; i > 0; i--)
		draw_cell(c->history[(c->at + TOP_HISTORY - i) % TOP_HISTORY], utf8);
}

static void draw_devs(const struct screen *s, int *line)
{
	char used[32], size[32];
	unsigned int d;
	int i, width = COLS - 52, full;

	for (d = 0; d < s->state.dev_count && *line < LINES / 3; d++) {
		const struct top_dev *dev = &s->state.devs[d];

		tool_bytes(dev->hbm_used, used, sizeof(used));
		tool_bytes(dev->hbm_size, size, sizeof(size));
		mvprintw((*line)++, 0, "device %-3u %-5s %-13s HBM %9s of %8s ", d, dev->arch, dev->bdf,
			 used, size);
		full = dev->hbm_size && width > 0 ? (double)dev->hbm_used * width / dev->hbm_size : 0;
		for (i = 0; i < width; i++)
			addch(i < full ? '#' : '.');
	}
}

static void draw_core(const struct screen *s, const struct core_ref *r)
{
	const struct top_core *c = r->core;
	char name[16];
	unsigned int i;

	snprintf(name, sizeof(name), "%u:%u", r->dev, r->index);
	printw("%-6s%c", name, c->raw.flags & DRM_NEURON_CORE_CLAIMED ? '*' : ' ');
	attron(level_colour(c->wall));
	printw("%5.1f ", c->wall);
	attroff(level_colour(c->wall));
	if (COLS > FIXED_COLUMNS)
		draw_history(c, COLS - FIXED_COLUMNS, s->utf8);
	printw(" %8.1f %4llu ", c->jobs, (unsigned long long)c->errors);
	if (s->flops) {
		if (c->tflops < 0)
			printw("%30s", "-");
		else
			printw("%22.3f TFLOP/s", c->tflops);
		return;
	}
	for (i = 0; i < TOP_ENGINES; i++) {
		if (c->busy[top_engine[i]] < 0)
			printw("%5s", "-");
		else
			printw("%5.0f", c->busy[top_engine[i]]);
	}
}

static enum sort_core comparing;

static int compare_cores(const void *a, const void *b)
{
	const struct core_ref *x = a, *y = b;
	double u = 0, v = 0;

	if (comparing == CORE_WALL) {
		u = x->core->wall;
		v = y->core->wall;
	} else if (comparing == CORE_JOBS) {
		u = x->core->jobs;
		v = y->core->jobs;
	}
	if (u != v)
		return u > v ? -1 : 1;
	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

static size_t list_cores(const struct screen *s, struct core_ref *refs)
{
	unsigned int d, c;
	size_t n = 0;

	for (d = 0; d < s->state.dev_count; d++) {
		for (c = 0; c < s->state.devs[d].core_count; c++) {
			const struct top_core *core = &s->state.devs[d].core[c];

			if (s->hide_idle && core->wall < 0.05 &&
			    !(core->raw.flags & DRM_NEURON_CORE_CLAIMED))
				continue;
			refs[n++] = (struct core_ref){ core, d, c };
		}
	}
	comparing = s->sort_core;
	qsort(refs, n, sizeof(*refs), compare_cores);
	return n;
}

static void draw_cores(struct screen *s, int *line, int last)
{
	struct core_ref *refs = calloc((size_t)s->state.dev_count * ACCEL_MAX_CORES + 1, sizeof(*refs));
	char title[512];
	size_t n, i;

	if (!refs)
		return;
	n = list_cores(s, refs);
	if (s->scroll >= n)
		s->scroll = n ? n - 1 : 0;
	snprintf(title, sizeof(title), "CORE    WALL%% %-*s   JOBS/S  ERR %s",
		 COLS > FIXED_COLUMNS ? COLS - FIXED_COLUMNS : 0,
		 COLS > FIXED_COLUMNS + 8 ? "HISTORY" : "",
		 s->flops ? "            modelled TFLOP/s" : "   PE  ACT  DVE POOL   SP DMA%");
	move((*line)++, 0);
	draw_title(title);
	for (i = s->scroll; i < n && *line < last; i++) {
		move((*line)++, 0);
		draw_core(s, &refs[i]);
	}
	if (!n)
		mvaddstr((*line)++, 0, "no core is in use (i shows idle ones)");
	free(refs);
}

static enum sort_process comparing_processes;

static int compare_processes(const void *a, const void *b)
{
	const struct top_process *x = a, *y = b;

	if (comparing_processes == PROCESS_WALL && x->wall != y->wall)
		return x->wall > y->wall ? -1 : 1;
	if (comparing_processes == PROCESS_HBM && x->client.hbm != y->client.hbm)
		return x->client.hbm > y->client.hbm ? -1 : 1;
	return (x->client.pid > y->client.pid) - (x->client.pid < y->client.pid);
}

static void draw_processes(struct screen *s, int line)
{
	char cores[32], held[48], hbm[32], host[32];
	size_t i;
	int room;

	comparing_processes = s->sort_process;
	if (s->state.process_count)
		qsort(s->state.processes, s->state.process_count, sizeof(*s->state.processes),
		      compare_processes);
	move(line++, 0);
	draw_title("PID     CORES       WALL%        HBM       HOST  COMMAND");
	for (i = 0; i < s->state.process_count && line < LINES - 1; i++) {
		const struct top_process *p = &s->state.processes[i];

		top_mask_text(p->client.core_mask, cores, sizeof(cores));
		snprintf(held, sizeof(held), "%u:%s", p->client.dev, cores);
		tool_bytes(p->client.hbm, hbm, sizeof(hbm));
		tool_bytes(p->client.host, host, sizeof(host));
		room = COLS > 50 ? COLS - 50 : 0;
		mvprintw(line++, 0, "%-7d %-10s %6.1f %10s %10s  %.*s", p->client.pid, held, p->wall, hbm,
			 host, room, p->client.command);
	}
	if (!s->state.process_count && line < LINES - 1)
		mvaddstr(line, 0, "no process has a device open");
}

static void draw_help(void)
{
	static const char *const text[] = {
		"Keys",
		"  q          quit",
		"  h ? F1     this help",
		"  c          sort cores by core, wall, jobs",
		"  s          sort processes by wall, HBM, PID",
		"  F          modelled busy per cent of the engines, or modelled TFLOP/s",
		"  i          hide cores that are idle and not claimed",
		"  arrows     scroll the cores; also Page Up, Page Down",
		"  + -        longer, shorter interval",
		"  space      pause",
		"",
		"WALL% is the share of real time in which a job was on the core. PE to DMA",
		"(% of the job's modelled time) and TFLOP/s are modelled, of the jobs that",
		"ended last. * marks a core that a process has claimed.",
	};
	size_t i;

	for (i = 0; i < sizeof(text) / sizeof(text[0]) && (int)i + 2 < LINES; i++)
		mvprintw(i + 2, 2, "%.*s", COLS > 2 ? COLS - 2 : 0, text[i]);
}

static void draw(struct screen *s)
{
	char title[256], stamp[16];
	time_t now = time(NULL);
	int line = 1, last;
	struct tm tm;

	erase();
	strftime(stamp, sizeof(stamp), "%H:%M:%S", localtime_r(&now, &tm));
	snprintf(title, sizeof(title), "neuron-top  %s  every %.1f s  cores by %s, processes by %s%s  h help",
		 stamp, s->delay, core_sorts[s->sort_core], process_sorts[s->sort_process],
		 s->ended ? "  recording ended" : s->paused ? "  paused" : "");
	move(0, 0);
	draw_title(title);
	if (s->help) {
		draw_help();
		refresh();
		return;
	}
	draw_devs(s, &line);
	/* Processes get what is left, at least a third. */
	last = LINES - 1 - (s->state.process_count ? LINES / 4 : 3);
	draw_cores(s, &line, last);
	if (line < LINES - 1)
		draw_processes(s, line);
	refresh();
}

/* --- keys ------------------------------------------------------------------------------ */

static void scroll_by(struct screen *s, int lines)
{
	if (lines < 0 && s->scroll < (unsigned int)-lines)
		s->scroll = 0;
	else
		s->scroll += lines;
}

/* False: quit. */
static bool key(struct screen *s, int c)
{
	switch (c) {
	case 'q':
	case 'Q':
		return false;
	case 'h':
	case '?':
	case KEY_F(1):
		s->help = !s->help;
		break;
	case 'c':
		s->sort_core = (s->sort_core + 1) % CORE_SORTS;
		break;
	case 's':
		s->sort_process = (s->sort_process + 1) % PROCESS_SORTS;
		break;
	case 'F':
	case 'f':
		s->flops = !s->flops;
		break;
	case 'i':
		s->hide_idle = !s->hide_idle;
		break;
	case ' ':
		s->paused = !s->paused;
		break;
	case '+':
		s->delay = s->delay * 2 > MAX_DELAY ? MAX_DELAY : s->delay * 2;
		break;
	case '-':
		s->delay = s->delay / 2 < MIN_DELAY ? MIN_DELAY : s->delay / 2;
		break;
	case KEY_UP:
		scroll_by(s, -1);
		break;
	case KEY_DOWN:
		scroll_by(s, 1);
		break;
	case KEY_PPAGE:
		scroll_by(s, -10);
		break;
	case KEY_NPAGE:
		scroll_by(s, 10);
		break;
	default:
		s->help = s->help && c == KEY_RESIZE;
	}
	return true;
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
	stop = 1;
}

static int loop(struct screen *s)
{
	double next = now_s();
	int ret, c, ms;

	while (!stop) {
		if (!s->paused && !s->ended && now_s() >= next) {
			ret = top_sample(s->source, &s->state);
			if (ret == -ENODATA)
				s->ended = true;
			else if (ret)
				return ret;
			/* The second sample gives the first rates: soon. */
			next = now_s() + (s->state.seconds > 0 ? s->delay : 0.2);
		}
		draw(s);
		ms = s->paused || s->ended ? 500 : (int)((next - now_s()) * 1000) + 1;
		timeout(ms < 1 ? 1 : ms > 500 ? 500 : ms);
		c = getch();
		if (c != ERR && !key(s, c))
			return 0;
		/* A terminal that went away gives errors at once. */
		if (c == ERR && !isatty(STDIN_FILENO))
			return 0;
	}
	return 0;
}

static void start_curses(void)
{
	noecho();
	cbreak();
	curs_set(0);
	keypad(stdscr, TRUE);
	set_escdelay(25);
	if (getenv("NO_COLOR") || !has_colors())
		return;
	start_color();
	use_default_colors();
	init_pair(COLOUR_LOW, COLOR_GREEN, -1);
	init_pair(COLOUR_MID, COLOR_YELLOW, -1);
	init_pair(COLOUR_HIGH, COLOR_RED, -1);
	init_pair(COLOUR_TITLE, COLOR_BLACK, COLOR_CYAN);
}

int top_screen(struct top_source *source, double delay, char *error, size_t size)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct screen s = { .source = source, .delay = delay };
	SCREEN *terminal;
	int ret;

	setlocale(LC_CTYPE, "");
	s.utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	ret = top_sample(source, &s.state);
	if (ret) {
		snprintf(error, size, "first sample: %s", strerror(-ret));
		return ret;
	}
	terminal = newterm(NULL, stdout, stdin);
	if (!terminal) {
		snprintf(error, size, "the terminal \"%s\" cannot show a full screen; use --batch",
			 getenv("TERM") ? getenv("TERM") : "");
		top_state_free(&s.state);
		return -ENOTTY;
	}
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	start_curses();
	ret = loop(&s);
	endwin();
	delscreen(terminal);
	top_state_free(&s.state);
	if (ret)
		snprintf(error, size, "reading the counters: %s", strerror(-ret));
	return ret;
}
