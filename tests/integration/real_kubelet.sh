# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # $tmp and $kubelet_kubeconfig are the test's
# A real kubelet and containerd (kubelet_node.sh) for a test. Source it where $tmp is set; what runs inside is a child of $init,
# in its mount and process namespaces.
#
# start_node: containerd is there once $tmp/ready is, and init is the child_of $node_pid then; end_node ends all of it.
# kubelet_config, make_cgroups, start_kubelet: the kubelet of node k, with $kubelet_kubeconfig.

cache=${ORBWEAVER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/orbweaver}
cgroup=orbweaver-test-$$
node_pid=""
init=""

start_node() {
	unshare --mount --pid --fork --mount-proc --kill-child tests/integration/kubelet_node.sh "$tmp" >"$tmp/node.log" 2>&1 &
	node_pid=$!
}

end_node() {
	[[ -z $init ]] || kill -KILL "$init" 2>/dev/null || true
	[[ -z $node_pid ]] || wait "$node_pid" 2>/dev/null || true
	remove_cgroups
}

cgroup_roots() {
	if [[ -e /sys/fs/cgroup/cgroup.controllers ]]; then
		echo /sys/fs/cgroup
	else
		find /sys/fs/cgroup -mindepth 1 -maxdepth 1 -type d
	fi
}

make_cgroups() {
	local root

	for root in $(cgroup_roots); do
		[[ ! -e $root/cgroup.procs ]] || mkdir -p "$root/$cgroup"
	done
}

# What was in them has been killed; the kernel may need a moment until they are empty.
remove_cgroups() {
	local root left deadline=$((SECONDS + 20))

	while :; do
		left=0
		for root in $(cgroup_roots); do
			[[ -d $root/$cgroup ]] || continue
			find "$root/$cgroup" -depth -type d -exec rmdir {} + 2>/dev/null || left=1
		done
		((left && SECONDS < deadline)) || return 0
		sleep 0.2
	done
}

inside() {
	nsenter --mount --pid --target "$init" "$@"
}

child_of() {
	ps -o pid= --ppid "$1" | tr -d ' '
}

# start NAME COMMAND...: inside, in the background; its pid, as this namespace knows it, is kept in a file, because functions
# run in subshells.
start() {
	local name=$1 parent

	shift
	(exec nsenter --mount --pid --target "$init" "$@") &
	parent=$!
	disown
	until child_of "$parent" >"$tmp/$name.pid" && [[ -s $tmp/$name.pid ]]; do
		kill -0 "$parent" || return 1
	done
}

kubelet_config() {
	cat >"$tmp/kubelet.yaml" <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: { anonymous: { enabled: true }, webhook: { enabled: false } }
authorization: { mode: AlwaysAllow }
address: 127.0.0.1
port: $((20000 + $$ % 10000))
healthzPort: 0
readOnlyPort: 0
cgroupDriver: cgroupfs
cgroupRoot: /$cgroup
enforceNodeAllocatable: []
failSwapOn: false
nodeStatusUpdateFrequency: 1s
evictionHard: { memory.available: 20Mi }
imageGCHighThresholdPercent: 100
resolvConf: /etc/resolv.conf
END
}

start_kubelet() {
	start kubelet "$cache"/k8s-*/bin/kubelet --config "$tmp/kubelet.yaml" --kubeconfig "$kubelet_kubeconfig" \
		--container-runtime remote --container-runtime-endpoint unix:///run/containerd/containerd.sock \
		--hostname-override k --v 2 >>"$tmp/kubelet.log" 2>&1
}
