#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The operator with the rights of manifests/, doing what calls for the rarer ones: it lets go of what earlier operators left
# behind, reads the networks of other programs, and sets owners where the API server asks whether it may.
# That no test needs other rights, and all tests together need each of them: tests/rights_test.sh.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/operator.sh"

configs=$spider/namespaces/default/spidermultusconfigs
reserved=$spider/spiderreservedips
pool_configs=$sriov/namespaces/default/sriovnetworkpoolconfigs
coordinator=$spider/spidercoordinators/default
states=$sriov/namespaces/$POD_NAMESPACE/sriovnetworknodestates
config_maps=/api/v1/namespaces/kube-system/configmaps
calico=/apis/crd.projectcalico.org/v1/ippools
cilium=/apis/cilium.io/v2alpha1/ciliumpodippools

# --- objects ------------------------------------------------------------------------------------------------------

# crd GROUP VERSION PLURAL KIND: a definition of somebody else, cluster-wide; what is in it is not looked at.
crd() {
	jq -n --arg group "$1" --arg version "$2" --arg plural "$3" --arg kind "$4" '{ apiVersion: "apiextensions.k8s.io/v1",
		kind: "CustomResourceDefinition", metadata: { name: "\($plural).\($group)" }, spec: { group: $group,
			names: { kind: $kind, plural: $plural, singular: ($kind | ascii_downcase) }, scope: "Cluster",
			versions: [ { name: $version, served: true, storage: true, schema: { openAPIV3Schema: {
				type: "object", "x-kubernetes-preserve-unknown-fields": true } } } ] } }' | k apply -f - >/dev/null
}

# object API_VERSION KIND NAME SPEC [FINALIZER]
object() {
	jq -nc --arg version "$1" --arg kind "$2" --arg name "$3" --argjson spec "$4" --arg finalizer "${5:-}" '{
		apiVersion: $version, kind: $kind, metadata: ({ name: $name } +
			if $finalizer == "" then {} else { finalizers: [ $finalizer ] } end), spec: $spec }'
}

config() {
	object spiderpool.spidernet.io/v2beta1 SpiderMultusConfig "$1" '{ "cniType": "macvlan", "macvlan": { "master": [ "eth1" ] } }'
}

config_map() {
	jq -nc --arg name "$1" --argjson data "$2" '{ apiVersion: "v1", kind: "ConfigMap", metadata: { name: $name }, data: $data }'
}

kubeadm() {
	config_map kubeadm-config "$(jq -nc --arg pods "$1" '{ ClusterConfiguration: ("kind: ClusterConfiguration\nnetworking:\n" +
		"  podSubnet: \($pods)\n  serviceSubnet: 10.96.0.0/12\n") }')"
}

coordinate() {
	o_curl PATCH "$coordinator" "{\"spec\":{\"podCIDRType\":\"$1\"}}" >/dev/null
}

# degraded STATUS TEXT: the coordinator's condition says that.
degraded() {
	o_curl GET "$coordinator" | jq -e --arg status "$1" --arg text "$2" '.metadata.generation as $now | .status.conditions[] |
		select(.type == "Degraded" and .observedGeneration == $now and .status == $status and (.message | contains($text)))' >/dev/null
}

