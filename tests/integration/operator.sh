# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What the tests of the operator share: a cluster of their own, operators and stand-ins for nodes in the background,
# questions to the API server, to the operators' logs and metrics, and to the audit log. Source it first; it sources lib.sh.
#
#   o_begin NAME [--no-controllers]   a cluster with our CRDs and namespaces, removed at exit with all that runs; with STAGE
#                                     the test ends, skipped, where that cannot be had
#   o_start ID [FLAG...]              an operator; kubeconfig and namespace are given unless FLAGs say otherwise
#   o_nodes ID [FLAG...]              a node-stand-in
#   o_wait_ready ID                   (a check) the operator is ready; the test ends if not
#   o_end ID                          (a check) SIGTERM: it exits with 0 within 5 s, and nothing but log came out of it
#   o_kill ID SIGNAL                  no questions asked
#   o_logged ID JQ                    a log line for which JQ holds is there
#   o_rest [afresh]                   the reconcilers find nothing to do in this cluster (tests/integration/pending.c)
#   o_writes JQ                       print how many writes in the audit log succeeded for which JQ holds
#   o_still SECONDS JQ                the audit log has no such write of the last SECONDS
#
# Environment: BUILD, VARIANT (where programs are), OPERATOR (the program itself), LONG=1 (sizes of the full runs), STAGE
# (custom resources are served by the newer server of that series: hack/cluster up --crds-from; or "core": sizes of `make check`),
# RULES=1 (with a newer server the definitions have the rules of manifests/overlays/crd-rules).

cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
. tests/lib.sh

o_programs=${BUILD:-build}/${VARIANT:-asan}
o_operator=${OPERATOR:-$o_programs/orbweaver-operator}
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1:halt_on_error=1}
export POD_NAMESPACE=orbweaver-system

spider=/apis/spiderpool.spidernet.io/v2beta1
sriov=/apis/sriovnetwork.openshift.io/v1
nads=/apis/k8s.cni.cncf.io/v1

o_core=
[[ ${STAGE:-} != core ]] || { o_core=1 && STAGE=; }

declare -A o_pids=()

k() {
	"$o_dir/kubectl" "$@"
}

# Value for a full run, for `make check-all`, and for the core of `make check` if it has another.
o_size() {
	if [[ -n ${LONG:-} ]]; then
		echo "$1"
	elif [[ -n $o_core ]]; then
		echo "${3:-$2}"
	else
		echo "$2"
	fi
}

# --- beginning and end --------------------------------------------------------------------------------------------

o_clean_up() {
	local id

	for id in "${!o_pids[@]}"; do
		kill -s CONT "${o_pids[$id]}" 2>/dev/null || true
		kill -s KILL "${o_pids[$id]}" 2>/dev/null || true
		wait "${o_pids[$id]}" 2>/dev/null || true
	done
	hack/cluster down "$o_cluster" >/dev/null || true
	rm -rf "$tmp"
}

# CRDs are served a moment after they are established.
o_served() {
	k get --raw "$spider" && k get --raw "$sriov" && k get --raw "$nads" &&
		k get smc,sp,sriovnetworknodepolicies,sriovnetworknodestates,net-attach-def -A
}

o_install_crds() {
	if [[ -n ${STAGE:-} && -n ${RULES:-} ]]; then
		k kustomize manifests/overlays/crd-rules >"$tmp/crds.yaml"
		t_ok "the CRDs are taken, with their rules" hack/cluster crds "$o_cluster" "$tmp/crds.yaml" crds/nad
	elif [[ -n ${STAGE:-} ]]; then
		t_ok "the CRDs are taken" hack/cluster crds "$o_cluster" crds crds/nad
	fi
	t_wait 60 "the CRDs are served" o_served
}

o_up() {
	local from="the API server itself" status=0

	if [[ -n ${STAGE:-} ]]; then
		set -- "$@" --crds-from "$STAGE"
		from="the newer server, $STAGE"
	else
		set -- "$@" --with-crds
	fi
	hack/cluster up "$o_cluster" "$@" >"$tmp/up" 2>&1 || status=$?
	if ((status == 77)); then
		t_skip "custom resources from $from" "it cannot be had here"
		t_done
	fi
	t_eq "a cluster, custom resources from $from" 0 "$status"
	((status == 0)) || cat "$tmp/up"
}

