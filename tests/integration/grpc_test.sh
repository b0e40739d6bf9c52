#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# lib/grpc against a foreign implementation, grpc-go, which is the kubelet's: its client calls our server as kubelets of all ages
# do, and our client calls its server.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

. tests/lib.sh

ours=${BUILD:-build}/${VARIANT:-asan}/tests/grpc-peer
cache=${ORBWEAVER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/orbweaver}
tmp=$(mktemp -d)
pids=()

clean_up() {
	((${#pids[@]} == 0)) || kill "${pids[@]}" 2>/dev/null || true
	wait
	rm -rf "$tmp"
}
trap clean_up EXIT

# GOPATH mode, with the packages that Debian has; messages from our .proto files, by Go's own generator.
build_foreign() {
	local gopath=$tmp/go

	mkdir -p "$gopath/src/deviceplugin"
	protoc --proto_path=lib/grpc/proto --go_out=import_path=deviceplugin:"$gopath/src/deviceplugin" device_plugin.proto
	PATH=/usr/lib/go-1.19/bin:$PATH GO111MODULE=off GOFLAGS="" GOPATH=$gopath:/usr/share/gocode GOCACHE=$cache/go-build \
		CGO_ENABLED=0 go build -o "$tmp/foreign" tests/integration/grpc_peer.go
}

hack/deps grpc
t_ok "the foreign peer builds" build_foreign
t_ok "our peer is built" test -x "$ours"
t_need

said() {
	grep -qxF -- "$2" "$1"
}

# --- a foreign client calls our server --------------------------------------------------------------

"$ours" serve "$tmp/plugin.sock" >"$tmp/plugin.log" 2>&1 &
plugin=$!
pids+=("$plugin")
t_wait 5 "our server serves" said "$tmp/plugin.log" serving
t_eq "its socket is for its owner alone" "socket 600" "$(stat -c '%F %a' "$tmp/plugin.sock")"

for authority in path localhost; do
	while IFS='|' read -r check name; do
		t_ok "grpc-go, authority $authority: $name" "$tmp/foreign" client "$tmp/plugin.sock" $authority "$check"
	done <<-'END'
		options|a unary call with empty messages
		allocate|a unary call
		watch|a stream of lists of 5,000 devices, calls meanwhile, cancellation
		deadline|a deadline passes
		cancel|a call is cancelled
		status|a status with a text that has to be escaped
		unknown|an unknown method is Unimplemented
		compressed|compression is Unimplemented
		large|3 MiB there and back
		too-large|5 MiB are ResourceExhausted, the connection goes on
		many|1,000 calls at once
	END
done
t_ok "grpc-go: a slow reader of a stream gets the newest list" "$tmp/foreign" client "$tmp/plugin.sock" localhost slow
t_wait 5 "the handler is told of a cancelled call" said "$tmp/plugin.log" "PreStartContainer ended: Canceled"
t_wait 5 "the handler is told of a cancelled stream" said "$tmp/plugin.log" "ListAndWatch ended: Canceled"
t_eq "each held call has ended" "$(grep -c 'is held' "$tmp/plugin.log")" "$(grep -c 'PreStartContainer ended' "$tmp/plugin.log")"

"$tmp/foreign" client "$tmp/plugin.sock" path end >"$tmp/end.log" 2>&1 &
end=$!
t_wait 5 "a client watches" said "$tmp/end.log" watching
kill -TERM "$plugin"
status=0
wait "$end" || status=$?
t_eq "at the server's end its stream is Unavailable" "0 watching" "$status $(cat "$tmp/end.log")"
status=0
wait "$plugin" || status=$?
t_eq "the server ends in an orderly way" "0 closed" "$status $(tail -1 "$tmp/plugin.log")"
t_fails "its socket is gone" test -e "$tmp/plugin.sock"

# --- a foreign client calls our device plugins --------------------------------------------------------

tool=${BUILD:-build}/${VARIANT:-asan}/tests/kubelet-tool

one_socket() {
	compgen -G "$tmp/plugins/*.ow.sock" >"$tmp/socket"
}

mkdir "$tmp/plugins"
jq -n '{problems: [], resources: [{name: "spidernet.io/x", kind: "sriov", policy: "spread", wanted: 4, causes: [],
	env: "PCIDEVICE_SPIDERNET_IO_X", devices: [range(4) | {id: "0000:3b:00.\(.)", healthy: (. < 3), numa: 0, pf: "0000:3a:00.0",
	nodes: ["/dev/infiniband/uverbs\(.)"], env: {}}]}]}' >"$tmp/pools.json"
"$tool" serve "$tmp/plugins" "$tmp/pools.json" >"$tmp/tool.log" 2>&1 &
pid=$!
pids+=("$pid")
t_wait 5 "a device plugin serves" one_socket
for authority in path localhost; do
	t_ok "grpc-go, authority $authority: every RPC of a device plugin, with deadlines and cancellations" \
		"$tmp/foreign" client "$(cat "$tmp/socket")" $authority plugin
done
kill -TERM "$pid"
status=0
wait "$pid" || status=$?
t_eq "the device plugin ends in an orderly way" 0 "$status"

# --- our client calls a foreign server --------------------------------------------------------------

call() {
	timeout 30 "$ours" call "$tmp/kubelet.sock" "$1"
}

t_eq "a socket that is missing is told" "SocketUnavailable: connect to $tmp/kubelet.sock: No such file or directory" \
	"$(call register)"
"$tmp/foreign" server "$tmp/kubelet.sock" >"$tmp/kubelet.log" 2>&1 &
kubelet=$!
pids+=("$kubelet")
t_wait 5 "the foreign server serves" said "$tmp/kubelet.log" serving

t_eq "Register" "OK, 1 messages, 0 devices: " "$(call register)"
t_ok "the request is understood" said "$tmp/kubelet.log" "register v1beta1 x.sock rdma/hca_a"
t_eq "a refusal and its text" 'Unknown, 0 messages, 0 devices: invalid name "no-name": 100% würong' "$(call refused)"
t_eq "a deadline" "DeadlineExceeded, 0 messages, 0 devices: no answer within 100 ms" "$(call deadline)"
t_wait 5 "the server knew of the deadline" grep -q "^slow ended: context .* true$" "$tmp/kubelet.log"
t_eq "a stream of messages beyond the windows" "OK, 5 messages, 5004 devices: " "$(call watch)"
t_eq "an unknown method" "Unimplemented, 0 messages, 0 devices: unknown method Fly for service v1beta1.DevicePlugin" \
	"$(call unknown)"
t_eq "a message above 4 MiB" ResourceExhausted "$(call huge | sed 's/,.*//')"

call forever >"$tmp/forever.log" &
forever=$!
sleep 0.3
kill -TERM "$kubelet"
wait "$forever" || true
t_eq "a stream at the server's end" Unavailable "$(sed 's/,.*//' "$tmp/forever.log")"

t_done