networks_are() {
	local now

	now=$(o_curl GET "$coordinator" | jq -c '.metadata.generation as $now | .status | select(.observedGeneration == $now) |
		[ .overlayPodCIDR, .serviceCIDR ]')
	echo "$now"
	[[ $now == "$1" ]]
}

# --- leftovers ----------------------------------------------------------------------------------------------------

# leave PATH OBJECT: deleted, with a finalizer that nobody takes off any more.
leave() {
	local name

	name=$(jq -r .metadata.name <<<"$2")
	o_curl POST "$1" "$2" >/dev/null && o_curl DELETE "$1/$name" >/dev/null && o_curl GET "$1/$name" >/dev/null
}

leave_all() {
	local kind

	for kind in SriovNetwork SriovIBNetwork OVSNetwork; do
		leave "$sriov/namespaces/default/${kind,,}s" "$(object sriovnetwork.openshift.io/v1 "$kind" old '{ "resourceName": "x" }' \
			netattdef.finalizers.sriovnetwork.openshift.io)" || return
	done
	leave "$pool_configs" "$(object sriovnetwork.openshift.io/v1 SriovNetworkPoolConfig old '{}' \
		poolconfig.finalizers.sriovnetwork.openshift.io)" &&
		leave "$spider/spidercoordinators" "$(object spiderpool.spidernet.io/v2beta1 SpiderCoordinator old '{}' \
			spiderpool.spidernet.io)" &&
		leave "$spider/namespaces/default/spiderendpoints" "$(object spiderpool.spidernet.io/v2beta1 SpiderEndpoint old null \
			spiderpool.spidernet.io | jq -c 'del(.spec)')" &&
		leave "$spider/spiderippools" "$(object spiderpool.spidernet.io/v2beta1 SpiderIPPool old '{ "subnet": "10.6.0.0/16" }' \
			spiderpool.spidernet.io)"
}

left_over() {
	k get "sriovnetworks.sriovnetwork.openshift.io,sriovibnetworks.sriovnetwork.openshift.io,ovsnetworks.sriovnetwork.openshift.io,$(
	)sriovnetworkpoolconfigs.sriovnetwork.openshift.io,spidercoordinators.spiderpool.spidernet.io,$(
	)spiderendpoints.spiderpool.spidernet.io,spiderippools.spiderpool.spidernet.io" -A -o name
}

# The node went, and nobody was there to see it; what it was to have is kept for a while that is over now.
leave_node_state() {
	local state

	state=$(object sriovnetwork.openshift.io/v1 SriovNetworkNodeState gone '{}' | jq -c \
		'.metadata.annotations["sriovnetwork.openshift.io/keep-state-until"] = "2020-01-01T00:00:00Z"')
	o_curl POST "$states" "$state" >/dev/null
}

no_node_state() {
	[[ $(o_curl GET "$states" | jq '.items | length') == 0 ]]
}

# --- owners -------------------------------------------------------------------------------------------------------

without_right_to_own() {
	k get clusterrole orbweaver-operator -o json |
		jq 'del(.rules[] | select(.resources == ["spidermultusconfigs/finalizers"]))' | k replace -f - >/dev/null
}

# --- the run ------------------------------------------------------------------------------------------------------

o_begin rights --no-controllers --admission OwnerReferencesPermissionEnforcement
o_own_user
crd crd.projectcalico.org v1 ippools IPPool
crd cilium.io v2alpha1 ciliumpodippools CiliumPodIPPool
crd sriovnetwork.openshift.io v1 sriovoperatorconfigs SriovOperatorConfig
crd spiderpool.spidernet.io v2beta1 spidersubnets SpiderSubnet
t_wait 30 "Calico's and Cilium's definitions are served" eval "o_curl GET $calico && o_curl GET $cilium"

echo "# what earlier operators left"
t_ok "objects that cannot go, as nobody takes their finalizers off" leave_all
t_eq "of seven kinds" 7 "$(left_over | wc -l)"
t_ok "and the NodeState of a node that is gone" leave_node_state
o_start op
o_wait_ready op
t_wait 20 "the operator lets all of them go" o_says_nothing left_over
t_wait 20 "the NodeState is deleted" no_node_state

echo "# kinds that are rare"
o_curl POST "$reserved" "$(object spiderpool.spidernet.io/v2beta1 SpiderReservedIP gateways \
	'{ "ips": [ "10.6.0.1-10.6.0.9" ] }')" >/dev/null
t_wait 10 "addresses are reserved" o_condition "$reserved/gateways" True Reserved
o_curl PATCH "$reserved/gateways" '{"spec":{"ips":[]}}' >/dev/null
t_wait 10 "and it is said when there are none" o_condition "$reserved/gateways" False NoAddresses
o_curl POST "$pool_configs" "$(object sriovnetwork.openshift.io/v1 SriovNetworkPoolConfig all '{ "nodeSelector": { "matchLabels":
	{ "kubernetes.io/os": "linux" } }, "rdmaMode": "exclusive" }')" >/dev/null
t_wait 10 "a pool of nodes without policies says that it waits for one" o_condition "$pool_configs/all" False NoNode

