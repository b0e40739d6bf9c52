#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The interfaces that our plugins make, beside those of containernetworking-plugins, on a kernel that has each kind of them:
# tests/integration/interface_plugins_test.sh, of which nothing is skipped here. Of the kinds that this machine's own kernel
# has, nothing is asked twice. LONG=1: all cases of the others, then bridge, tuning, host-device and dummy, in 30 minutes; else
# those of its STAGE=core.
# shellcheck disable=SC2016 # variables of the inner shell; functions that run in the trap look unreachable
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
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
missing=$(unshare --net bash -c 'ip link add wire type veth peer name peer
	for kind in macvlan ipvlan "vlan id 5"; do
		ip link add link wire name probe type $kind 2>/dev/null && ip link del probe || echo "${kind%% *}"
	done
	ip link add probe type bridge vlan_filtering 1 2>/dev/null || echo bridge
	ip link add probe2 type dummy 2>/dev/null || echo dummy')
if [[ -z $missing ]]; then
	t_skip "interfaces as containernetworking-plugins make them" "this machine has all kinds: the integration test is the same"
	t_done
fi
mkdir -p "$ORBWEAVER_RUN"
t_ok "a node comes up" hack/node up interfaces
t_need
log=$ORBWEAVER_RUN/log
hack/node exec interfaces "modprobe -a macvlan ipvlan 8021q bridge; cd $PWD && KINDS='${missing//$'\n'/ }' STAGE=${LONG:-core} \
	BUILD=${BUILD:-build} VARIANT=${VARIANT:-asan} tests/integration/interface_plugins_test.sh" 2>&1 | tee "$log" || true
t_ok "each plugin does as theirs" grep -q '^[1-9][0-9]* passed, 0 failed$' "$log"
t_fails "nothing is skipped" grep '^skipped' "$log"
# Each alone takes minutes on an emulated processor.
if [[ -z ${LONG:-} ]]; then
	t_done
fi
hack/node exec interfaces "cd $PWD && BUILD=${BUILD:-build} VARIANT=${VARIANT:-asan} tests/integration/bridge_plugin_test.sh" \
	2>&1 | tee "$log" || true
t_ok "bridge does as theirs" grep -q '^[1-9][0-9]* passed, 0 failed$' "$log"
t_fails "nothing is skipped" grep '^skipped' "$log"
hack/node exec interfaces "modprobe dummy; cd $PWD && BUILD=${BUILD:-build} VARIANT=${VARIANT:-asan} tests/integration/device_plugins_test.sh" \
	2>&1 | tee "$log" || true
t_ok "tuning, host-device and dummy do as theirs" grep -q '^[1-9][0-9]* passed, 0 failed$' "$log"
t_fails "nothing is skipped" grep '^skipped' "$log"
t_done
