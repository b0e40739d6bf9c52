#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A pod with the cluster's network and eight rails, all with plugins of ours: workers are killed at steps of ADD, DEL and GC, and
# nothing stays. The checks are in rails_crash.c; this gives it network namespaces of its own. As root; no cluster.
#
# Environment: SEED, of the steps that are chosen; KILLS, for each of ADD, DEL and GC; 0, or LONG=1: at every step.
set -euo pipefail

cd "$(dirname "$0")/../.."
if [[ ${1:-} != inside ]]; then
	. tests/lib.sh
	if ((EUID != 0)) || ! unshare --net --mount ip link add probe0 type veth peer name probe1 2>/dev/null; then
		t_skip "nothing leaks of a pod with eight rails" "needs root, network namespaces and veth"
		t_done
	fi
	exec unshare --net --mount --propagation private "$0" inside
fi

mount -t tmpfs tmpfs /run/netns 2>/dev/null || { mkdir -p /run/netns && mount -t tmpfs tmpfs /run/netns; }
[[ -z ${LONG:-} ]] || export KILLS=0
exec "${BUILD:-build}/${VARIANT:-asan}/tests/integration/rails_crash"
