#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The plugin that ships: small, and without anything that it would look for at run time.
set -euo pipefail
cd "$(dirname "$0")/../../.."
. tests/lib.sh

program=${BUILD:-build}/bin/orbweaver-cni
make -s VARIANT=opt "$program" >/dev/null

is_small() {
	local size

	size=$(stat -c %s "$program")
	((size <= 150 * 1024)) || { echo "$size bytes" && return 1; }
}

is_static() {
	! readelf -l "$program" | grep -q INTERP
}

answers_version() {
	[[ $(CNI_COMMAND=VERSION "$program" </dev/null) == '{"cniVersion":"1.1.0",'* ]]
}

t_ok "has at most 150 KB" is_small
t_ok "needs no library at run time" is_static
t_ok "runs" answers_version
t_done
