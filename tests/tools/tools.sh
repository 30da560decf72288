#!/bin/bash
# SPDX-License-Identifier: MIT
# The tools, in the guest: what they say while a program runs is compared with what
# is known about it.  Usage: tools.sh BUILD.  KTAP on standard output.
B=$1
T=$(mktemp -d)
trap 'kill $JOB 2>/dev/null; rm -rf "$T"' EXIT
. "$(dirname "$0")/check.sh"

info_healthy() { "$B/tools/neuron-info" -j >"$T/health" && holds "$T/health" \
	"j['healthy'] and {c['check']: c['result'] for c in j['checks']} == {'kernel': 'ok', 'runtime': 'ok', 'pci': 'ok', 'module': 'ok', 'nodes': 'ok', 'accel0': 'ok'} and 'trn2' in j['checks'][-1]['text']"; }
ls_table() { "$B/tools/neuron-ls" | grep -q '| NEURON | NEURON |'; }
ls_unknown() { "$B/tools/neuron-ls" -Z 2>/dev/null | grep -q 'unknown flag'; }
ls_idle() { "$B/tools/neuron-ls" -j >"$T/idle" && holds "$T/idle" \
	"len(j) == 1 and j[0]['nc_count'] == 4 and j[0]['logical_neuroncore_config'] == 2 and j[0]['memory_size'] == 96 << 30 and j[0]['neuroncore_ids'] == [0, 1, 2, 3] and j[0]['connected_to'] is None and isinstance(j[0]['numa_node'], str) and j[0]['neuron_processes'] == []"; }
ls_lnc1() { NEURON_LOGICAL_NC_CONFIG=1 "$B/tools/neuron-ls" -j >"$T/lnc1" &&
	holds "$T/lnc1" "j[0]['nc_count'] == 8 and 'logical_neuroncore_config' in j[0]"; }
ls_bad_lnc() { ! NEURON_LOGICAL_NC_CONFIG=3 "$B/tools/neuron-ls" -j 2>"$T/err" && grep -q 'allowed are 1 and 2' "$T/err"; }
ls_busy() { NEURON_LOGICAL_NC_CONFIG=1 "$B/tools/neuron-ls" -j >"$T/busy" && holds "$T/busy" \
	"[p['pid'] for p in j[0]['neuron_processes']] == [$JOB] and 'mnist' in j[0]['neuron_processes'][0]['command'] and j[0]['neuron_processes'][0]['neuron_runtime_version'] != 'NA' and j[0]['neuron_processes'][0]['memory_used'] > 0 and len(j[0]['neuron_processes'][0]['neuroncore_ids']) >= 1"; }
ls_wide() { "$B/tools/neuron-ls" -w | grep -q "| $JOB .*mnist"; }
top_busy() { "$B/tools/neuron-top" -j -n 1 -d 2 >"$T/top" && holds "$T/top" \
	"max(c['wall_utilization'] for c in j['devices'][0]['cores']) > 20 and any(p['pid'] == $JOB and p['wall_utilization'] > 20 and p['hbm_bytes'] > 0 for p in j['processes'])"; }
top_batch() { "$B/tools/neuron-top" -b -n 2 -d 0.3 >"$T/batch" && [ "$(grep -c '^neuron-top ' "$T/batch")" = 2 ] &&
	grep -q "^$JOB .*mnist" "$T/batch"; }
top_replay() { "$B/tools/neuron-top" -j -n 3 -d 0.2 >"$T/rec" && "$B/tools/neuron-top" -b --replay "$T/rec" | grep -q '^0:0 '; }
top_screen() { { sleep 3; printf h; sleep 1; printf q; } | TERM=vt100 timeout 20 script -qec "$B/tools/neuron-top -d 0.5" /dev/null | grep -qa 'sort cores by core'; }
run_picture() { printf 'P2 2 2 255 0 0 0 0' >"$T/black.pgm"
	NEURON_RT_VISIBLE_CORES=7 "$B/tools/neuron-run" "$T/digits.neff" "$T/black.pgm" | head -1 | grep -q '^/.*: [0-9] (.*%)$'; }
run_short() { printf xyz >"$T/short"
	! NEURON_RT_VISIBLE_CORES=7 "$B/tools/neuron-run" "$T/digits.neff" "$T/short" 2>"$T/err" && grep -q "has 3 bytes, input 'image' needs" "$T/err"; }
run_none() { ! "$B/tools/neuron-run" "$T/digits.neff" 2>"$T/err" && grep -q "no file for input 'image'" "$T/err"; }
run_profile() { NEURON_RT_VISIBLE_CORES=7 "$B/tools/neuron-run" -q --profile "$T/prof" "$T/digits.neff" "$T/black.pgm" &&
	"$B/tools/neuron-profile" view "$T/prof" | grep -q '^PE .*% busy'; }

DATA=
[ -n "${MNIST_DATA:-}" ] && DATA="--data $MNIST_DATA"
echo 'TAP version 13'
check info-healthy info_healthy
check ls-table ls_table
check ls-unknown-flag ls_unknown
check ls-idle ls_idle
check ls-lnc1 ls_lnc1
check ls-bad-lnc ls_bad_lnc
export NEURON_LOGICAL_NC_CONFIG=1
NEURON_RT_VISIBLE_CORES=0 "$B/examples/mnist/mnist" $DATA --no-check --epochs 1 --save "$T/digits.neff" >"$T/log" 2>&1 ||
	{ echo "Bail out! mnist failed"; sed 's/^/# /' "$T/log"; exit 1; }
NEURON_RT_VISIBLE_CORES=0 "$B/examples/mnist/mnist" $DATA --no-check --epochs 100 >"$T/log" 2>&1 &
JOB=$!
for i in $(seq 60); do
	grep -q 'epoch 1 ' "$T/log" && break
	sleep 0.5
done
check ls-busy ls_busy
check ls-wide ls_wide
check top-json top_busy
check top-batch top_batch
check top-replay top_replay
if command -v script >/dev/null; then
	check top-screen top_screen
fi
check run-picture run_picture
check run-short-file run_short
check run-no-input run_none
check run-profile run_profile
echo "1..$n"
exit $bad
