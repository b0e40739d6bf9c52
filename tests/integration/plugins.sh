# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034 # variables of the tests
# Sourced by tests that call CNI plugins of ours beside those of containernetworking-plugins, in network namespaces of their own:
# ours() and theirs() are the two runtimes, both with an IPAM plugin that gives what the test says. As root; no cluster.

theirs=/usr/lib/cni

# plugins_inside PLUGIN SCRIPT: "SCRIPT inside" in namespaces of its own, where this machine can have them.
plugins_inside() {
	if ((EUID != 0)) || ! unshare --net --mount ip link add probe0 type veth peer name probe1 2>/dev/null; then
		t_skip "interfaces as containernetworking-plugins make them" "needs root, network namespaces and veth"
		t_done
	fi
	if [[ ! -x $theirs/$1 ]]; then
		t_skip "interfaces as containernetworking-plugins make them" "needs Debian's containernetworking-plugins"
		t_done
	fi
	exec unshare --net --mount "$2" inside
}

# The folder $tmp, an empty /run/netns, and their IPAM plugin: what a test says in $IPAM.
plugins_start() {
	tmp=$(mktemp -d)
	trap 'rm -rf "$tmp"' EXIT
	tool=${BUILD:-build}/${VARIANT:-asan}/tests/attach-tool
	pod=/run/netns/pod
	mount --make-rprivate /
	mount -t tmpfs tmpfs /run/netns 2>/dev/null || { mkdir -p /run/netns && mount -t tmpfs tmpfs /run/netns; }
	mkdir "$tmp/bin"
	cat >"$tmp/bin/x" <<'END'
#!/bin/sh
[ -n "$IPAM" ] || exit 1
[ "$CNI_COMMAND" != ADD ] || printf '%s\n' "$IPAM"
END
	chmod +x "$tmp/bin/x"
	ip link set lo up
}

v4='{"cniVersion": "1.0.0", "ips": [{"address": "10.9.0.5/24", "gateway": "10.9.0.1"}], "routes": [{"dst": "0.0.0.0/0"}]}'
v6='{"cniVersion": "1.0.0", "ips": [{"address": "fd09::5/64"}], "routes": [{"dst": "fd08::/64", "gw": "fd09::9"}]}'
both='{"cniVersion": "1.0.0", "ips": [{"address": "10.9.0.5/24", "gateway": "10.9.0.1"}, {"address": "fd09::5/64"}],
	"routes": [{"dst": "10.8.0.0/16", "gw": "10.9.0.9"}, {"dst": "0.0.0.0/0"}],
	"dns": {"nameservers": ["10.9.0.53"]}}'
old='{"cniVersion": "0.4.0", "ips": [{"version": "4", "address": "10.9.0.5/24"}], "routes": [{"dst": "10.8.0.0/16"}]}'

# ours, theirs: COMMAND TYPE CONFIG [IPAM], in the namespace $netns.
ours() {
	CNI_ARGS=${args:-} "$tool" "$1" "$2" net1 "$netns" "$tmp/state" "$3" ${4:+"$4"}
}

theirs() {
	CNI_COMMAND=$1 CNI_CONTAINERID=c1 CNI_NETNS=$netns CNI_IFNAME=net1 CNI_ARGS=${args:-} CNI_PATH=$tmp/bin IPAM=${4:-} \
		"$theirs/$2" <<<"$3"
}

# config TYPE JSON [IPAM]: on stdin of the plugin.
config() {
	jq -nc --arg type "$1" --argjson more "$2" --arg ipam "${3:-}" '{ cniVersion: "1.0.0", name: "n", $type } +
		(if $ipam != "" then { ipam: { type: "x" } } else {} end) + $more'
}

new_pod() {
	ip netns del pod 2>/dev/null || true
	ip netns add pod
	ip -n pod link set lo up
	rm -f "$tmp/state"
	netns=$pod
}

# A MAC address that nobody asked for is another one each time.
without_chance() {
	sed -E 's/"(mac|address)":"02:00:00/"\1":"ASKED/g; s/"(mac|address)":"([0-9a-f]{2}:){5}[0-9a-f]{2}"/"\1":"by chance"/g; s/ASKED/02:00:00/g'
}

# run WHO COMMAND TYPE CONFIG IPAM: what it prints, and how it ends, in one line; that of a failure says no more than that.
run() {
	local output status=0

	output=$("$@" 2>"$tmp/errors") || status=$?
	((status == 0)) && { jq -cS . <<<"${output:-null}" | without_chance && return; }
	echo "it fails"
	printf '%s\n' "$1 $3: $output" >>"$tmp/said"
}
