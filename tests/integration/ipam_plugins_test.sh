#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# static and host-local of ours beside those of containernetworking-plugins: the same configuration has the same result and the same
# files, and fails where theirs fails; either finds what the other has given. As root; no cluster.
# shellcheck disable=SC2016 # $prepare is expanded later
set -euo pipefail

theirs=/usr/lib/cni
if [[ ${1:-} != inside ]]; then
	cd "$(dirname "$0")/../.."
	. tests/lib.sh
	if ((EUID != 0)) || ! unshare --net --mount true 2>/dev/null; then
		t_skip "addresses as containernetworking-plugins give them" "needs root and network namespaces"
		t_done
	fi
	if [[ ! -x $theirs/host-local ]]; then
		t_skip "addresses as containernetworking-plugins give them" "needs Debian's containernetworking-plugins"
		t_done
	fi
	exec unshare --net --mount "$0" inside
fi
cd "$(dirname "$0")/../.."
. tests/lib.sh

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
tool=${BUILD:-build}/${VARIANT:-asan}/tests/attach-tool
export ATTACH_ROOT=/

mount --make-rprivate /
mount -t tmpfs tmpfs /run/netns 2>/dev/null || { mkdir -p /run/netns && mount -t tmpfs tmpfs /run/netns; }
ip netns add pod

# ours, theirs: COMMAND TYPE CONFIG, for $container.
container=c1
ours() {
	CNI_ARGS=${args:-} CNI_CONTAINERID=$container "$tool" "$1" "$2" net1 /run/netns/pod "$tmp/state" "$3"
}

theirs() {
	CNI_COMMAND=$1 CNI_CONTAINERID=$container CNI_NETNS=/run/netns/pod CNI_IFNAME=net1 CNI_ARGS=${args:-} CNI_PATH=$theirs "$theirs/$2" <<<"$3"
}

# config TYPE JSON [IPAM]: JSON is merged into the network, IPAM into its "ipam".
config() {
	jq -nc --arg type "$1" --argjson more "$2" --argjson ipam "$3" '{ cniVersion: "1.0.0", name: "n", type: "macvlan" } + $more |
		if $ipam then .ipam = { $type } + $ipam else . end'
}

run() {
	local output

	output=$("$@" 2>"$tmp/errors") && jq -cS . <<<"${output:-null}" && return
	echo "it fails"
	echo "$1 $3: $output" >>"$tmp/said"
}

files() {
	(cd "$tmp/data" 2>/dev/null && grep -rHs . . | tr -d '\r' | grep -v /lock | sort) || true
}

with_check() {
	jq -c --argjson result "$1" '.prevResult = $result' <<<"$2"
}

# story WHO TYPE CONFIG: ADD and CHECK for each of $containers, then DEL for each and one that never was, with the files that there
# are then. $prepare: what is in the folder before.
story() {
	local who=$1 type=$2 json=$3 result

	rm -rf "$tmp/data" "$tmp/state"
	mkdir -p "$tmp/data/n"
	eval "$prepare"
	for container in $containers; do
		result=$(run "$who" ADD "$type" "$json")
		echo "ADD $container: $result"
		files
		[[ $result == "it fails" || $(jq -r .cniVersion <<<"$json") == 0.[123].* ]] ||
			echo "CHECK $container: $(run "$who" CHECK "$type" "$(with_check "$result" "$json")")"
	done
	for container in $containers none; do
		echo "DEL $container: $(run "$who" DEL "$type" "$json")"
		files
	done
	container=c1
}

