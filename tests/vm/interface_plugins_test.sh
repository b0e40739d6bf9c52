#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The interfaces that our plugins make, beside those of containernetworking-plugins, on a kernel that has each kind of them:
# tests/integration/interface_plugins_test.sh, of which nothing is skipped here.
# shellcheck disable=SC2317 # functions that run in the trap look unreachable
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=tests/lib.sh
. tests/lib.sh

# In the checkout, which the node sees: it finds its own initramfs there.
export ORBWEAVER_RUN=$PWD/build/interface-plugins-test.$$

clean_up() {
	hack/node down interfaces >/dev/null 2>&1 || true
	rm -rf "$ORBWEAVER_RUN"
}
trap clean_up EXIT

if [[ ! -x /usr/lib/cni/macvlan ]]; then
	t_skip "interfaces as containernetworking-plugins make them" "needs Debian's containernetworking-plugins"
	t_done
fi
mkdir -p "$ORBWEAVER_RUN"
t_ok "a node comes up" hack/node up interfaces
t_need
output=$(hack/node exec interfaces "modprobe -a macvlan ipvlan 8021q; cd $PWD &&
	BUILD=${BUILD:-build} VARIANT=${VARIANT:-asan} tests/integration/interface_plugins_test.sh" 2>&1) || true
grep -A 20 '^not ok' <<<"$output" || true
t_ok "each plugin does as theirs" grep -q '^[1-9][0-9]* passed, 0 failed$' <<<"$output"
t_fails "nothing is skipped" grep '^skipped' <<<"$output"
tail -n 1 <<<"$output"
t_done