# Sets o_cluster, tmp, kubeconfig (the administrator's), o_api.
o_begin() {
	o_cluster=$1-$$
	shift
	tmp=$(mktemp -d)
	trap o_clean_up EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	t_ok "the programs are built" test -x "$o_operator" -a -x "$o_programs/tests/node-stand-in"
	o_up "$@"
	t_need
	kubeconfig=$(hack/cluster kubeconfig "$o_cluster")
	o_dir=$(dirname "$kubeconfig")
	o_api=https://127.0.0.1:$(sed -n s/^apiserver=//p "$o_dir/ports")
	o_install_crds
	for namespace in "$POD_NAMESPACE" spiderpool; do
		k create namespace "$namespace" >/dev/null
	done
	t_need
}

# A request as administrator, much quicker than kubectl: o_curl METHOD PATH [BODY]. Prints the answer; fails as curl -f.
o_curl() {
	local method=$1 path=$2 body=${3:-} type=application/json

	[[ $method != PATCH ]] || type=application/merge-patch+json
	curl -sf --noproxy '*' --max-time 20 --cacert "$o_dir/pki/ca.crt" -X "$method" \
		-H "Authorization: Bearer $(<"$o_dir/pki/token")" -H "Content-Type: $type" \
		${body:+--data-binary "$body"} "$o_api$path"
}

# Where no operator leads: an operator that led before has seen what pods have of this pool, which is nothing.
o_pool_is_learned() {
	o_curl PATCH "/apis/spiderpool.spidernet.io/v2beta1/spiderippools/$1/status" '{"status": {"allocatedIPCount": 0}}'
}

# What coordinators do: o_coordinator SPEC. Where an operator leads, it may have made the default one already.
o_coordinator() {
	o_curl POST "$spider/spidercoordinators" "{\"apiVersion\": \"spiderpool.spidernet.io/v2beta1\", \"kind\": \"SpiderCoordinator\",
		\"metadata\": {\"name\": \"default\"}, \"spec\": $1}" ||
		o_curl PATCH "$spider/spidercoordinators/default" "{\"spec\": $1}"
}

# The same where no operator leads, which would say what the cluster's networks are.
o_coordinator_ready() {
	o_coordinator "$1" &&
		o_curl PATCH "$spider/spidercoordinators/default/status" '{"status": {"phase": "Synced", "overlayPodCIDR": [], "serviceCIDR": []}}'
}

# Whoever changes things quickly, under a name of its own. Sets o_user_kubeconfig.
o_own_user_of_changes() {
	o_user_kubeconfig=$(o_user a-user system:masters)
}

o_user() {
	hack/cluster kubeconfig-user "$o_cluster" "$@"
}

# The rights of the default installation, and those of overlays/NAME.
o_rights() {
	k apply -f manifests/base/rbac.yaml -f manifests/base/drain-rbac.yaml -f manifests/base/node-labels-rbac.yaml ${1:+-f manifests/overlays/$1/rbac.yaml} >/dev/null
}

# The operator's account, with these rights and no others. Sets o_kubeconfig and o_username. o_own_user [OVERLAY]
# shellcheck disable=SC2034 # the latter is for the tests
# shellcheck disable=SC2120 # an overlay is an option
o_own_user() {
	o_rights "$@"
	o_kubeconfig=$(hack/cluster sa-kubeconfig "$o_cluster" "$POD_NAMESPACE" orbweaver-operator)
	o_username=system:serviceaccount:$POD_NAMESPACE:orbweaver-operator
}

# The agent's account, with its rights and those of more FILES. Sets agent_kubeconfig. o_agent_user [FILE...]
# shellcheck disable=SC2034 # it is for the tests
# shellcheck disable=SC2120 # files are an option
o_agent_user() {
	k apply -f manifests/base/rbac.yaml "${@/#/--filename=}" >/dev/null
	agent_kubeconfig=$(hack/cluster sa-kubeconfig "$o_cluster" "$POD_NAMESPACE" orbweaver-agent)
}