# same NAME TYPE JSON IPAM: ours do as theirs do, and end as $expected says. A configuration that is wrong keeps theirs from DEL, and
# ours only where it does not say which files are meant.
containers=c1
prepare=:
same() {
	local name=$1 type=$2 json

	json=$(config "$type" "$3" "$4")
	story theirs "$type" "$json" >"$tmp/theirs"
	story ours "$type" "$json" >"$tmp/ours"
	# Of two addresses that are asked for theirs takes one by chance.
	[[ $expected == works ]] || sed -i '/^DEL/d; /last_reserved_ip/d' "$tmp/theirs" "$tmp/ours"
	t_ok "$type, $name" diff "$tmp/theirs" "$tmp/ours"
	t_eq "$type, $name: it $expected" "$expected" "$(grep -q '^ADD.*it fails' "$tmp/ours" && echo fails || echo works)"
}

# --- static ---------------------------------------------------------------------------------------

expected=works
one='{"addresses": [{"address": "10.9.0.5/24", "gateway": "10.9.0.1"}]}'
two='{"addresses": [{"address": "10.9.0.5/24", "gateway": "10.9.0.1"}, {"address": "fd09::5/64", "gateway": "fd09::1"}],
	"routes": [{"dst": "0.0.0.0/0"}, {"dst": "10.8.0.0/16", "gw": "10.9.0.9"}], "dns": {"nameservers": ["10.0.0.1"], "domain": "a.b",
	"search": ["c.d"], "options": ["ndots:2"]}}'
for version in 0.1.0 0.2.0 0.3.0 0.3.1 0.4.0 1.0.0; do
	same "cniVersion $version" static "{\"cniVersion\": \"$version\"}" "$two"
done
same "one address" static '{}' "$one"
same "no address" static '{}' '{}'
same "an address of a host" static '{}' '{"addresses": [{"address": "10.9.0.5/32"}]}'
same "keys in any case" static '{}' '{"Addresses": [{"aDDress": "10.9.0.5/24", "GATEWAY": "10.9.0.1"}]}'
same "addresses of the runtime" static '{"runtimeConfig": {"ips": ["10.9.0.6/24", "fd09::6/64"]}}' "$one"
same "addresses of the network" static '{"args": {"cni": {"ips": ["10.9.0.7/24"]}}}' "$one"
same "the runtime's go before the network's" static '{"args": {"cni": {"ips": ["10.9.0.7/24"]}}, "runtimeConfig": {"ips": ["10.9.0.6/24"]}}' "$one"
args='IgnoreUnknown=1;IP=10.9.0.8/24, fd09::8/64;GATEWAY=10.9.0.2,fd09::2'
same "addresses of CNI_ARGS" static '{}' '{}'
same "beside the configuration's" static '{}' "$one"
args=
expected=fails
same "an address without a prefix length" static '{}' '{"addresses": [{"address": "10.9.0.5"}]}'
same "an address that is none" static '{}' '{"addresses": [{"address": "x/24"}]}'
same "a gateway that is none" static '{}' '{"addresses": [{"address": "10.9.0.5/24", "gateway": "x"}]}'
same "addresses that are no list" static '{}' '{"addresses": "10.9.0.5/24"}'
same "an address of the runtime without a prefix length" static '{"runtimeConfig": {"ips": ["10.9.0.6"]}}' "$one"
same "two addresses of a family in an old version" static '{"cniVersion": "0.2.0"}' '{"addresses": [{"address": "10.9.0.5/24"}, {"address": "10.9.0.6/24"}]}'
same "a route that is none" static '{}' '{"addresses": [{"address": "10.9.0.5/24"}], "routes": [{"dst": "x"}]}'
same "no ipam" static '{}' null
args='IgnoreUnknown=1;IP=10.9.0.8'
same "an address of CNI_ARGS without a prefix length" static '{}' "$one"
args='IgnoreUnknown=1;GATEWAY=x'
same "a gateway of CNI_ARGS that is none" static '{}' "$one"
args=
expected=works
for who in theirs ours; do
	t_fails "CHECK of $who: another gateway" "$who" CHECK static "$(with_check '{"cniVersion": "1.0.0", "ips": [{"address": "10.9.0.5/24", "gateway": "10.9.0.2"}]}' \
		"$(config static '{}' "$one")")"
	t_fails "CHECK of $who without a result" "$who" CHECK static "$(config static '{}' "$one")"
