// SPDX-License-Identifier: MIT
#include "check.h"
#include "exec_state.h"
void check_free(struct check *c) { (void)c; }
bool check_begin(struct exec *x) { (void)x; return true; }
void check_wait(struct stream *s, const struct neuron_wait *w, uint32_t v) { (void)s; (void)w; (void)v; }
void check_arrive(struct exec *x, struct exec_core *c, const struct update *u) { (void)x; (void)c; (void)u; }
uint32_t check_message(struct stream *s, bool r) { (void)s; (void)r; return 0; }
bool check_insn(struct stream *s) { (void)s; return true; }
uint32_t check_xfer_issue(struct stream *s) { (void)s; return 0; }
bool check_xfer_start(struct exec *x, struct exec_core *c, struct xfer *t) { (void)x; (void)c; (void)t; return true; }
uint32_t check_xfer_message(struct exec *x, struct exec_core *c, struct xfer *t) { (void)x; (void)c; (void)t; return 0; }