# A node of files without NICs, its root in $host, and the folders of a kubelet: o_host [ROOT].
# shellcheck disable=SC2120 # the root is an option
o_host() {
	host=${1:-$tmp/host}
	mkdir -p "$host"/{run,dev,etc/cni/net.d,opt/cni/bin,var/lib,sys/bus/pci/{devices,drivers/mlx5_core},sys/class/infiniband,proc/{1,sys/kernel/random}} \
		"$tmp"/kubelet/{device-plugins,pod-resources}
	ln -s ../run "$host/var/run"
	echo 00000000-0000-0000-0000-000000000001 >"$host/proc/sys/kernel/random/boot_id"
}

# An agent of node n1 that offers VFs of that device as spidernet.io/NAME, below a kubelet of ours that reads from descriptor 9 what
# pods get: o_offer NAME DEVICE. Sets o_offer_flags for the agent; needs o_agent_user and o_host.
# shellcheck disable=SC2034 # the flags are for the tests
o_offer() {
	o_curl POST /api/v1/nodes '{"metadata": {"name": "n1"}}' >/dev/null
	o_curl POST "/api/v1/namespaces/$POD_NAMESPACE/configmaps" "$(jq -n --arg name "$1" --arg device "$2" '{metadata: {name: "sriovdp-config"},
		data: {"config.json": ({resourceList: [{resourcePrefix: "spidernet.io", resourceName: $name,
			selectors: {vendors: ["15b3"], devices: [$device]}}]} | tojson)}}')" >/dev/null
	mkfifo "$tmp/pods"
	"$o_programs/tests/kubelet-play" "$tmp/kubelet" <"$tmp/pods" >"$tmp/play.out" 2>"$tmp/play.log" &
	o_pids[play]=$!
	exec 9>"$tmp/pods"
	o_offer_flags=(--node n1 --kubeconfig "$agent_kubeconfig" --host-root "$host" --kubelet-dir "$tmp/kubelet" --metrics-addr 127.0.0.1:0
		--cni-program "$PWD/$o_programs/orbweaver-cni" --device-config sriovdp-config)
}

# Give a user the operator's rights: several operators under names of their own are told apart in the audit log.
o_grant() {
	k create clusterrolebinding "$1" --clusterrole orbweaver-operator --user "$1" >/dev/null
	k create clusterrolebinding "$1-drain" --clusterrole orbweaver-operator-drain --user "$1" >/dev/null
	k create clusterrolebinding "$1-labels" --clusterrole orbweaver-operator-node-labels --user "$1" >/dev/null
	k create rolebinding "$1" -n "$POD_NAMESPACE" --role orbweaver-operator --user "$1" >/dev/null
}