done

# --- host-local -----------------------------------------------------------------------------------

# ranges JSON: a configuration of host-local.
ranges() {
	jq -nc --arg dir "$tmp/data" --argjson more "$1" '{ dataDir: $dir } + $more'
}

containers="c1 c2 c3"
subnet='{"subnet": "10.9.0.0/24"}'
for version in 0.1.0 0.2.0 0.3.0 0.3.1 0.4.0 1.0.0; do
	same "cniVersion $version" host-local "{\"cniVersion\": \"$version\"}" "$(ranges "$subnet")"
done
same "both families" host-local '{}' "$(ranges '{"ranges": [[{"subnet": "10.9.0.0/24"}], [{"subnet": "fd09::/64", "gateway": "fd09::1"}]],
	"routes": [{"dst": "0.0.0.0/0"}, {"dst": "fd08::/64", "gw": "fd09::9"}]}')"
same "bounds and a gateway" host-local '{}' "$(ranges '{"ranges": [[{"subnet": "10.9.0.0/24", "rangeStart": "10.9.0.20", "rangeEnd": "10.9.0.24", "gateway": "10.9.0.21"}]]}')"
same "a range of two parts" host-local '{}' "$(ranges '{"ranges": [[{"subnet": "10.9.0.0/24", "rangeEnd": "10.9.0.2"}, {"subnet": "10.9.1.0/24"}]]}')"
same "the old way and ranges" host-local '{}' "$(ranges '{"subnet": "10.9.0.0/24", "rangeStart": "10.9.0.9", "ranges": [[{"subnet": "10.8.0.0/24"}]]}')"
same "ranges of the runtime" host-local '{"runtimeConfig": {"ipRanges": [[{"subnet": "10.7.0.0/24"}]]}}' "$(ranges "$subnet")"
same "keys in any case" host-local '{}' "$(ranges '{"Ranges": [[{"Subnet": "10.9.0.0/24", "RANGESTART": "10.9.0.20"}]]}')"
prepare='printf 10.9.0.3 >"$tmp/data/n/last_reserved_ip.0"'
same "from the last one on" host-local '{}' "$(ranges '{"ranges": [[{"subnet": "10.9.0.0/29"}]]}')"
prepare='printf 10.7.0.3 >"$tmp/data/n/last_reserved_ip.0"'
same "a last one of another range" host-local '{}' "$(ranges "$subnet")"
prepare='printf other >"$tmp/data/n/10.9.0.2"; printf "other\r\nnet1" >"$tmp/data/n/10.9.0.4"'
same "around those that are given" host-local '{}' "$(ranges "$subnet")"
prepare='printf c1 >"$tmp/data/n/10.8.0.2"; printf "c2\r\nnet9" >"$tmp/data/n/10.8.0.3"'
same "files of an older version, another interface" host-local '{}' "$(ranges "$subnet")"
prepare='printf "# x\nnameserver 10.0.0.1\nnameserver 10.0.0.2\n\tsearch a.b  c.d\noptions ndots:2 edns0\ndomain e.f\nnameserver\n" >"$tmp/resolv.conf"'
same "DNS of a file" host-local '{}' "$(ranges "$(jq -nc --arg file "$tmp/resolv.conf" '{ subnet: "10.9.0.0/24", resolvConf: $file }')")"
prepare=:
containers=c1
args='IgnoreUnknown=1;IP=10.9.0.50'
same "an address of CNI_ARGS" host-local '{}' "$(ranges "$subnet")"
args=
same "addresses of the runtime" host-local '{"runtimeConfig": {"ips": ["10.9.0.60", "fd09::60"]}}' "$(ranges '{"ranges": [[{"subnet": "10.9.0.0/24"}], [{"subnet": "fd09::/64"}]]}')"
same "one with a prefix length" host-local '{"runtimeConfig": {"ips": ["10.9.0.60/24"]}}' "$(ranges "$subnet")"
same "addresses of the network" host-local '{"args": {"cni": {"ips": ["10.9.0.70"]}}}' "$(ranges "$subnet")"