echo "# labels of nodes"
nodes=/api/v1/nodes
rails_are() {
	o_curl PATCH "$states/labelled/status" "{\"status\":{\"rails\":{\"count\":$1}}}" >/dev/null
}
labelled() {
	o_curl GET "$nodes/labelled" | jq -e --arg count "$1" '.metadata.labels["rdma.orbweaver.io/rail.count"] == $count' >/dev/null
}
may_only_drain() {
	k auth can-i patch nodes --as "$o_username" >/dev/null &&
		[[ $(k auth can-i patch nodes --subresource status --as "$o_username") == no ]]
}
k delete clusterrolebinding orbweaver-operator-drain >/dev/null
o_curl POST "$nodes" '{"apiVersion":"v1","kind":"Node","metadata":{"name":"labelled"}}' >/dev/null
o_curl POST "$states" "$(object sriovnetwork.openshift.io/v1 SriovNetworkNodeState labelled '{}')" >/dev/null
rails_are 8
t_wait 30 "a node is labelled without the right to drain it" labelled 8
o_rights
# Links: by the same right, and taints by that of drains. (After a refusal the operator would pause.)
# links_are VERDICT REASON: as an agent says.
links_are() {
	o_curl PATCH "$states/labelled/status" "{\"status\":{\"linkHealth\":{\"bootID\":\"b\",\"ports\":[{\"pciAddress\":\"0000:3b:00.0\",
		\"verdict\":\"$1\",\"reason\":\"$2\",\"message\":\"m\"}]}}}" >/dev/null
}
# links_said STATUS: and what the kubelet said is still there.
links_said() {
	o_curl GET "$nodes/labelled" | jq -e --arg status "$1" '.status.conditions | length == 2 and
		any(.type == "RdmaNetworkReady" and .status == $status) and any(.type == "DiskPressure")' >/dev/null
}
tainted() {
	o_curl GET "$nodes/labelled" | jq -e '[.spec.taints[]? | select(.key != "node.kubernetes.io/not-ready") | "\(.key):\(.effect)"] ==
		["orbweaver.io/rdma-degraded:NoSchedule"]' >/dev/null
}
untainted() {
	! tainted
}
o_curl PATCH "$nodes/labelled/status" '{"status":{"conditions":[{"type":"DiskPressure","status":"False"}]}}' >/dev/null
links_are healthy LinkHealthy
t_wait 30 "a node says that its links are good, beside what its kubelet says" links_said True
links_are failed LinkDown
t_wait 30 "and that one is not" links_said False
o_curl PATCH "$nodes/labelled" '{"metadata":{"labels":{"kubernetes.io/os":"linux"}}}' >/dev/null
t_fails "no pool asks for a taint" tainted
o_curl PATCH "$pool_configs/all" '{"metadata":{"annotations":{"orbweaver.io/taint-degraded":"1"}}}' >/dev/null
t_wait 30 "the pool does, and the node is tainted" tainted
links_are healthy LinkHealthy
t_wait 30 "a link that is good again takes it back" untainted
t_wait 30 "and the condition" links_said True
k delete clusterrolebinding orbweaver-operator-node-labels >/dev/null
# The server learns of it after a moment.
t_wait 10 "the right to label is taken away, the one to drain is back" may_only_drain
rails_are 7
t_wait 30 "without the right to label nodes the log says so" o_logged op '.level == "error" and .kind == "nodes" and
	(.error | contains("nodes/status"))'
t_fails "and the right to drain them does not do" labelled 7
o_rights
o_curl DELETE "$states/labelled" >/dev/null
o_curl DELETE "$nodes/labelled" >/dev/null