o_free_port() {
	local port

	while port=$((20000 + RANDOM % 10000)); do
		(exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
	done
	echo "$port"
}

# --- programs in the background -----------------------------------------------------------------------------------

o_spawn() {
	local id=$1

	shift
	"$@" >"$tmp/$id.out" 2>>"$tmp/$id.log" </dev/null &
	o_pids[$id]=$!
}

o_start() {
	local id=$1

	shift
	o_spawn "$id" "$o_operator" --kubeconfig "${o_kubeconfig:-$kubeconfig}" --metrics-addr 127.0.0.1:0 \
		--health-addr 127.0.0.1:0 --policy-namespaces default "$@"
}

o_nodes() {
	local id=$1

	shift
	o_spawn "$id" "$o_programs/tests/node-stand-in" --kubeconfig "$kubeconfig" --register --work-ms 50 "$@"
}

o_churn() {
	"$o_programs/tests/integration/churn" --kubeconfig "$o_user_kubeconfig" "$@"
}

o_kill() {
	kill -s "$2" "${o_pids[$1]}" || true
	[[ $2 != KILL ]] || o_reap "$1"
}

# Wait for it. Sets o_status.
o_reap() {
	local status=0

	wait "${o_pids[$1]}" 2>/dev/null || status=$?
	unset "o_pids[$1]"
	o_status=$status
}

o_runs() {
	[[ -d /proc/${o_pids[$1]} && $(sed 's/.*) //; s/ .*//' "/proc/${o_pids[$1]}/stat") != Z ]]
}

o_gone() {
	! o_runs "$1"
}

# Sanitizers and abort messages are not JSON. The leak checker of a process that is killed meanwhile (kubeletd has 2 s to end)
# says that it has lost it, which is no leak.
o_log_is_clean() {
	local lost='^==[0-9]*==Unable to get registers from thread [0-9]*\.$'

	cat "$tmp/$1.out"
	grep -v -e '^{' -e "$lost" "$tmp/$1.log" | head -60
	grep -v "$lost" "$tmp/$1.log" | jq -e . >/dev/null && [[ ! -s $tmp/$1.out ]]
}

o_end() {
	local id=$1

	kill -s TERM "${o_pids[$id]}" || true
	t_wait 7 "$id ends within 5 s of SIGTERM" o_gone "$id"
	o_gone "$id" || kill -s KILL "${o_pids[$id]}"
	o_reap "$id"
	t_eq "$id exits with 0" 0 "$o_status"
	t_ok "no crash, no leak, nothing but log lines from $id" o_log_is_clean "$id"
}

# A kubeconfig like this one that leads through a relay. Sets o_relayed. `o_kill relay USR1` cuts all connections.
o_through_relay() {
	o_spawn relay "$o_programs/tests/relay" "${o_api##*:}"
	t_wait 5 "a relay listens" test -s "$tmp/relay.out"
	o_relayed=$tmp/relayed.kubeconfig
	sed "s|$o_api|https://127.0.0.1:$(<"$tmp/relay.out")|" "$1" >"$o_relayed"
	t_fails "nothing goes past it" grep -q "$o_api" "$o_relayed"
}

# o_take_right RESOURCE: the operator may not list and watch it any more; connections that are open would go on, so the
# relay cuts them. `o_rights` gives it back.
o_take_right() {
	k get clusterrole orbweaver-operator -o json | jq --arg resource "$1" '(.rules[] | select(.verbs == ["list", "watch"]) |
		.resources) -= [ $resource ]' | k replace -f - >/dev/null
	o_kill relay USR1
}

# --- what an operator says ----------------------------------------------------------------------------------------

# o_port ID metrics|health|webhooks; an agent serves the first two on one port.
o_port() {
	jq -Rer --arg what "$2" 'fromjson? | select(.msg | startswith("serving ") and contains($what)).port' "$tmp/$1.log" | tail -n 1
}

o_http() {
	local what=health

	[[ $2 != /metrics* ]] || what=metrics
	curl -s --noproxy '*' --max-time 5 "http://127.0.0.1:$(o_port "$1" "$what")$2"
}

o_ready() {
	curl -sf --noproxy '*' --max-time 5 "http://127.0.0.1:$(o_port "$1" health)/readyz"
}

o_leads() {
	[[ $(o_metric "$1" orbweaver_leader) == 1 ]]
}

# Without an operator nothing that follows makes sense; then its last words are shown.
o_wait_ready() {
	t_wait 30 "$1 is ready" o_ready "$1"
	((t_failed == 0)) || o_ready "$1" >/dev/null || tail -n 40 "$tmp/$1.log"
	o_ready "$1" >/dev/null || t_need
}

o_error_lines() {
	jq -Rn '[inputs | fromjson? | select(.level == "error")] | length' "$tmp/$1.log"
}

o_now() {
	date -u +%FT%T.%6NZ
}

# Sum of a metric's values over its labels; $3, if given, is part of the labels.
o_metric() {
	o_http "$1" /metrics | awk -v name="$2" -v labels="${3:-}" \
		'($1 == name || index($1, name "{") == 1) && index($0, labels) { sum += $NF } END { printf "%d\n", sum }'
}

