#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# All metrics of operator and agent, as a scrape of both shows them: names, types, labels and help are those of tests/golden-metrics
# and of docs/metrics.md. `UPDATE=1` writes both.
#
# The agent runs with all of its processes, so what lies on the host is of a mount namespace of our own.
set -euo pipefail

if [[ ${1:-} != --inside ]]; then
	((EUID == 0)) || { echo "skipped: needs root" && echo "0 passed, 0 failed" && exit 0; }
	exec unshare --mount --propagation private "$0" --inside
fi
mkdir -p /opt/cni /var/lib/orbweaver
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /var/lib/orbweaver
mount -t tmpfs tmpfs /opt/cni

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/integration/operator.sh

o_agent=${AGENT:-$o_programs/orbweaver-agent}

# The scrape of $1, once $2 is in it: each process of the agent brings its own.
scraped() {
	o_http "$1" /metrics >"$tmp/$1.metrics" && grep -q "^# TYPE $2 " "$tmp/$1.metrics"
}

same_list() {
	hack/metrics list <"$tmp/$1.metrics" >"$tmp/$1.list"
	[[ -z ${UPDATE:-} ]] || cp "$tmp/$1.list" "tests/golden-metrics/$1.txt"
	diff -u "tests/golden-metrics/$1.txt" "$tmp/$1.list"
}

o_begin metrics --no-controllers
mkdir -p "$tmp/kubelet/device-plugins"
o_agent_user manifests/overlays/dra/rbac.yaml
o_curl POST "/api/v1/namespaces/$POD_NAMESPACE/configmaps" "$(jq -n '{apiVersion: "v1", kind: "ConfigMap",
	metadata: {name: "spiderpool-rdma-shared-device-plugin"}, data: {"config.json": ({configList: [{resourcePrefix: "spidernet.io",
		resourceName: "hca_shared_devices", rdmaHcaMax: 10, selectors: {vendors: ["15b3"]}}]} | tojson)}}')" >/dev/null
# The Node says what claims may have; until it is there, nothing is offered.
o_curl POST /api/v1/nodes '{"metadata": {"name": "n1"}}' >/dev/null
o_own_user webhook
o_start operator --webhook-addr 127.0.0.1:0
o_wait_ready operator
o_spawn agent "$o_agent" --node n1 --kubeconfig "$agent_kubeconfig" --host-root / --profile delegate --kubelet-dir "$tmp/kubelet" \
	--no-kubelet --metrics-addr 127.0.0.1:0 --cni-program "$PWD/$o_programs/orbweaver-cni" --dra
t_wait 30 "the operator's metrics" scraped operator orbweaver_webhook_certificate_expiry_seconds
t_wait 30 "the agent's, with those of the process for the kubelet" scraped agent orbweaver_kubelet_devices
t_wait 30 "and of the one for CNI" scraped agent orbweaver_cni_calls_total
for program in operator agent; do
	t_ok "names, types, labels and help of the $program are those of the list" same_list "$program"
	t_ok "each is of one name only" test -z "$(cut -d' ' -f1 "$tmp/$program.list" | sort | uniq -d)"
done
[[ -z ${UPDATE:-} ]] || hack/metrics write
t_ok "the page has what the list has" hack/metrics
o_end agent
o_end operator
t_done
