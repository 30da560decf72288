#!/bin/bash
# SPDX-License-Identifier: MIT
# Tools that need no driver, on the in-process chip.  Usage: offline.sh BUILD.  KTAP.
B=$(realpath "$1")
TOP=$(cd "$(dirname "$0")/../.." && pwd)
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
export NEURON_RT_SIM=trn2 NEURON_RT_LOG_LEVEL=quiet
unset NEURON_RT_VISIBLE_CORES NEURON_LOGICAL_NC_CONFIG
. "$(dirname "$0")/check.sh"

fails() {	# STATUS TEXT COMMAND...: it ends so and says this
	local status=$1 text=$2
	shift 2
	"$@" >"$T/out" 2>&1
	[ $? = "$status" ] && grep -qF -e "$text" "$T/out" || { cat "$T/out"; return 1; }
}

# a + b of 256 x 512 floats, in eight tiles.
make_neff() {
	PYTHONPATH="$B/tools/nki:$TOP/examples/python" /usr/bin/python3 -c "
import sys, nki, tutorials
a = nki.Array(bytes(4 * 256 * 512), 'float32', (256, 512))
tutorials.tensor_add.trace(a, a).save(sys.argv[1])" "$T/add.neff"
}

packager() { (cd "$T" && "$B/tools/neuron-packager" "$@"); }
info_text() { packager info add.neff >"$T/info" && grep -q 'input *a: float32 \[256, 512\], 524288 bytes' "$T/info"; }
info_json() { packager info -j add.neff >"$T/info" && holds "$T/info" \
	"j['name'] == 'tensor_add' and j['target'] == 'trn2' and [(a['type'], a['name'], a['dtype'], a['shape'], a['size']) for a in j['arguments']] == [('input', 'a', 'float32', [256, 512], 524288), ('input', 'b', 'float32', [256, 512], 524288), ('output', 'output', 'float32', [256, 512], 524288)] and len(j['cores']) == 1"; }
hash_is_sha256() { packager info -j add.neff >"$T/info" &&
	holds "$T/info" "j['sha256'] == '$(tail -c +1025 "$T/add.neff" | sha256sum | cut -d' ' -f1)'"; }
unpacked() { packager unpack add.neff && [ -s "$T/add/neff.json" ] && [ -s "$T/add/sg00/DVE.bin" ] &&
	tail -c +1025 "$T/add.neff" | tar -tf - | sort >"$T/names" &&
	(cd "$T/add" && find . -type f ! -name neff-header.bin | sed 's,^\./,,' | sort) | diff - "$T/names"; }
no_overwrite() { fails 1 'File exists' packager unpack add.neff; }
packed() { packager create -o again.neff add && packager unpack -o again again.neff && diff -r -x neff-header.bin "$T/add" "$T/again" &&
	"$B/tools/neuron-run" -q --zero "$T/again.neff"; }
same_bytes() { packager create -o other.neff again && cmp "$T/again.neff" "$T/other.neff"; }
bad_json() { cp -r "$T/add" "$T/bad" && echo x >>"$T/bad/info.json" && fails 1 'info.json' packager create bad; }
bad_stream() { rm -rf "$T/bad" && cp -r "$T/add" "$T/bad" && printf x >>"$T/bad/sg00/DVE.bin" && fails 1 'DVE.bin' packager create bad; }
cut_short() { head -c 2000 "$T/add.neff" >"$T/short.neff" && fails 1 'short.neff' packager verify short.neff; }
wrong_hash() { cp "$T/add.neff" "$T/wrong.neff" && printf x | dd of="$T/wrong.neff" bs=1 seek=3000 conv=notrunc 2>/dev/null && ! packager verify wrong.neff; }
no_command() { fails 2 'info, verify, unpack and create' packager fold add.neff; }

bench() { "$B/tools/neuron-bench" "$@"; }
bench_json() { bench -j -n 20 -w 2 -t 2 "$T/add.neff" >"$T/bench" && holds "$T/bench" \
	"j['executions'] == 40 and j['threads'] == 2 and j['model'] == 'tensor_add' and 0 < j['latency_us']['p0'] <= j['latency_us']['p50'] <= j['latency_us']['p90'] <= j['latency_us']['p99'] <= j['latency_us']['p100'] and j['latency_us']['p0'] <= j['latency_us']['mean'] <= j['latency_us']['p100'] and abs(j['executions_per_second'] * j['seconds'] - 40) < 1e-6"; }
# Three transfers one after the other take at least three triggers of 1,300 ns.
bench_modelled() { bench -j -n 1 -w 0 "$T/add.neff" >"$T/bench" && holds "$T/bench" "j['modelled_us'] > 3.9"; }
bench_text() { bench -n 3 "$T/add.neff" | grep -q '^latency  *mean [0-9.]* us, p0'; }
bench_option() { fails 2 'needs 1 to 128' bench -t 0 "$T/add.neff"; }
bench_missing() { fails 1 'No such file' bench "$T/none.neff"; }
bench_cores() { fails 1 'NRT_' bench -t 9 -n 1 "$T/add.neff"; }

info() { "$B/tools/neuron-info" "$@"; }
info_no_chip() { fails 1 'kernel module neuron is not loaded' info && grep -q 'modprobe neuron' "$T/out"; }
info_no_chip_json() { info -j >"$T/health"; holds "$T/health" \
	"not j['healthy'] and {c['check']: c['result'] for c in j['checks']}['module'] == 'error' and all(c['fix'] for c in j['checks'] if c['result'] == 'error')"; }
info_option() { fails 2 'unknown option' info -Z; }

echo 'TAP version 13'
check neff make_neff
check packager-info info_text
check packager-info-json info_json
check packager-hash hash_is_sha256
check packager-unpack unpacked
check packager-no-overwrite no_overwrite
check packager-create packed
check packager-same-bytes same_bytes
check packager-bad-json bad_json
check packager-bad-stream bad_stream
check packager-cut-short cut_short
check packager-wrong-hash wrong_hash
check packager-no-command no_command
check bench-json bench_json
check bench-modelled bench_modelled
check bench-text bench_text
check bench-option bench_option
check bench-missing bench_missing
check bench-too-many-cores bench_cores
# The machine that runs this has no chip of its own.
if [ ! -e /sys/module/neuron ]; then
	check info-no-chip info_no_chip
	check info-no-chip-json info_no_chip_json
fi
check info-option info_option
echo "1..$n"
exit $bad