o_logged() {
	jq -Rn -e "[inputs | fromjson? | select($2)] | length > 0" "$tmp/$1.log" >/dev/null || {
		tail -n 5 "$tmp/$1.log"
		return 1
	}
}

# CPU time in ms, user and system, all threads.
o_cpu_ms() {
	local fields

	read -r -a fields < <(sed 's/.*) //' "/proc/${o_pids[$1]}/stat")
	echo $(((fields[11] + fields[12]) * 1000 / $(getconf CLK_TCK)))
}

# --- what the cluster says ----------------------------------------------------------------------------------------

o_objects() {
	k get "nodes,namespaces,sriovnetworknodepolicies.sriovnetwork.openshift.io,sriovnetworknodestates.sriovnetwork.openshift.io,$(
	)sriovnetworkpoolconfigs.sriovnetwork.openshift.io,sriovnetworks.sriovnetwork.openshift.io,$(
	)sriovibnetworks.sriovnetwork.openshift.io,ovsnetworks.sriovnetwork.openshift.io,$(
	)spiderippools.spiderpool.spidernet.io,$(
	)spiderreservedips.spiderpool.spidernet.io,spidermultusconfigs.spiderpool.spidernet.io,$(
	)network-attachment-definitions.k8s.cni.cncf.io" -A -o json
}

o_rest() {
	o_objects >"$tmp/objects.json" && "$o_programs/tests/integration/pending" "$tmp/objects.json" "$POD_NAMESPACE" "$@"
}

# o_nad NAMESPACE NAME: its configuration as sorted JSON.
o_nad() {
	o_curl GET "$nads/namespaces/$1/network-attachment-definitions/$2" | jq -ecS '.spec.config | fromjson'
}

o_nad_is() {
	[[ $(o_nad "$1" "$2") == "$3" ]]
}

o_nad_gone() {
	local code

	code=$(curl -s --noproxy '*' --cacert "$o_dir/pki/ca.crt" -H "Authorization: Bearer $(<"$o_dir/pki/token")" \
		-o /dev/null -w '%{http_code}' "$o_api$nads/namespaces/$1/network-attachment-definitions/$2")
	[[ $code == 404 ]]
}

# o_condition PATH STATUS REASON [TYPE]: the condition is that, for the object's current generation.
o_condition() {
	o_curl GET "$1" | jq -e --arg status "$2" --arg reason "$3" --arg type "${4:-Ready}" '.metadata.generation as $now |
		.status.conditions // [] | map(select(.type == $type)) | first | . as $c |
		if .status == $status and .reason == $reason and .observedGeneration == $now then . else ($c | debug | false) end'
}

# --- the audit log ------------------------------------------------------------------------------------------------

# Writes that succeeded, as {user, verb, kind, sub, key, time}. Reads of our own accounts are in the log, too.
o_audit() {
	jq -c 'select(.responseStatus.code < 300 and (.verb | IN("get", "list", "watch") | not)) | { user: .user.username, verb,
		kind: .objectRef.resource, sub: (.objectRef.subresource // ""),
		key: ([.objectRef.namespace, .objectRef.name] | map(select(.)) | join("/")), time: .stageTimestamp }' "$(hack/cluster audit "$o_cluster")"
}

o_writes() {
	o_audit | jq -s "map(select($1)) | length"
}

o_still() {
	local since

	since=$(date -u -d "$1 seconds ago" +%FT%T.%6NZ)
	[[ $(o_writes ".time >= \"$since\" and ($2)") == 0 ]]
}

# Watch a collection from now on, one line per event: o_watch NAME PATH [HEADER]. NAME is that of the collection in the audit log.
o_watch() {
	local version

	version=$(o_curl GET "$2?limit=1" | jq -r .metadata.resourceVersion)
	o_spawn "watch-$1" o_watch_from "$version" "$tmp/watch-$1.out" "$2" "${3:-Accept: application/json}"
}