echo "# networks of other programs"
o_coordinator '{"podCIDRType": "calico"}' >/dev/null
t_wait 10 "without any a coordinator is not Ready" o_condition "$coordinator" False NoPodCIDR
o_curl POST "$calico" "$(object crd.projectcalico.org/v1 IPPool first '{ "cidr": "10.244.0.0/16" }')" >/dev/null
t_wait 10 "a pool of Calico is found" networks_are '[["10.244.0.0/16"],[]]'
t_wait 10 "nobody tells the network of services, but an address of it is known" degraded True "it is the one with 10.96.0.1"
o_curl PATCH "$coordinator" '{"spec":{"hijackCIDR":["10.96.0.0/16"]}}' >/dev/null
t_wait 10 "who does as it says has nothing said any more" degraded False "nothing is wrong"
o_curl PATCH "$coordinator" '{"spec":{"hijackCIDR":[]}}' >/dev/null
t_wait 10 "and again without" degraded True "no network of services"
o_curl POST "$config_maps" "$(kubeadm 10.1.0.0/16)" >/dev/null
t_wait 10 "kubeadm's settings are found" networks_are '[["10.244.0.0/16"],["10.96.0.0/12"]]'
coordinate cluster
t_wait 10 "their network of pods, too" networks_are '[["10.1.0.0/16"],["10.96.0.0/12"]]'
o_curl PATCH "$config_maps/kubeadm-config" "$(kubeadm 10.2.0.0/16)" >/dev/null
t_wait 10 "and what becomes of it" networks_are '[["10.2.0.0/16"],["10.96.0.0/12"]]'
coordinate cilium
t_wait 10 "Cilium's settings are missed" o_condition "$coordinator" False NoCiliumConfig
o_curl POST "$config_maps" "$(config_map cilium-config '{ "ipam": "multi-pool" }')" >/dev/null
t_wait 10 "they come, but no pool" o_condition "$coordinator" False NoPodCIDR
o_curl POST "$cilium" "$(object cilium.io/v2alpha1 CiliumPodIPPool default \
	'{ "ipv4": { "cidrs": [ "10.10.0.0/16" ] } }')" >/dev/null
t_wait 10 "its pool is found" networks_are '[["10.10.0.0/16"],["10.96.0.0/12"]]'
o_curl DELETE "$config_maps/cilium-config" >/dev/null
t_wait 10 "Cilium's settings are missed again" o_condition "$coordinator" False NoCiliumConfig
counted() {
	k get events -A -o json | jq -e '[.items[] | select(.reason == "NoCiliumConfig").count] == [2]'
}
t_wait 10 "which is the same event, counted" counted

echo "# an old stack beside us"
finds() {
	o_metric op orbweaver_findings "{kind=\"$1\",reason=\"$2\"}"
}
found() {
	[[ $(finds "$1" "$2") == "$3" ]] && k get events -A -o json | jq -e --arg reason "$2" --arg kind "$4" --arg text "$5" '
		any(.items[]; .reason == $reason and .involvedObject.kind == $kind and (.message | contains($text)))'
}
daemon_set() {
	jq -n --arg name "$1" '{ apiVersion: "apps/v1", kind: "DaemonSet", metadata: { name: $name, namespace: "kube-system" },
		spec: { selector: { matchLabels: { a: "b" } }, template: { metadata: { labels: { a: "b" } },
			spec: { containers: [ { name: "c", image: "c" } ] } } } }'
}
daemon=/apis/apps/v1/namespaces/kube-system/daemonsets
o_curl POST "$daemon" "$(daemon_set sriov-network-config-daemon)" >/dev/null
o_curl PATCH "$daemon/sriov-network-config-daemon/status" '{"status":{"desiredNumberScheduled":3}}' >/dev/null
t_wait 10 "a config daemon that runs is found" \
	found daemonsets/sriov-network-config-daemon OldProgramRuns 1 DaemonSet "delete this DaemonSet"
o_curl POST "$config_maps" "$(config_map spiderpool-rdma-shared-device-plugin '{}')" >/dev/null
t_wait 10 "and a ConfigMap of shared devices that nobody reads" \
	found configmaps/spiderpool-rdma-shared-device-plugin NotRead 1 ConfigMap "in namespace $POD_NAMESPACE"
# A guide: "update the configuration by updating the podResourceInject field in configMap: spiderpool-config".
o_curl POST "$config_maps" "$(config_map spiderpool-config '{}')" >/dev/null
t_wait 10 "and settings under a name that a guide has" \
	found configmaps/spiderpool-config NotRead 1 ConfigMap "in the ConfigMap spiderpool-conf in namespace $POD_NAMESPACE"
k create namespace device-manager >/dev/null
k apply -f crds/samples/smarter-device-manager.yaml >/dev/null
t_wait 10 "and device files where an article has them" \
	found configmaps/smarter-device-manager NotRead 1 ConfigMap "in namespace $POD_NAMESPACE"
o_curl POST /apis/sriovnetwork.openshift.io/v1/sriovoperatorconfigs "$(object sriovnetwork.openshift.io/v1 SriovOperatorConfig \
	default '{}')" >/dev/null