expected=fails
containers="c1 c1"
same "a second ADD without DEL" host-local '{}' "$(ranges "$subnet")"
containers="c1 c2 c3 c4 c5 c6"
same "no more addresses" host-local '{}' "$(ranges '{"subnet": "10.9.0.0/29"}')"
same "none for the second family" host-local '{}' "$(ranges '{"ranges": [[{"subnet": "10.9.0.0/24"}], [{"subnet": "10.8.0.0/30"}]]}')"
containers="c1 c2"
same "an address of the runtime that is given" host-local '{"runtimeConfig": {"ips": ["10.9.0.60"]}}' "$(ranges "$subnet")"
containers=c1
same "the gateway" host-local '{"runtimeConfig": {"ips": ["10.9.0.1"]}}' "$(ranges "$subnet")"
same "an address of no range" host-local '{"runtimeConfig": {"ips": ["10.7.0.1"]}}' "$(ranges "$subnet")"
same "two addresses of one range" host-local '{"runtimeConfig": {"ips": ["10.9.0.60", "10.9.0.61"]}}' "$(ranges "$subnet")"
same "no ranges" host-local '{}' "$(ranges '{}')"
same "an empty range" host-local '{}' "$(ranges '{"ranges": [[]]}')"
same "two families in one set" host-local '{}' "$(ranges '{"ranges": [[{"subnet": "10.9.0.0/24"}, {"subnet": "fd09::/64"}]]}')"
same "parts that overlap" host-local '{}' "$(ranges '{"ranges": [[{"subnet": "10.9.0.0/24"}, {"subnet": "10.9.0.0/25"}]]}')"
same "sets that overlap" host-local '{}' "$(ranges '{"ranges": [[{"subnet": "10.9.0.0/24"}], [{"subnet": "10.9.0.0/16"}]]}')"
same "host bits" host-local '{}' "$(ranges '{"subnet": "10.9.0.5/24"}')"
same "a subnet that is too small" host-local '{}' "$(ranges '{"subnet": "10.9.0.4/31"}')"
same "a start outside" host-local '{}' "$(ranges '{"subnet": "10.9.0.0/24", "rangeStart": "10.8.0.1"}')"
same "an end outside" host-local '{}' "$(ranges '{"subnet": "10.9.0.0/24", "rangeEnd": "10.8.0.1"}')"
same "an end before the start" host-local '{}' "$(ranges '{"subnet": "10.9.0.0/24", "rangeStart": "10.9.0.9", "rangeEnd": "10.9.0.8"}')"
same "a subnet that is none" host-local '{}' "$(ranges '{"subnet": "x"}')"
same "an address that is none" host-local '{"runtimeConfig": {"ips": ["x"]}}' "$(ranges "$subnet")"
same "two sets of a family in an old version" host-local '{"cniVersion": "0.2.0"}' "$(ranges '{"ranges": [[{"subnet": "10.9.0.0/24"}], [{"subnet": "10.8.0.0/24"}]]}')"
same "a file of DNS that is not there" host-local '{}' "$(ranges '{"subnet": "10.9.0.0/24", "resolvConf": "/none"}')"
same "no ipam" host-local '{}' null

# --- one after the other --------------------------------------------------------------------------

json=$(config host-local '{}' "$(ranges "$subnet")")
address() {
	jq -r '.ips[0].address' <<<"$1"
}

given() {
	find "$tmp/data/n" -type f ! -name lock ! -name 'last_*' -printf '%f\n'
}

