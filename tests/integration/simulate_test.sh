#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `orbweaver simulate`, as a user meets it: the real kubectl against it, what is wrong with its command line, and its end.
# Needs no cluster.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/lib.sh

orbweaver=${BUILD:-build}/${VARIANT:-asan}/orbweaver
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1:halt_on_error=1}
tmp=$(mktemp -d)
state=$tmp/state
pid=

clean_up() {
	[[ -z $pid ]] || kill -s KILL "$pid" 2>/dev/null || true
	rm -rf "$tmp"
}

kubectl=$(hack/k8s-build --bin)/kubectl
[[ -x $kubectl ]] || kubectl=$(command -v kubectl || true)

k() {
	HOME=$tmp "$kubectl" --kubeconfig "$state/kubeconfig" --cache-dir "$tmp/cache" "$@"
}

start() {
	"$orbweaver" simulate --state "$state" >"$tmp/out" 2>"$tmp/err" </dev/null &
	pid=$!
	t_wait 60 "it says where it is" grep -q '^export KUBECONFIG=' "$tmp/out"
}

has_ended() {
	! kill -0 "$pid" 2>/dev/null
}

processes() {
	pgrep -f -- "--kubeconfig $state/kubeconfig" || true
}

stop() {
	local status=0

	kill -s TERM "$pid"
	t_wait 30 "it ends at SIGTERM" has_ended
	wait "$pid" || status=$?
	pid=
	t_eq "it exits with 0" 0 "$status"
	t_eq "it says nothing on stderr" "" "$(cat "$tmp/err")"
	t_eq "none of its processes is left" "" "$(processes)"
	t_fails "its kubeconfig is gone" test -e "$state/kubeconfig"
}

# refuses WORDS ARG...: exit status 2 and one line with these words.
refuses() {
	local words=$1 status=0

	shift
	"$orbweaver" simulate "$@" >"$tmp/refused" 2>&1 </dev/null || status=$?
	cat "$tmp/refused"
	((status == 2)) && [[ $(wc -l <"$tmp/refused") == 1 ]] && grep -qF -- "$words" "$tmp/refused"
}

processes_are() {
	[[ $(processes | wc -l) == "$1" ]]
}

# says WORDS COMMAND...: it fails with these words.
says() {
	local words=$1 said status=0

	shift
	said=$("$@" 2>&1) || status=$?
	echo "$said"
	((status != 0)) && [[ $said == *"$words"* ]]
}

port_of_server() {
	sed -n 's|^ *server: https://127.0.0.1:||p' "$state/kubeconfig"
}

# --- what is wrong with a command line -------------------------------------------------------------------------------

bad_input() {
	t_ok "a second one with the same state is refused" refuses "another simulation runs there" --state "$state"
	t_ok "a port in use is refused" refuses "Address already in use" --state "$tmp/other" \
		--listen "127.0.0.1:$(port_of_server)"
	t_ok "an address that is not loopback is refused" refuses "must be 127.0.0.1:PORT" --state "$tmp/other" \
		--listen 0.0.0.0:0
	echo "kind: Config" >"$tmp/mine"
	t_ok "a kubeconfig that is not its own is not written over" refuses "name another file" --state "$tmp/other" \
		--kubeconfig "$tmp/mine"
	t_eq "which is still there" "kind: Config" "$(cat "$tmp/mine")"
	t_eq "nothing of these is left running" "" "$(pgrep -f -- "$tmp/other" || true)"
	t_ok "the first one still answers" k get namespaces
}

# --- kubectl ---------------------------------------------------------------------------------------------------------

field() {
	k get "$1" -o "jsonpath={$2}"
}

scaled() {
	[[ $(field deployment/web .spec.replicas) == 3 ]]
}

pool_manifest() {
	printf 'apiVersion: spiderpool.spidernet.io/v2beta1\nkind: SpiderIPPool\nmetadata: {name: %s}\nspec: {subnet: %s, %s}\n' "$@"
}

