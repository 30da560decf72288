# SPDX-License-Identifier: MIT
# What the test scripts of the tools share; they make the folder $T.  KTAP.
n=0
bad=0

check() {	# NAME COMMAND...
	local name=$1
	n=$((n + 1))
	shift
	if "$@" >"$T/check" 2>&1; then
		echo "ok $n $name"
	else
		echo "not ok $n $name"
		bad=1
		sed 's/^/# /' "$T/check"
	fi
}

# The value of a Python expression over the JSON in a file, as an exit status.
holds() {
	/usr/bin/python3 -c "import json,sys; j=json.load(open(sys.argv[1])); sys.exit(0 if ($2) else 1)" "$1" ||
		{ cat "$1"; return 1; }
}
