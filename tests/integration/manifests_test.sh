#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What gets deployed: overlays and chart render, say the same, keep to the Pod Security levels that they claim, and an API
# server takes them, twice, and lets go of them. Values of the guides' `helm install` lines become what the guides show.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

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

# conf FLAG...: the switches of IPAM that the chart writes, as JSON.
conf() {
	chart "$namespace" policy/v1 "$@" | jq -r 'select(.metadata.name == "spiderpool-conf").data["conf.yml"]' | "$tmp/helm-render" - |
		jq -cS 'del(.podResourceInject) | with_entries(select(.value))'
}

# refuses TEXT FLAG...: in one line.
refuses() {
	local text=$1

	if chart "$namespace" policy/v1 "${@:2}" >"$tmp/rendered" 2>"$tmp/refused" || [[ -s $tmp/rendered || $(wc -l <"$tmp/refused") != 1 ]]; then
		cat "$tmp/refused"
		return 1
	fi
	grep -F -- "$text" "$tmp/refused" || { cat "$tmp/refused" && return 1; }
}

# notes TEXT FLAG...: the notes after the installation contain it.
notes() {
	chart "$namespace" policy/v1 --notes "${@:2}" | tr '\n' ' ' >"$tmp/notes"
	grep -qF -- "$1" "$tmp/notes" || { cat "$tmp/notes" && return 1; }
}