kubectl_works() {
	local pool=spiderippool/rail

	pool_manifest rail 10.1.0.0/24 'ips: [10.1.0.10-10.1.0.20]' >"$tmp/pool.yaml"
	t_eq "apply creates" "spiderippool.spiderpool.spidernet.io/rail created" "$(k apply -f "$tmp/pool.yaml")"
	t_eq "apply of the same changes nothing" "spiderippool.spiderpool.spidernet.io/rail unchanged" \
		"$(k apply -f "$tmp/pool.yaml")"
	pool_manifest rail 10.1.0.0/24 'ips: [10.1.0.10-10.1.0.30]' >"$tmp/pool.yaml"
	t_eq "apply changes" "spiderippool.spiderpool.spidernet.io/rail configured" "$(k apply -f "$tmp/pool.yaml")"
	t_ok "get prints the columns of the definition" grep -q "^NAME *VERSION *SUBNET" <(k get "$pool")
	t_ok "describe" grep -q "10.1.0.10-10.1.0.30" <(k describe "$pool")
	t_ok "edit" env KUBE_EDITOR="sed -i s/10.1.0.30/10.1.0.40/" HOME="$tmp" "$kubectl" \
		--kubeconfig "$state/kubeconfig" edit "$pool"
	t_eq "what was edited is there" 10.1.0.10-10.1.0.40 "$(field "$pool" '.spec.ips[0]')"
	t_ok "label" k label "$pool" rail=one
	t_eq "a label selects" spiderippool.spiderpool.spidernet.io/rail "$(k get spiderippools -l rail=one -o name)"
	t_ok "annotate" k annotate "$pool" note=x
	t_ok "a merge patch" k patch "$pool" --type merge -p '{"spec": {"disable": true}}'
	t_ok "a JSON patch" k patch "$pool" --type json -p '[{"op": "replace", "path": "/spec/disable", "value": false}]'
	t_eq "the last patch counts" false "$(field "$pool" .spec.disable)"
	t_ok "server-side apply" k apply --server-side --force-conflicts -f "$tmp/pool.yaml"
	t_ok "validation names the field" says "spec.vlan in body should be less than or equal to 4094" \
		k patch "$pool" --type merge -p '{"spec": {"vlan": 5000}}'
	t_ok "delete" k delete "$pool"
	t_ok "what is deleted is not found" says NotFound k get "$pool"
	t_ok "a Deployment" k create deployment web --image=web
	t_ok "scale" k scale deployment web --replicas 3
	t_ok "it is scaled" scaled
	t_ok "a strategic merge patch of a list with keys" k set image deployment/web web=web:2
	t_eq "it changed the one container" web:2 "$(field deployment/web '.spec.template.spec.containers[*].image')"
	t_ok "a pod" k run p --image=p
	t_ok "logs are refused in words" says "do not run" k logs p
	t_ok "delete waits for the pod's end" k delete pod p --wait
	t_ok "a namespace" k create namespace lab
	t_ok "an object in it" k create configmap -n lab x --from-literal a=b
	t_ok "a namespace goes with what is in it" k delete namespace lab
	t_eq "nothing of it is left" "" "$(k get configmaps -A -o name)"
}

operator_works() {
	t_ok "the guides' objects" k apply -f crds/samples/roce-en-macvlan.yaml
	t_ok "the operator renders a NetworkAttachmentDefinition" k wait --for condition=Ready --timeout 60s -n kube-system \
		spidermultusconfigs --all
	t_ok "kubectl shows it" k get network-attachment-definitions -n kube-system macvlan-ens6f0np0
	t_wait 30 "its webhook is in place" k get validatingwebhookconfigurations orbweaver-validating
	pool_manifest bad 10.1.0.0/24 'ips: [10.9.0.1]' >"$tmp/bad.yaml"
	t_ok "what it refuses, the API server refuses" says "10.9.0.1 is not inside" k apply -f "$tmp/bad.yaml"
	t_ok "orbweaver reads it" env KUBECONFIG="$state/kubeconfig" "$orbweaver" ipam show
}

# One of its processes ends: so does all, and says why.
operator_dies() {
	local status=0

	kill -s KILL "$(processes)"
	t_wait 30 "it ends when its operator does" has_ended
	wait "$pid" || status=$?
	pid=
	t_eq "it exits with 3" 3 "$status"
	t_ok "it names the log" grep -q "the operator ended by signal 9; see $state/operator.log" "$tmp/err"
	t_eq "none of its processes is left" "" "$(processes)"
}

t_ok "the program is built" test -x "$orbweaver"
t_ok "there is a kubectl" test -x "$kubectl"
t_need
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
start
t_need
t_eq "its kubeconfig is for its user alone" 600 "$(stat -c %a "$state/kubeconfig")"
bad_input
kubectl_works
operator_works
stop
start
t_wait 30 "it starts again with the same state" processes_are 1
operator_dies
t_done
