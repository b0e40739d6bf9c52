#!/bin/bash
# What gets deployed: overlays and chart render, say the same, keep to the Pod Security levels that they claim, and an API
# server takes them, twice, and lets go of them. Values of the guides' `helm install` lines become what the guides show.
#
# shellcheck disable=SC2317 # functions are called through t_ok
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# shellcheck source=tests/lib.sh
. tests/lib.sh

cache=${ORBWEAVER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/orbweaver}
tmp=$(mktemp -d)
export ORBWEAVER_RUN=$tmp/run
namespace=orbweaver-system

clean_up() {
	hack/cluster down m >/dev/null 2>&1 || true
	rm -rf "$tmp"
}
trap clean_up EXIT

k() {
	"$ORBWEAVER_RUN/m/kubectl" "$@"
}

build_helm_render() {
	PATH=/usr/lib/go-1.19/bin:$PATH GO111MODULE=off GOFLAGS="" GOPATH=/usr/share/gocode GOCACHE=$cache/go-build \
		CGO_ENABLED=0 go build -o "$tmp/helm-render" tests/support/helm_render.go
}

# overlay NAME...: what is applied side by side, one JSON document per line.
overlay() {
	local name

	for name; do
		k kustomize "manifests/$name" | "$tmp/helm-render" -
	done
}

chart() {
	"$tmp/helm-render" manifests/chart "$@"
}

# Documents in an order of their own, without what is installed another way by the other.
comparable() {
	jq -sS 'map(select(.kind as $k | ["CustomResourceDefinition", "Namespace", "ConfigMap", "SpiderCoordinator"] | index($k) | not))
		| sort_by(.kind, .metadata.namespace, .metadata.name)'
}

# says_the_same "OVERLAY..." CHART-ARGUMENT...
says_the_same() {
	local names

	read -ra names <<<"$1"
	diff <(overlay "${names[@]}" | comparable) <(shift && chart "$@" | comparable)
}

says_the_same_dashboards() {
	diff <(overlay overlays/dashboards | jq -S '.data' | sort) \
		<(chart "$namespace" policy/v1 --set=grafanaDashboard.install=true | jq -S 'select(.metadata.labels.grafana_dashboard).data' | sort)
}

says_the_same_to_prometheus() {
	diff <(overlay overlays/monitoring | jq -sS 'map({(.kind): .spec}) | add') \
		<(chart "$namespace" policy/v1 --set=spiderpoolController.prometheus.serviceMonitor.install=true \
			--set=spiderpoolController.prometheus.prometheusRule.install=true --set=spiderpoolAgent.prometheus.serviceMonitor.install=true |
			jq -sS 'map(select(.apiVersion == "monitoring.coreos.com/v1") | {(.kind): .spec}) | add')
}

# Of all of the agent's processes the supervisor has most.
supervisors_capabilities() {
	sed -n '/supervisor_needs\[\] = {/,/};/p' nodeagent/hostd/privileges.c | grep -o 'CAP_[A-Z_]*' | sed 's/^CAP_//' | sort
}

# What the level "restricted" asks of a pod (kubernetes.io: Pod Security Standards), for the pods of Deployments.
restricted='select(.kind == "Deployment").spec.template.spec |
	([.hostNetwork, .hostPID, .hostIPC] | any | not) and
	([.volumes[]? | select(.hostPath)] == []) and
	.securityContext.runAsNonRoot and .securityContext.runAsUser != 0 and
	(.securityContext.seccompProfile.type | . == "RuntimeDefault" or . == "Localhost") and
	all(.containers[], .initContainers[]?; .securityContext |
		(.privileged | not) and .allowPrivilegeEscalation == false and .readOnlyRootFilesystem and
		.capabilities.drop == ["ALL"] and (.capabilities.add // []) == [])'

is_restricted() {
	overlay "$1" | jq -es "map($restricted) | length == 1 and all"
}

applied() {
	k apply -k manifests/overlays/kubernetes-1.20
}

# A second time: nothing to change.
all_unchanged() {
	! applied | grep -v ' unchanged$'
}

nothing_left() {
	[[ -z $(k get all,roles,rolebindings,networkpolicies,pdb -n "$namespace" -o name 2>/dev/null)$(
		k get crd,clusterroles,clusterrolebindings -l app.kubernetes.io/part-of=orbweaver -o name
	) ]]
}

hack/deps cluster chart
t_ok "the chart can be rendered" build_helm_render
t_ok "a control plane" hack/cluster up m
t_need

for name in . overlays/profile-delegate overlays/profile-devices overlays/kubernetes-1.20 overlays/single-node overlays/webhook overlays/flow-control overlays/metrics-secure overlays/monitoring \
	overlays/dashboards overlays/node-tokens; do
	t_ok "manifests/$name renders" overlay "$name"
done
for name in . overlays/single-node; do
	t_ok "the operator of manifests/$name is for Pod Security level restricted" is_restricted "$name"
done
t_eq "nothing is privileged" "" "$(overlay . |
	jq -r 'select(.spec.template.spec.containers[]?.securityContext.privileged == true).metadata.name')"
t_eq "the agent has the capabilities that its processes keep, and no other" "$(supervisors_capabilities)" "$(overlay . |
	jq -r 'select(.kind == "DaemonSet").spec.template.spec.containers[].securityContext.capabilities |
		select(.drop == ["ALL"]).add[]' | sort)"
t_eq "all is in one namespace, or in none" "$namespace" "$(overlay . overlays/webhook |
	jq -r '.metadata.namespace // empty' | sort -u | paste -sd ' ')"