agent_args() {
	chart "$namespace" policy/v1 "$@" | jq -r 'select(.kind == "DaemonSet").spec.template.spec.containers[].args[]'
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
	sed -n '/supervisor_needs\[\] = {/,/};/p' nodeagent/process/privileges.c | grep -o 'CAP_[A-Z_]*' | sed 's/^CAP_//' | sort
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
version=$(hack/version)
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
# The page of the processes has a row for each folder of the host, with why it is mounted so.
propagation() {
	sed -n '/^| Folder of the host /,/^$/p' docs/node-agent-processes.md | sed 1,2d | tr -d '` ' | awk -F '|' 'NF {print $2, $3}' | sort
}
mounted() {
	jq -r 'select(.spec.template.spec).spec.template.spec | (.volumes // [] | map(select(.hostPath)) | INDEX(.name)) as $host |
		(.containers + (.initContainers // []))[].volumeMounts[]? | select(.name | in($host)) |
		"\($host[.name].hostPath.path) \(.mountPropagation // "None")"' | sort -u
}
t_eq "each folder of the host is on the page, and mounted as it says" "$(propagation)" "$(overlay . | mounted)"
for name in manifests/overlays/*/; do
	name=overlays/$(basename "$name")
	t_eq "and no other one is mounted: $name" "" "$(comm -13 <(propagation) <(overlay "$name" | mounted))"
done
t_eq "in the chart, too" "$(propagation)" "$(chart "$namespace" policy/v1 --set=dra.enabled=true | mounted)"
t_fails "a folder without propagation is found" test "$(propagation)" = "$(overlay . | sed 's/"mountPropagation":"HostToContainer"/"x":1/' | mounted)"
t_ok "on 1.20 the same as that overlay" says_the_same overlays/kubernetes-1.20 "$namespace" policy/v1beta1 --set=spiderpoolAgent.surge=false
t_ok "on 1.20 with webhooks too" says_the_same "overlays/kubernetes-1.20 overlays/webhook" "$namespace" policy/v1beta1 \
	--set=spiderpoolAgent.surge=false --set=spiderpoolController.webhook.enabled=true
t_eq "the operator's settings are where the Deployment looks for them" "cilium-config-map policy-namespaces webhook-addr" "$(overlay . | jq -r '
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

t_eq "the SpiderCoordinator stays, whatever annotations all objects have" "keep you" \
	"$(chart "$namespace" policy/v1 --set=global.commonAnnotations.owner=you |
		jq -r 'select(.kind == "SpiderCoordinator").metadata.annotations | "\(.["helm.sh/resource-policy"]) \(.owner)"')"

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
t_eq "image.registry and image.tag name the images" "registry.example/ow/orbweaver-agent:1.2 registry.example/ow/orbweaver-operator:1.2" \
	"$(chart "$namespace" policy/v1 --set=image.registry=registry.example/ow --set=image.tag=1.2 |
		jq -r '.spec.template.spec.containers[]?.image' | sort | paste -sd ' ')"
t_eq "without a tag they have the chart's appVersion" "$(sed -n 's/^appVersion: "\(.*\)"$/\1/p' manifests/chart/Chart.yaml)" \
	"$(chart "$namespace" policy/v1 --set=image.tag= | jq -r '.spec.template.spec.containers[]?.image' | sed 's/.*://' | sort -u)"
t_eq "a mirror of public registries does not have them" "localhost" "$(chart "$namespace" policy/v1 \
	--set=global.imageRegistryOverride=mirror.example | jq -r '.spec.template.spec.containers[]?.image' | sed 's,/.*,,' | sort -u)"
t_ok "which the notes say" notes 'global.imageRegistryOverride was set to mirror.example and has no effect' \
	--set=global.imageRegistryOverride=mirror.example
t_ok "so they do of plugins that are not ours" notes 'plugins.installCNI was set: macvlan' --set=plugins.installCNI=true
t_ok "and of Multus" notes 'multus was set' --set=multus.multusCNI.install=true
t_ok "and of every other value that the chart does not have" \
	notes "no such value: spiderpoolAgent.debug.gopsPort, spiderpoolInit.name." \
	--set=spiderpoolAgent.debug.gopsPort=1 --set=spiderpoolInit.name=x
t_fails "values of the chart are not among them" notes "no such value" --values=manifests/chart/values.yaml
t_eq "spiderpoolAgent.prometheus.enabled serves metrics to others" "--metrics-addr=:9810" \
	"$(agent_args --set=spiderpoolAgent.prometheus.enabled=true | grep metrics-addr)"
t_eq "spiderpoolAgent.prometheus.enabledRdmaMetric is on unless it is switched off" "off" \
	"$(agent_args --set=spiderpoolAgent.prometheus.enabledRdmaMetric=true | sed -n 's/^--rdma-metrics=//p')$(
	agent_args --set=spiderpoolAgent.prometheus.enabledRdmaMetric=false | sed -n 's/^--rdma-metrics=//p')"
t_eq "folders of nodes" "--cni-bin-dir=/a/bin --cni-conf-dir=/a/net.d /h /k" "$(agent_args --set=cniBinDir=/a/bin --set=cniConfDir=/a/net.d |
	grep -e '--cni' | paste -sd ' ') $(chart "$namespace" policy/v1 --set=hostRoot=/h --set=kubeletRootDir=/k |
	jq -r '.spec.template.spec.volumes[]?.hostPath.path // empty' | paste -sd ' ')"
t_eq "lists of what may run, and what pods may get" "--cni-plugin-types=acme,x-* --device-paths=/dev/kvm,/dev/video* --job-files=a.b/c,spidernet.io/*" "$(agent_args \
	'--set=cniPluginTypes={acme,x-*}' '--set=deviceFiles.paths={/dev/kvm,/dev/video*}' '--set=jobFiles.resources={a.b/c,spidernet.io/*}' |
	grep -e '--cni-plugin' -e '--device-p' -e '--job-f' | paste -sd ' ')"
t_ok "no path of a program" refuses "cniPluginTypes" '--set=cniPluginTypes={/bin/sh}'
t_ok "no resource that is a path" refuses "jobFiles.resources" '--set=jobFiles.resources={../x}'
t_ok "no file outside of /dev" refuses "deviceFiles.paths" '--set=deviceFiles.paths={/etc/shadow}'
t_eq "by Spiderpool's names, too" "--cni-bin-dir=/a/bin --cni-conf-dir=/a/net.d" "$(agent_args --set=global.cniBinHostPath=/a/bin \
	--set=global.cniConfHostPath=/a/net.d | grep -e '--cni' | paste -sd ' ')"

t_eq "Cilium's ConfigMap, with the right to read it by its name" "cilium/its-config its-config in cilium" "$(chart "$namespace" policy/v1 \
	--set=global.ciliumConfigMap=cilium/its-config | jq -r 'select(.kind == "ConfigMap").data["cilium-config-map"] // empty,
	(select(.kind == "Role" and .metadata.name == "orbweaver-operator-cilium") | "\(.rules[0].resourceNames[0]) in \(.metadata.namespace)")' | paste -sd ' ')"

# IPAM.
t_eq "every switch of IPAM is written: one that is not there would be off" \
	'{"enableIPv4":true,"enableIPv6":true,"enableKubevirtStaticIP":true,"enableStatefulSet":true}' "$(conf)"
t_eq "values set them" '{"enableGatewayDetection":true,"enableIPConflictDetection":true,"enableIPv4":true}' "$(conf \
	--set=ipam.enableIPv6=false --set=ipam.enableStatefulSet=false --set=ipam.enableKubevirtStaticIP=false \
	--set=ipam.enableGatewayDetection=true --set=ipam.enableIPConflictDetection=true)"
jq -n --arg namespace "$namespace" '[{apiVersion: "v1", kind: "ConfigMap", metadata: {name: "spiderpool-conf", $namespace}, data: {
	"conf.yml": "enableIPv4: true\nenableIPv6: false\nenableStatefulSet: true\nenableGatewayDetection: true\n", clusterNetwork: "kube-system/macvlan"}}]' \
	>"$tmp/objects"
t_eq "an upgrade keeps what was changed in the cluster, where no value says otherwise" \
	'{"enableGatewayDetection":true,"enableIPConflictDetection":true,"enableIPv4":true,"enableKubevirtStaticIP":true}' \
	"$(conf "--objects=$tmp/objects" --upgrade --set=ipam.enableIPConflictDetection=true --set=ipam.enableStatefulSet=false)"
t_eq "and keys of others" kube-system/macvlan "$(chart "$namespace" policy/v1 "--objects=$tmp/objects" |
	jq -r 'select(.metadata.name == "spiderpool-conf").data.clusterNetwork')"
t_eq "the overlay with webhooks has each switch, too" "$(conf)" "$(overlay overlays/webhook | jq -r '.data["conf.yml"] // empty' |
	"$tmp/helm-render" - | jq -cS 'del(.podResourceInject) | with_entries(select(.value))')"

# Devices.
printf '%s\n' 'devicePlugin: { resourceList: [{ resourceName: fast, selectors: { vendors: ["15b3"] } }] }' \
	'deviceFiles: { list: [{ devicematch: "^infiniband$", nummaxdevices: 20 }] }' >"$tmp/devices"
t_eq "configurations of devices become ConfigMaps, and flags" "--device-config=sriovdp-config --dev-files=smarter-device-manager" "$(
	agent_args "--values=$tmp/devices" | grep -e '--dev' | paste -sd ' ')"
t_eq "in the words of those who read them" '{"resourceList":[{"resourceName":"fast","selectors":{"vendors":["15b3"]}}]} ^infiniband$' "$(
	chart "$namespace" policy/v1 "--values=$tmp/devices" | jq -r 'select(.metadata.name == "sriovdp-config").data["config.json"]' | jq -c .) $(
	chart "$namespace" policy/v1 "--values=$tmp/devices" | jq -r 'select(.metadata.name == "smarter-device-manager").data["conf.yaml"]' |
		sed -n 's/^- devicematch: //p')"
t_eq "or are those of others, which the agent may then read" "--dev-files=device-manager/mine device-manager mine" "$(
	agent_args --set=deviceFiles.configMap=device-manager/mine | grep -e '--dev') $(
	chart "$namespace" policy/v1 --set=deviceFiles.configMap=device-manager/mine |
		jq -r 'select(.kind == "Role" and .metadata.name == "orbweaver-agent-files") | "\(.metadata.namespace) \(.rules[].resourceNames[])"')"
t_ok "claims of devices have what that overlay has" says_the_same overlays/dra "$namespace" policy/v1 --set=dra.enabled=true \
	--set='dra.deviceClasses={spidernet.io/mellanoxroce}'

# Of all objects.
t_eq "labels and annotations of all objects" "" "$(chart "$namespace" policy/v1 --set=global.commonLabels.team=net \
	--set=global.commonAnnotations.owner=lab --set=grafanaDashboard.install=true --set=spiderpoolController.prometheus.secure=true \
	--set=spiderpoolController.prometheus.serviceMonitor.install=true --set=spiderpoolController.prometheus.prometheusRule.install=true \
	--set=spiderpoolAgent.prometheus.serviceMonitor.install=true --set=spiderpoolController.webhook.enabled=true --set=dra.enabled=true \
	--set='dra.deviceClasses={a/b}' "--values=$tmp/devices" |
	jq -r 'select(.metadata.labels.team != "net" or .metadata.annotations.owner != "lab") | "\(.kind) \(.metadata.name)"')"
t_eq "what is selected by stays" "app.kubernetes.io/name app.kubernetes.io/name" "$(chart "$namespace" policy/v1 \
	--set=global.commonLabels.team=net | jq -r '.spec.selector.matchLabels? // empty | keys[]' | sort | head -n 2 | paste -sd ' ')"
t_eq "of pods alone, priority, strategy, resources and flags" "net p OnDelete 1Gi --log-level=debug" "$(chart "$namespace" policy/v1 \
	--set=spiderpoolAgent.podLabels.team=net --set=spiderpoolAgent.priorityClassName=p --set=spiderpoolAgent.updateStrategy.type=OnDelete \
	--set=spiderpoolAgent.resources.limits.memory=1Gi --set='spiderpoolAgent.extraArgs={--log-level=debug}' |
	jq -r 'select(.kind == "DaemonSet").spec | "\(.template.metadata.labels.team) \(.template.spec.priorityClassName) \(.updateStrategy.type) \(
		.template.spec.containers[].resources.limits.memory) \(.template.spec.containers[].args[-1])"')"

# Mistakes.
t_ok "a profile that does not exist" refuses "profile: must be one of auto, delegate, devices, is multus" --set=profile=multus
t_ok "a word where a switch is" refuses "ipam.enableIPv4: must be boolean or null, is sometimes" --set=ipam.enableIPv4=sometimes
t_ok "a word where a number is" refuses "spiderpoolController.replicas: must be integer, is two" --set=spiderpoolController.replicas=two
t_ok "a folder that is not absolute" refuses "cniBinDir: must match ^/, is opt/cni" --set=cniBinDir=opt/cni
t_ok "a word where a list is" refuses "spiderpoolAgent.tolerations: must be array, is all" --set=spiderpoolAgent.tolerations=all

# A release of Spiderpool: its values, as --reuse-values brings them along, defaults of its chart included.
cat >"$tmp/spiderpool" <<-END
	global: { imageRegistryOverride: "", nameOverride: "", commonLabels: {} }
	ipam: { enableIPv4: true, enableSpiderSubnet: true, gc: { enabled: true } }
	multus: { multusCNI: { install: true } }
	plugins: { installCNI: false, installRdmaCNI: true }
	rdma: { rdmaSharedDevicePlugin: { install: false, deviceConfig: { vendors: "15b3", deviceIDs: "1017" } } }
	spiderpoolAgent: { name: spiderpool-agent, tolerations: [{ operator: Exists }], prometheus: { enabled: false, port: 5711 } }
	spiderpoolController: { name: spiderpool-controller, replicas: 1, prometheus: { enabled: false, port: 5721 } }
	spiderpoolInit: { name: spiderpool-init }
END
t_ok "its values are not taken over, and the steps are named" refuses "and only then installs this chart as a release of its own" "--reuse-values=$tmp/spiderpool" \
	--release=spiderpool --upgrade --set=plugins.installCNI=true
jq -n --arg namespace "$namespace" '[{apiVersion: "apps/v1", kind: "DaemonSet", metadata: {name: "spiderpool-agent", $namespace,
	annotations: {"meta.helm.sh/release-name": "spiderpool"}}}]' >"$tmp/objects"
t_ok "neither is a release whose objects are there" refuses "DaemonSet $namespace/spiderpool-agent belongs to it" "--objects=$tmp/objects" \
	--release=spiderpool --upgrade
t_ok "another release beside it is fine" eval "chart $namespace policy/v1 '--objects=$tmp/objects' >/dev/null"

t_ok "README.md of the chart is what values.yaml says" hack/chart-docs --check
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
