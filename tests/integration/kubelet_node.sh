#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A containerd of its own on this machine, for one kubelet of a test.
#
#	unshare --mount --pid --fork --mount-proc --kill-child tests/integration/kubelet_node.sh DIR
#
# Covers the folders whose names are built into kubelet and containerd with empty ones, starts containerd, loads the image
# localhost/busybox:1, makes DIR/ready and waits. What else is to run in here comes by nsenter; all of it, the mounts and
# the pods included, ends with this process, for it is the first of its process namespace.
set -euo pipefail

dir=$1

cover() {
	local path

	for path in "$@"; do
		mkdir -p "$path"
		mount -t tmpfs tmpfs "$path"
	done
}

# An image as `docker save` writes it, from a static busybox.
image() {
	local root=$dir/image/root out=$dir/image/out applet layer

	mkdir -p "$root"/{bin,dev,etc,proc,root,sys,tmp} "$out"
	cp "$(type -P busybox)" "$root/bin/busybox"
	for applet in sh sleep env ls cat stat true; do
		ln -s busybox "$root/bin/$applet"
	done
	tar -C "$root" --owner=0 --group=0 --numeric-owner -cf "$out/layer.tar" .
	layer=$(sha256sum "$out/layer.tar" | cut -d' ' -f1)
	cat >"$out/config.json" <<END
{ "architecture": "$(dpkg --print-architecture)", "os": "linux", "config": { "Cmd": ["/bin/sleep", "2147483647"] },
  "rootfs": { "type": "layers", "diff_ids": ["sha256:$layer"] } }
END
	echo '[{"Config":"config.json","RepoTags":["localhost/busybox:1"],"Layers":["layer.tar"]}]' >"$out/manifest.json"
	tar -C "$out" -cf "$dir/image.tar" .
}

start_containerd() {
	mkdir -p "$dir/cni"
	# Without CAP_SYS_RESOURCE nobody may lower a score.
	cat >"$dir/containerd.toml" <<END
version = 2
root = "$dir/containerd"
state = "/run/containerd/state"
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/busybox:1"
  restrict_oom_score_adj = true
  stream_server_port = "0"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$dir/cni"
END
	# The pods are on the host's network; a node without any is not Ready.
	echo '{ "cniVersion": "0.4.0", "name": "lo", "plugins": [{ "type": "loopback" }] }' >"$dir/cni/10-lo.conflist"
	containerd --config "$dir/containerd.toml" >"$dir/containerd.log" 2>&1 &
	until ctr --timeout 2s version >/dev/null 2>&1; do
		kill -0 $! || return 1
		sleep 0.1
	done
	ctr -n k8s.io images import "$dir/image.tar" >/dev/null
}

cover /var/lib/kubelet /run/containerd /var/log/pods /var/log/containers
image
start_containerd
touch "$dir/ready"
wait