t_eq "tokens are bound for the account that agents have" \
	"request.userInfo.username == \"$(overlay . | jq -r 'select(.kind == "DaemonSet") |
		"system:serviceaccount:\(.metadata.namespace):\(.spec.template.spec.serviceAccountName)"')\"" \
	"$(overlay overlays/node-tokens | jq -r '.spec.matchConditions[]?.expression')"
t_eq "every image can be given another name in one place" 2 "$(overlay . |
	jq -r '.spec.template.spec.containers[]?.image' | sort -u | wc -l)"
t_eq "the program comes without definitions: removing it keeps the users' objects" "" \
	"$(overlay . | jq -r 'select(.kind == "CustomResourceDefinition").metadata.name')"
t_eq "those of crds/ are installed and removed apart, all but that of others" \
	"$(sed -n 's/^  name: \([a-z.-]*\.[a-z.]*\)$/\1/p' crds/*.yaml | sort)" \
	"$(k kustomize crds | "$tmp/helm-render" - | jq -r .metadata.name | sort)"

t_ok "beside images is what installs them" env BUILD="$tmp/build" hack/images manifests
version=$(git describe --always --dirty --tags)
t_eq "by their version" "$(printf "localhost/orbweaver-%s:${version//[^A-Za-z0-9_.-]/_}\n" agent operator)" \
	"$(k kustomize "$tmp/build/images" | "$tmp/helm-render" - | jq -r '.spec.template.spec.containers[]?.image' | sort)"
same_but_images() {
	diff <(overlay . | sed 's/:latest"/:V"/') <(k kustomize "$tmp/build/images" | "$tmp/helm-render" - |
		sed "s/:${version//[^A-Za-z0-9_.-]/_}\"/:V\"/")
}
t_ok "the rest is the default overlay's" same_but_images

t_ok "the chart says the same as the default overlay" says_the_same . "$namespace" policy/v1
for name in delegate devices; do
	t_ok "with profile $name the same as that overlay" says_the_same "overlays/profile-$name" "$namespace" policy/v1 "--set=profile=$name"
done
t_eq "the profile of each overlay, and the memory that it needs" "auto 256Mi,delegate 256Mi,devices 128Mi" "$(
	for name in . overlays/profile-delegate overlays/profile-devices; do
		overlay "$name" | jq -r 'select(.kind == "DaemonSet").spec.template.spec.containers[0] | select(.args | index("--profile=$(PROFILE)")) |
			"\(.env[] | select(.name == "PROFILE").value) \(.resources.limits.memory)"'
	done | paste -sd ,)"
t_eq "the agent sees mounts of the host end, in each folder of it" "" "$({ overlay . && chart "$namespace" policy/v1; } |
	jq -r 'select(.kind == "DaemonSet").spec.template.spec | [.volumes[] | select(.hostPath).name] as $host | .containers[].volumeMounts[] |
		select((.name | IN($host[])) and .mountPropagation != "HostToContainer").mountPath')"
t_ok "on 1.20 the same as that overlay" says_the_same overlays/kubernetes-1.20 "$namespace" policy/v1beta1 --set=spiderpoolAgent.surge=false
t_ok "on 1.20 with webhooks too" says_the_same "overlays/kubernetes-1.20 overlays/webhook" "$namespace" policy/v1beta1 \
	--set=spiderpoolAgent.surge=false --set=spiderpoolController.webhook.enabled=true
t_eq "the operator's settings are where the Deployment looks for them" "policy-namespaces webhook-addr" "$(overlay . | jq -r '
	select(.kind == "Deployment").spec.template.spec.containers[].env[].valueFrom.configMapKeyRef |
	select(.name == "orbweaver-operator" and .optional).key' | sort | paste -sd ' ')"
t_eq "and the overlay with webhooks sets them" orbweaver-operator "$(overlay overlays/webhook |
	jq -r 'select(.data["webhook-addr"] == ":9443").metadata.name')"
t_eq "flow control is about our accounts, each of them" "$(overlay . | jq -r 'select(.kind == "ServiceAccount").metadata |
	"\(.namespace)/\(.name)"' | sort)" "$(overlay overlays/flow-control | jq -r 'select(.kind == "FlowSchema").spec.rules[].subjects[] |
	.serviceAccount | "\(.namespace)/\(.name)"' | sort -u)"
t_eq "so does the one with secure metrics" "orbweaver-operator-metrics secure" "$(overlay . overlays/metrics-secure | jq -rs '
	([ .[] | select(.kind == "ConfigMap" and .data.secure == "true").metadata.name ] | first) as $name | .[] |
	select(.kind == "Deployment").spec.template.spec.containers[].env[].valueFrom.configMapKeyRef |
	select(.name == $name and .optional) | "\(.name) \(.key)"')"
