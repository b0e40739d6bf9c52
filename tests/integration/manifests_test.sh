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
	hack/cluster kubectl m "$@"
}

build_helm_render() {
	PATH=/usr/lib/go-1.19/bin:$PATH GO111MODULE=off GOFLAGS="" GOPATH=/usr/share/gocode GOCACHE=$cache/go-build \
		CGO_ENABLED=0 go build -o "$tmp/helm-render" tests/support/helm_render.go
}

# An overlay, one JSON document per line.
overlay() {
	k kustomize "manifests/$1" | "$tmp/helm-render" -
}

chart() {
	"$tmp/helm-render" manifests/chart "$@"
}

# Documents in an order of their own, without what is installed another way by the other.
comparable() {
	jq -sS 'map(select(.kind as $k | ["CustomResourceDefinition", "Namespace", "ConfigMap", "SpiderCoordinator"] | index($k) | not))
		| sort_by(.kind, .metadata.namespace, .metadata.name)'
}

says_the_same() {
	diff <(overlay "$1" | comparable) <(shift && chart "$@" | comparable)
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

for name in . overlays/kubernetes-1.20 overlays/single-node overlays/webhook overlays/monitoring; do
	t_ok "manifests/$name renders" overlay "$name"
done
for name in . overlays/webhook overlays/single-node; do
	t_ok "the operator of manifests/$name is for Pod Security level restricted" is_restricted "$name"
done
t_eq "only the agent is privileged" orbweaver-agent "$(overlay . |
	jq -r 'select(.spec.template.spec.containers[]?.securityContext.privileged == true).metadata.name')"
t_eq "all is in one namespace, or in none" "$namespace" "$(overlay overlays/webhook |
	jq -r '.metadata.namespace // empty' | sort -u | paste -sd ' ')"
t_eq "every image can be given another name in one place" 2 "$(overlay . |
	jq -r '.spec.template.spec.containers[]?.image' | sort -u | wc -l)"
t_eq "all definitions in crds/ are installed" "$(grep -l '^kind: CustomResourceDefinition' crds/*.yaml | wc -l)" \
	"$(overlay . | jq -r 'select(.kind == "CustomResourceDefinition").kind' | wc -l)"

t_ok "the chart says the same as the default overlay" says_the_same . "$namespace" policy/v1
t_ok "on 1.20 the same as that overlay" says_the_same overlays/kubernetes-1.20 "$namespace" policy/v1beta1 --set=spiderpoolAgent.surge=false
t_ok "with webhooks the same as that overlay" says_the_same overlays/webhook "$namespace" policy/v1 --set=spiderpoolController.webhook.enabled=true
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
t_eq "sriov.resourcePrefix goes to operator and agent" 2 "$(chart "$namespace" policy/v1 --set=sriov.resourcePrefix=example.com |
	jq -r '.spec.template.spec.containers[]?.args[]?' | grep -cx -- '--resource-prefix=example.com')"

t_ok "an API server takes them" applied
t_need
t_wait 20 "definitions are established" k wait --for condition=Established --timeout 1s crd -l app.kubernetes.io/part-of=orbweaver
t_ok "a second time there is nothing to change" all_unchanged
t_ok "they can be taken away" k delete -k manifests/overlays/kubernetes-1.20 --timeout=60s
t_wait 30 "and nothing is left" nothing_left
t_done
