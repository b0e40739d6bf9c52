#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# lib/kube on a real API server: verbs, informers, leases, events, and what happens when the server goes away.
# The checks are in kube_test.c; this starts a control plane for it, and is called back to do things to it:
#
#   kube_test.sh stop|start|freeze|thaw           the API server
#   kube_test.sh forget PREFIX                    objects vanish from etcd and all older versions with them; server stopped
set -euo pipefail

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

cluster() {
	"$repo/hack/cluster" "$@"
}

apiserver_pid() {
	cut -d' ' -f1 "$ORBWEAVER_RUN/kube/run/apiserver"
}

etcd_port() {
	sed -n 's/^etcd=//p' "$ORBWEAVER_RUN/kube/ports"
}

case ${1:-} in
stop | start)
	cluster "$1" kube apiserver
	exit
	;;
freeze) exec kill -s STOP "$(apiserver_pid)" ;;
thaw) exec kill -s CONT "$(apiserver_pid)" ;;
forget)
	ETCDCTL_API=3 etcdctl --endpoints "http://127.0.0.1:$(etcd_port)" del --prefix "$2" >/dev/null
	cluster compact kube
	exit
	;;
esac

# A control plane of our own: others may run some in the usual place.
tmp=$(mktemp -d)
export ORBWEAVER_RUN=$tmp/run
trap 'cluster down kube || true; rm -rf "$tmp"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

cluster up kube --no-controllers
cluster kubectl kube apply -f - <<'END'
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.test.example}
spec:
  group: test.example
  names: {kind: Widget, plural: widgets, singular: widget}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      subresources:
        status: {}
        scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                text: {type: string}
                replicas: {type: integer, minimum: 0}
            status:
              type: object
              properties:
                replicas: {type: integer}
END
cluster kubectl kube wait --for condition=Established --timeout 20s crd/widgets.test.example
cluster kubectl kube create namespace lab
for form in token cert cert-data token-file; do
	configs+=("$(cluster kubeconfig kube "$form")")
done
KUBE_TEST_CONTROL="$repo/tests/integration/kube_test.sh" \
	"${BUILD:-build}/${VARIANT:-asan}/tests/integration/kube_test" "${configs[@]}"
