#!/bin/sh
# SPDX-License-Identifier: MIT
#
# all.sh FOLDER: every test of the driver's interface, one after the other.

status=0
for t in query bo vm ctx copy sync exec abi; do
	"$1/drv_$t" || status=1
done
exit $status
