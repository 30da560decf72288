#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The driver comes and goes: unbind while a program runs, bind again, hot removal
# and rescan, unloading. Runs in the guest, as root; prints KTAP.
#
#	lifecycle.sh HELPER [MODULE]	HELPER is the program drv_holder

holder=$1
module=$2
drv=/sys/bus/pci/drivers/neuron
n=0
failed=0

bdf()
{
	for d in "$drv"/0*; do
		[ -e "$d" ] && basename "$d" && return
	done
}

check()
{
	n=$((n + 1))
	if [ "$2" -eq 0 ]; then
		echo "ok $n $1"
	else
		echo "not ok $n $1"
		failed=$((failed + 1))
	fi
}

node()
{
	for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		[ -e /dev/accel/accel0 ] && return 0
		sleep 0.1
	done
	return 1
}

echo "TAP version 13"
echo "1..10"

dev=$(bdf)
count0=$(cat "$drv/$dev/reset_count")
check "bound to a device" "$([ -n "$dev" ]; echo $?)"

bad=0
for i in 1 2 3 4 5 6 7 8 9 10; do
	echo "$dev" > "$drv/unbind" || bad=1
	[ -e /dev/accel/accel0 ] && bad=1
	echo "$dev" > "$drv/bind" || bad=1
	node || bad=1
	[ "$bad" -eq 0 ] || echo "# round $i failed: $(echo /dev/accel/*)"
done
check "ten times unbind and bind" $bad
check "every probe resets the device" "$([ "$(cat "$drv/$dev/reset_count")" = "$count0" ]; echo $?)"

# Somebody runs a program, maps memory and holds the file open meanwhile.
"$holder" /tmp/holder.out &
pid=$!
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	grep -q ready /tmp/holder.out 2>/dev/null && break
	sleep 0.1
done
check "a client works" "$(grep -q ready /tmp/holder.out; echo $?)"
echo "$dev" > "$drv/unbind"
check "unbind while it does" $?
wait $pid
check "the client sees ENODEV, zeros and cancelled jobs" $?
echo "$dev" > "$drv/bind" && node
check "bind after that" $?

echo 1 > "/sys/bus/pci/devices/$dev/remove"
bad=$([ ! -e /dev/accel/accel0 ]; echo $?)
echo 1 > /sys/bus/pci/rescan
node || bad=1
check "remove and rescan" "$bad"

if [ -n "$module" ]; then
	bad=0
	for i in 1 2 3 4 5; do
		rmmod neuron || bad=1
		[ -e "$drv" ] && bad=1
		insmod "$module" || bad=1
		node || bad=1
	done
	check "five times rmmod and insmod" $bad
	exec 3</dev/accel/accel0
	bad=0
	rmmod neuron 2>/dev/null && bad=1
	exec 3<&-
	check "an open file holds the module" $bad
else
	echo "ok $((n + 1)) five times rmmod and insmod # SKIP no module given"
	echo "ok $((n + 2)) an open file holds the module # SKIP no module given"
fi
exit $((failed != 0))