t_wait 90 "and a SriovOperatorConfig" found sriovoperatorconfigs NotRead 1 SriovOperatorConfig "--cascade=orphan"
o_curl DELETE "$daemon/sriov-network-config-daemon" >/dev/null
gone() {
	[[ $(finds daemonsets/sriov-network-config-daemon OldProgramRuns) == 0 ]]
}
t_wait 10 "one that went is found no more" gone
t_ok "each is in the log once" jq -es '[.[] | select(.msg == "found something that needs somebody") | .kind] |
	length == 5 and length == (unique | length)' "$tmp/op.log"

echo "# owners"
# The server learns of new definitions every 30 s.
o_curl POST "$configs" "$(config owned)" >/dev/null
t_wait 90 "an owner is set where the API server asks for the right to do that" o_condition "$configs/owned" True Rendered
without_right_to_own
o_curl POST "$configs" "$(config refused)" >/dev/null
t_wait 20 "without that right the log says so" o_logged op '.level == "error" and (.error | contains("blockOwnerDeletion"))'
t_fails "and the config is not Ready" o_condition "$configs/refused" True Rendered
o_rights
t_wait 90 "with it again it is" o_condition "$configs/refused" True Rendered
t_wait 10 "nothing is left to do" o_rest

echo "# metrics"
mkdir "$tmp/certificate"
o_start scraped --metrics-secure --metrics-cert-path "$tmp/certificate"
o_wait_ready scraped

# scraped_with HEADER...: the status.
scraped_with() {
	curl -sk -o "$tmp/metrics" -w '%{http_code}' --noproxy '*' --max-time 10 "${@/#/-H}" \
		"https://localhost:$(o_port scraped metrics)/metrics"
}

scrapes() {
	[[ $(scraped_with "Authorization: Bearer $1") == "$2" ]]
}

token_of() {
	k create serviceaccount "$1" >/dev/null 2>&1 || true
	o_curl POST "/api/v1/namespaces/default/serviceaccounts/$1/token" \
		'{ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {} }' | jq -r .status.token
}

t_eq "nobody gets metrics without a token" 401 "$(scraped_with)"
t_eq "nor while the operator may not ask" 503 "$(scraped_with "Authorization: Bearer $(token_of reader)")"
k apply -f manifests/overlays/metrics-secure/rbac.yaml >/dev/null
t_wait 30 "an unknown token is refused" scrapes no-token-at-all 401
t_wait 30 "an account without the right is, too" scrapes "$(token_of stranger)" 403
k create clusterrolebinding reader --clusterrole orbweaver-metrics-reader --serviceaccount default:reader >/dev/null
reader=$(token_of reader)
t_wait 30 "the one with the right is let in" scrapes "$reader" 200
t_ok "and gets metrics" grep -q '^orbweaver_leader 0$' "$tmp/metrics"

# certificate_for NAME: one that it is its own authority for, in place as a Secret is swapped.
certificate_for() {
	openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj "/CN=$1" -addext "subjectAltName=DNS:$1" \
		-keyout "$tmp/new.key" -out "$tmp/new.crt" 2>/dev/null
	mv "$tmp/new.key" "$tmp/certificate/tls.key"
	mv "$tmp/new.crt" "$tmp/certificate/tls.crt"
}

# scraped_as NAME: somebody who checks the certificate.
scraped_as() {
	curl -sf -o "$tmp/metrics" --noproxy '*' --max-time 10 --cacert "$tmp/certificate/tls.crt" \
		-H "Authorization: Bearer $reader" --connect-to "$1:443:localhost:$(o_port scraped metrics)" "https://$1/metrics"
}

certificate_for one.example
t_wait 30 "the user's certificate is used once it is there" scraped_as one.example
certificate_for two.example
t_wait 30 "and the next one" scraped_as two.example
cp "$tmp/certificate/tls.crt" "$tmp/good.crt"
echo nonsense >"$tmp/certificate/tls.crt"
t_wait 30 "one that is none is said" o_logged scraped '.msg == "cannot use the certificate for metrics, keeping the last one"'
mv "$tmp/good.crt" "$tmp/certificate/tls.crt"
t_ok "the last one stays meanwhile" scraped_as two.example
t_wait 30 "and that it is good again" o_logged scraped '.msg == "using the certificate for metrics again"'
t_ok "no token is in the log" test "$(grep -cF -e "$reader" -e no-token-at-all "$tmp/scraped.log")" = 0
o_end scraped
o_end op
t_done