# A busy server drops watchers that are slow; then on from where it was.
o_watch_from() {
	local version=$1 file=$2 path=$3 header=$4

	while :; do
		setpriv --pdeathsig KILL curl -sfN --noproxy '*' --cacert "$o_dir/pki/ca.crt" -H "$header" \
			-H "Authorization: Bearer $(<"$o_dir/pki/token")" \
			"$o_api$path?watch=1&timeoutSeconds=7200&resourceVersion=$version" || sleep 0.1
		[[ ! -s $file ]] || version=$(tail -n 1 "$file" | jq -r .object.metadata.resourceVersion)
	done
}

# Events of all watches, counted: { "KIND KEY": number }.
o_count_events() {
	local file kind

	for file in "$tmp"/watch-*.out; do
		kind=${file##*/watch-}
		jq -c --arg kind "${kind%.out}" '"\($kind) \([.object.metadata.namespace, .object.metadata.name] |
			map(select(.)) | join("/"))"' "$file"
	done | jq -s 'group_by(.) | map({ key: .[0], value: length }) | from_entries' >"$tmp/events.json"
}

# A write that changes nothing gives no new version of the object, so watchers hear nothing of it: objects of the watched
# collections that were written more often than a watch has events.
o_writes_without_effect() {
	o_count_events && o_audit | jq -s --slurpfile events "$tmp/events.json" -r '
		($events[0] | keys | map(split(" ")[0]) | unique) as $watched | map(select(.kind | IN($watched[]))) |
		group_by([.kind, .key])[] | "\(.[0].kind) \(.[0].key)" as $key |
		select(length > ($events[0][$key] // 0)) | "\($key): \(length) writes, \($events[0][$key] // 0) versions"'
}

# Addresses that went from one pod to another before the first one was gone, in all that the API server ever said of pools and
# pods (o_watch spiderippools and pods): its revisions order both.
o_given_twice() {
	jq -rn --slurpfile pools "$tmp/watch-spiderippools.out" --slurpfile pods "$tmp/watch-pods.out" '
		($pods | map(select(.type == "DELETED").object.metadata | { key: .uid, value: (.resourceVersion | tonumber) }) |
			from_entries) as $ended |
		reduce ($pools[] | .object) as $pool ({ held: {}, bad: [] };
			$pool.metadata.name as $name | ($pool.metadata.resourceVersion | tonumber) as $revision |
			($pool.status.allocatedIPs // "{}" | fromjson | map_values(.podUid)) as $now | (.held[$name] // {}) as $before |
			.bad += [$now | to_entries[] | $before[.key] as $had |
				select($had and $had != .value and ($ended[$had] // infinite) > $revision) |
				"\($name) \(.key): of \($had), then of \(.value) at \($revision)"] |
			.held[$name] = $before + $now) | .bad[]'
}

# The kinds of KubeVirt, as far as somebody reads them.
o_kubevirt() {
	local kind

	for kind in VirtualMachineInstance VirtualMachine; do
		jq -nc --arg kind "$kind" '($kind | ascii_downcase) as $one | { apiVersion: "apiextensions.k8s.io/v1",
			kind: "CustomResourceDefinition", metadata: { name: "\($one)s.kubevirt.io" }, spec: { group: "kubevirt.io",
			scope: "Namespaced", names: { kind: $kind, plural: "\($one)s", singular: $one }, versions: [{ name: "v1",
			served: true, storage: true, schema: { openAPIV3Schema: { type: "object",
			"x-kubernetes-preserve-unknown-fields": true } } }] } }'
	done >"$tmp/kubevirt.json"
	t_ok "KubeVirt's kinds" hack/cluster crds "$o_cluster" "$tmp/kubevirt.json"
	t_wait 30 "KubeVirt's kinds are served" o_kubevirt_is_served
}

o_kubevirt_is_served() {
	o_curl GET /apis/kubevirt.io/v1/virtualmachines && o_curl GET /apis/kubevirt.io/v1/virtualmachineinstances
}

# The command succeeds and prints nothing.
o_says_nothing() {
	local said

	said=$("$@") || return
	echo "$said"
	[[ -z $said ]]
}
