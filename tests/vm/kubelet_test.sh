#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A virtual node with containerd and kubelet: joins the cluster, runs a pod that talks to the API server, serves a
# loaded image, comes back after a restart, and its Node object goes with it.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/lib.sh

tmp=$(mktemp -d)
export ORBWEAVER_RUN=$tmp/run

clean_up() {
	hack/node down k >/dev/null 2>&1 || true
	hack/cluster down c >/dev/null 2>&1 || true
	rm -rf "$tmp"
}
trap clean_up EXIT

kubectl() {
	hack/cluster kubectl c "$@"
}

is_ready() {
	kubectl get node k -o json | jq -e '.status.conditions[] | select(.type == "Ready" and .status == "True")'
}

boot_id() {
	kubectl get node k -o 'jsonpath={.status.nodeInfo.bootID}'
}

booted_anew() {
	[[ $(boot_id) == "$(hack/node exec k cat /proc/sys/kernel/random/boot_id)" ]]
}

pod() {
	cat <<'END'
apiVersion: v1
kind: Pod
metadata: { name: probe }
spec:
  nodeName: k
  terminationGracePeriodSeconds: 1
  restartPolicy: Never
  containers:
  - name: probe
    image: localhost/probe:1
    imagePullPolicy: Never
    # A TLS server tells a client without TLS what it is.
    command:
    - sh
    - -c
    - |
      printf 'GET / HTTP/1.0\r\n\r\n' | nc $KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT |
        grep "HTTP request to an HTTPS server" && echo reached
END
}

pod_succeeded() {
	[[ $(kubectl get pod probe -o 'jsonpath={.status.phase}') == Succeeded ]]
}

# The image of hack/node-build under another name.
probe_image() {
	mkdir "$tmp/image"
	tar -C "$tmp/image" -xf "$(hack/node-build --dir)/pause.tar"
	sed -i 's,"RepoTags":\[[^]]*\],"RepoTags":["localhost/probe:1"],' "$tmp/image/manifest.json"
	tar -C "$tmp/image" -cf "$tmp/probe.tar" .
}

t_ok "a control plane" hack/cluster up c
t_ok "a node" hack/node up k --cluster c
t_need
t_ok "kubelet runs and the node is Ready" hack/node kubelet k
t_need
t_eq "with the kernel of the node, not the machine's" "$(hack/node exec k uname -r)" \
	"$(kubectl get node k -o 'jsonpath={.status.nodeInfo.kernelVersion}')"
probe_image
t_ok "an image is loaded" hack/node image k "$tmp/probe.tar"
t_ok "a pod is created" kubectl apply -f <(pod)
t_wait 120 "it ends well" pod_succeeded
t_eq "it has reached the API server at the service's address" reached "$(hack/node exec k \
	'cat /var/log/pods/default_probe_*/probe/0.log' | awk 'END { print $NF }')"

t_ok "an orderly restart" hack/node reboot k
t_wait 180 "the kubelet is back by itself" booted_anew
t_wait 60 "and the node is Ready" is_ready
t_ok "down" hack/node down k
t_eq "the Node object is gone" "" "$(kubectl get nodes -o name)"
t_done