t_ok "the chart with secure metrics has what that overlay has" says_the_same ". overlays/metrics-secure" "$namespace" policy/v1 \
	--set=spiderpoolController.prometheus.secure=true
t_ok "with webhooks the same as that overlay" says_the_same ". overlays/webhook" "$namespace" policy/v1 --set=spiderpoolController.webhook.enabled=true
t_eq "each dashboard is a ConfigMap with the label that Grafana's sidecar looks for" \
	"$(cd manifests/overlays/dashboards && for f in *.json; do jq -c . "$f"; done | sort)" \
	"$(overlay overlays/dashboards | jq -r 'select(.metadata.labels.grafana_dashboard == "1").data[]' | jq -c . | sort)"
t_ok "the chart with dashboards has the same ones" says_the_same_dashboards
t_ok "what Prometheus is told is the same, too" says_the_same_to_prometheus
t_eq "another namespace is taken everywhere" elsewhere \
	"$(chart elsewhere policy/v1 | jq -r '.metadata.namespace // empty, (.subjects[]?.namespace)' | sort -u | paste -sd ' ')"

# seeds: RoCE with macvlan.
t_eq "the guide's values become the shared device plugin's configuration" \
	'{"configList":[{"rdmaHcaMax":500,"resourceName":"hca_shared_devices","resourcePrefix":"spidernet.io","selectors":{"deviceIDs":["1017"],"vendors":["15b3"]}}],"periodicUpdateInterval":300}' \
	"$(chart "$namespace" policy/v1 --set=rdma.rdmaSharedDevicePlugin.install=true \
		--set=rdma.rdmaSharedDevicePlugin.deviceConfig.resourcePrefix=spidernet.io \
		--set=rdma.rdmaSharedDevicePlugin.deviceConfig.resourceName=hca_shared_devices \
		--set=rdma.rdmaSharedDevicePlugin.deviceConfig.rdmaHcaMax=500 \
		--set=rdma.rdmaSharedDevicePlugin.deviceConfig.vendors=15b3 \
		--set=rdma.rdmaSharedDevicePlugin.deviceConfig.deviceIDs=1017 |
		jq -r 'select(.metadata.name == "spiderpool-rdma-shared-device-plugin").data["config.json"]' | jq -cS .)"
t_eq "global.imageRegistryOverride" "mirror.example/orbweaver-agent:latest mirror.example/orbweaver-operator:latest" \
	"$(chart "$namespace" policy/v1 --set=global.imageRegistryOverride=mirror.example |
		jq -r '.spec.template.spec.containers[]?.image' | sort | paste -sd ' ')"
t_ok "podResourceInject.enabled switches the webhooks on" eval "chart $namespace policy/v1 \
	--set=spiderpoolController.podResourceInject.enabled=true | jq -es 'any(.[]; .metadata.name == \"orbweaver-webhook\") and
		any(.[]; .data[\"conf.yml\"] // \"\" | test(\"enabled: true\"))'"
t_eq "VFs on the node's own NIC are for those who ask for it" "0 1" "$(chart "$namespace" policy/v1 | grep -c allow-primary-nic || true) $(
	chart "$namespace" policy/v1 --set=spiderpoolAgent.allowPrimaryNic=true | grep -c -- --allow-primary-nic)"
t_eq "and firmware, too" "0 1" "$(chart "$namespace" policy/v1 | grep -c allow-firmware || true) $(
	chart "$namespace" policy/v1 --set=spiderpoolAgent.allowFirmware=true | grep -c -- --allow-firmware)"
t_eq "which counters are read is the agent's" "--rdma-metrics=all --rdma-metrics-exclude=mlx5_bond_*" "$(chart "$namespace" policy/v1 \
	--set=spiderpoolAgent.prometheus.rdmaMetrics=all --set='spiderpoolAgent.prometheus.rdmaMetricsExclude=mlx5_bond_*' |
	jq -r '.spec.template.spec.containers[]?.args[]?' | grep -e '--rdma-metrics' | paste -sd ' ')"
t_eq "sriov.resourcePrefix goes to operator and agent" 2 "$(chart "$namespace" policy/v1 --set=sriov.resourcePrefix=example.com |
	jq -r '.spec.template.spec.containers[]?.args[]?' | grep -cx -- '--resource-prefix=example.com')"

t_ok "an API server takes them" applied
t_need
t_ok "and the definitions" k apply -k crds
t_wait 20 "they are established" k wait --for condition=Established --timeout 1s crd -l app.kubernetes.io/part-of=orbweaver
t_ok "a second time there is nothing to change" all_unchanged
t_ok "they can be taken away" k delete -k manifests/overlays/kubernetes-1.20 --timeout=60s
t_ok "the definitions stay until they are taken away too" k delete -k crds --timeout=60s
t_wait 30 "and nothing is left" nothing_left
t_done