rm -rf "$tmp/data"
t_eq "theirs gives the first" 10.9.0.2/24 "$(address "$(theirs ADD host-local "$json")")"
t_ok "ours finds it" ours CHECK host-local "$(with_check '{"cniVersion": "1.0.0"}' "$json")"
container=c2
t_eq "ours gives the next" 10.9.0.3/24 "$(address "$(ours ADD host-local "$json")")"
container=c3
t_eq "theirs the one behind that" 10.9.0.4/24 "$(address "$(theirs ADD host-local "$json")")"
container=c2
t_ok "theirs finds that of ours" theirs CHECK host-local "$(with_check '{"cniVersion": "1.0.0"}' "$json")"
t_ok "and takes it back" theirs DEL host-local "$json"
container=c3
t_ok "ours takes back that of theirs" ours DEL host-local "$json"
t_eq "the other one's is left" 10.9.0.2 "$(given)"
container=c1
t_ok "DEL with ranges that are wrong" ours DEL host-local "$(config host-local '{}' "$(ranges '{"subnet": "x"}')")"
t_eq "takes it back" "" "$(given)"
rm -rf "$tmp/data"
t_ok "DEL where there is no folder" ours DEL host-local "$json"
t_fails "makes none" test -e "$tmp/data"

# An ADD that was killed between two of its steps.
container=c1
ours ADD host-local "$json" >/dev/null
ln "$tmp/data/n/10.9.0.2" "$tmp/data/n/.orbweaver.draft"
container=c2
t_eq "after a crash the next pod has the next address" 10.9.0.3/24 "$(address "$(ours ADD host-local "$json")")"
t_eq "and each file its own pod" "c1 c2" "$(head -qn 1 "$tmp"/data/n/10.9.0.[23] | tr -d '\r' | paste -sd ' ')"
rm -rf "$tmp/data"
touch "$tmp/file"
t_ok "a folder that cannot be is named" grep -q '"StoreUnusable".*file/n' <(ours ADD host-local "$(jq -c --arg dir "$tmp/file" '.ipam.dataDir = $dir' <<<"$json")")

# What is no file is not opened: a FIFO waits for its other end, a device may do more than be read.
container=c1
mkdir -p "$tmp/data/n"
mkfifo "$tmp/data/n/pipe" "$tmp/pipe"
mknod "$tmp/data/n/last_reserved_ip.0" c 1 7
t_eq "beside a FIFO and a device" 10.9.0.2/24 "$(address "$(CNI_CONTAINERID=c1 timeout 60 "$tool" ADD host-local net1 /run/netns/pod "$tmp/state" "$json")")"
t_ok "the device has made way" test -f "$tmp/data/n/last_reserved_ip.0"
t_ok "a FIFO is no resolvConf" grep -q '"StoreUnusable".*/pipe' <(CNI_CONTAINERID=c2 timeout 60 "$tool" ADD host-local net1 /run/netns/pod "$tmp/state" \
	"$(jq -c --arg file "$tmp/pipe" '.ipam.resolvConf = $file' <<<"$json")")
rm "$tmp/data/n/lock"
mknod "$tmp/data/n/lock" c 1 3
t_ok "a device is no lock" grep -q '"StoreUnusable".*lock' <(ours ADD host-local "$json")
rm -rf "$tmp/data"

# On a full disk: room for the folder, the lock, and one file.
mkdir "$tmp/data"
mount -t tmpfs -o size=64k,nr_inodes=4 tmpfs "$tmp/data"
t_ok "a full disk is named" grep -q '"StoreUnusable".*No space left' <(ours ADD host-local "$json")
t_eq "and keeps no address" "" "$(given)"
umount "$tmp/data"
rm -rf "$tmp/data"

# Many at once, both programs.
for n in {1..20}; do
	container=c$n
	if ((n % 2)); then ours ADD host-local "$json"; else theirs ADD host-local "$json"; fi >"$tmp/many.$n" &
done
wait
t_eq "of twenty at once each has an address of its own" 20 "$(jq -r '.ips[0].address' "$tmp"/many.* | sort -u | wc -l)"
ip netns del pod
t_done
