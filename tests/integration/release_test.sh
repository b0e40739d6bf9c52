#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What `make release` publishes for both architectures: complete, of one version, the same when it is put together again, and each
# part as its readers need it: install files for kubectl, indexes for registries, chart, command line, krew manifest, SPDX, sums.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

. tests/lib.sh
. tests/integration/images.sh

tmp=$(mktemp -d)
cluster=release-$$
trap 'hack/cluster down "$cluster" >/dev/null; rm -rf "$tmp"' EXIT
build=${BUILD:-build}
release=$build/release
arches=(amd64 arm64)
kubectl=$(command -v kubectl || echo "$(hack/k8s-build --bin)/kubectl")

k() {
	hack/cluster kubectl "$cluster" "$@"
}

# Documents as sorted JSON, one a line.
documents() {
	"$kubectl" patch --local -f "$1" --type merge -p '{}' -o json | jq -cS . | sort
}

kustomized() {
	"$kubectl" kustomize "$1" 2>/dev/null
}

# PROFILE OVERLAY: the file holds what the overlay and the definitions hold, with images by their version.
is_the_overlay() {
	{
		kustomized "$2"
		echo ---
		kustomized crds
	} | sed -E "s|(image: localhost/orbweaver-[a-z]+):latest|\1:$tag|" >"$tmp/want.yaml"
	diff <(documents "$tmp/want.yaml") <(documents "$release/install$1.yaml")
}

# Namespace, then definitions, then what needs them.
order() {
	sed -n 's/^kind: \(Namespace\|CustomResourceDefinition\)$/\1/p; t; s/^kind: .*/other/p' "$1" | uniq | paste -sd ' '
}

images_of() {
	sed -nE 's/^ *image: (.*)/\1/p' "$1" | sort -u | paste -sd ' '
}

# Every id once, every relationship between ids that are there.
is_sound_spdx() {
	jq -e '[.packages[].SPDXID] as $ids | .spdxVersion == "SPDX-2.3" and ($ids | length == (unique | length)) and
		([.relationships[] | .spdxElementId, .relatedSpdxElement] - $ids - ["SPDXRef-DOCUMENT"] == [])' "$1"
}

# Packages that are linked into the command line, each with its licence in the archive.
has_licences() {
	local package

	for package in $(jq -r --arg of "SPDXRef-orbweaver-$2-" '.relationships[] |
		select(.relationshipType == "STATIC_LINK" and (.spdxElementId | startswith($of))).relatedSpdxElement | ltrimstr($of)' "$release/$spdx"); do
		[[ -s $1/licences/$package ]] || { echo "no licence of $package" && return 1; }
	done
}

needed_libraries() {
	readelf -dW "$1" | sed -nE 's/.*NEEDED.*\[(.*)\]/\1/p' | grep -v '^ld-linux' | paste -sd ' '
}

# In an image of another architecture nothing can be started without an emulator.
starts() {
	if [[ $1 == "$machine" ]]; then
		"$2" "${@:3}"
	else
		qemu-aarch64 -L "$(hack/sysroot "$1")" "$2" "${@:3}"
	fi
}

chart_file() {
	tar -xOzf "$release/$chart" "orbweaver/$1"
}

# Once more, as another user's shell would.
again() {
	(
		umask 077
		export TZ=Asia/Tokyo LC_ALL=C
		IMAGES=$build/release-images BUILD=$build ARCH="arm64 amd64" hack/images operator agent tools && BUILD=$build ARCH="amd64 arm64" hack/release
	)
}

hack/deps emulator cluster
t_ok "a release is made" make -s release BUILD="$build"
t_need
version=$(<"$build/opt/version")
tag=${version//+/_}
chart=orbweaver-$version.tgz
spdx=orbweaver-$version.spdx.json

profiles=()
for overlay in manifests/overlays/profile-*/; do
	[[ ! -d $overlay ]] || profiles+=("$(basename "$overlay" | sed s/^profile-//)")
done
t_eq "all files are there, and no other" "$(printf '%s\n' SHA256SUMS crds.yaml install.yaml install-kubernetes-1.20.yaml "${profiles[@]/#/install-}" \
	orbweaver-{agent,operator,tools}-"$version.oci.tar" orbweaver-"$version"-linux-{amd64,arm64}.tar.gz \
	"$chart" "$spdx" orbweaver.yaml | sed 's/^\(install-[a-z]*\)$/\1.yaml/; /^install-$/d' | LC_ALL=C sort)" \
	"$(find "$release" -type f -printf '%P\n' | LC_ALL=C sort)"
t_ok "the sums are those of the files" eval "cd $release && sha256sum --strict -c SHA256SUMS"
t_eq "of all files" "$(find "$release" -type f ! -name SHA256SUMS | wc -l)" "$(wc -l <"$release/SHA256SUMS")"

t_ok "install.yaml is the default overlay with definitions" is_the_overlay "" manifests/overlays/default
t_ok "that for older servers is their overlay" is_the_overlay -kubernetes-1.20 manifests/overlays/kubernetes-1.20
for profile in ${profiles[@]+"${profiles[@]}"}; do
	t_ok "install-$profile.yaml is the overlay of that profile" is_the_overlay "-$profile" "manifests/overlays/profile-$profile"
done
for file in "$release"/install*.yaml; do
	t_eq "${file##*/}: in an order that kubectl can apply" "Namespace CustomResourceDefinition other" "$(order "$file")"
	t_eq "${file##*/}: images by the version" "localhost/orbweaver-agent:$tag localhost/orbweaver-operator:$tag" "$(images_of "$file")"
	t_eq "${file##*/}: without the definition that Multus may have brought" "0" "$(grep -c 'name: network-attachment-definitions' "$file" || true)"
done

t_ok "a control plane" hack/cluster up "$cluster"
t_ok "an API server takes the file, on a bare cluster" k apply -f "$release/install-kubernetes-1.20.yaml"
t_ok "and again" k apply -f "$release/install-kubernetes-1.20.yaml"
t_eq "kubectl delete by label takes what is not in the namespace" "$(documents "$release/install.yaml" |
	jq -r 'select(.kind | startswith("ClusterRole")) | "\(.kind | ascii_downcase).rbac.authorization.k8s.io/\(.metadata.name)"' | sort)" \
	"$(k get clusterroles,clusterrolebindings -l app.kubernetes.io/part-of=orbweaver -o name | sort)"

for name in operator agent tools; do
	archive=$release/orbweaver-$name-$version.oci.tar
	t_eq "image $name: one index of both platforms" "linux/amd64 linux/arm64/v8" "$(platforms "$archive")"
	t_eq "image $name: by two names" "localhost/orbweaver-$name:latest localhost/orbweaver-$name:$tag" "$(image_names "$archive" | paste -sd ' ')"
	for arch in "${arches[@]}"; do
		root=$tmp/$name-$arch
		t_ok "image $name for $arch: one layer" unpack "$archive" "$arch" "$root"
		t_eq "image $name for $arch: says so" "linux $arch" "$(config "$archive" "$arch" '"\(.os) \(.architecture)"')"
		t_eq "image $name for $arch: all in it is" "$(elf_machine "$arch")" "$(elf_machines "$root")"
		t_ok "image $name for $arch: licences and list are complete" complete "$root" "$name"
	done
done
for name in operator agent; do
	# With the image's own libraries and linker.
	t_eq "image $name for arm64: it starts, and says the version" "orbweaver-$name $version" \
		"$(qemu-aarch64 -L "$tmp/$name-arm64" "$tmp/$name-arm64/usr/bin/orbweaver-$name" --version)"
done
t_eq "the arm64 CNI plugin needs no library" "" "$(needed_libraries "$tmp/agent-arm64/usr/bin/orbweaver-cni")"
t_ok "and starts" env CNI_COMMAND=VERSION qemu-aarch64 "$tmp/agent-arm64/usr/bin/orbweaver-cni"

for arch in "${arches[@]}"; do
	archive=$release/orbweaver-$version-linux-$arch.tar.gz
	root=$tmp/cli-$arch
	mkdir "$root" && tar -xzf "$archive" -C "$root"
	t_eq "command line for $arch: is for it" "$(elf_machine "$arch")" "$(elf_machines "$root")"
	t_eq "command line for $arch: needs the C library alone" libc.so.6 "$(needed_libraries "$root/orbweaver")"
	t_eq "command line for $arch: starts, and says the version" "orbweaver $version" "$(starts "$arch" "$root/orbweaver" --version)"
	t_ok "command line for $arch: has the manual page of this version" grep -qF "orbweaver $version" "$root/man/man1/orbweaver.1"
	for shell in bash fish; do
		t_ok "command line for $arch: completes in $shell" grep -q orbweaver "$root/completions/orbweaver.$shell"
	done
	t_ok "command line for $arch: completes in zsh" grep -q '^#compdef orbweaver' "$root/completions/_orbweaver"
	t_ok "command line for $arch: the licence" cmp LICENSE "$root/LICENSE"
	t_ok "command line for $arch: licences of what is linked into it" has_licences "$root" "$arch"
	# https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/
	t_eq "krew: archive and sum for $arch" "linux ${archive##*/} $(sha256sum <"$archive" | cut -d ' ' -f 1) orbweaver" \
		"$(documents "$release/orbweaver.yaml" | jq -r --arg arch "$arch" '.spec.platforms[] | select(.selector.matchLabels.arch == $arch) |
			"\(.selector.matchLabels.os) \(.uri) \(.sha256) \(.bin)"')"
	t_ok "krew: the files that it takes for $arch are there" eval "documents $release/orbweaver.yaml | jq -r --arg arch $arch '.spec.platforms[] |
		select(.selector.matchLabels.arch == \$arch).files[].from' | sed s,^,$root/, | xargs ls"
done
t_eq "krew: kind, name, version" "krew.googlecontainertools.github.com/v1alpha2 Plugin orbweaver v$version" \
	"$(documents "$release/orbweaver.yaml" | jq -r '"\(.apiVersion) \(.kind) \(.metadata.name) \(.spec.version)"')"

t_eq "chart: version and appVersion" "version: $version appVersion: \"$version\"" "$(chart_file Chart.yaml | grep -E '^(version|appVersion):' | paste -sd ' ')"
t_eq "chart: images by the version" "  tag: \"$tag\"" "$(chart_file values.yaml | sed -n '/^image:/,/^[^ ]/p' | grep tag: | sed 's/""$/"'"$tag"'"/')"
t_eq "chart: definitions, that of NetworkAttachmentDefinition too, which Helm never overwrites" "$(find crds -maxdepth 2 -name '*.yaml' ! -path '*/samples/*' | wc -l)" \
	"$(tar -tzf "$release/$chart" | grep -c '^orbweaver/crds/.*\.yaml$')"
t_eq "chart: nothing that .helmignore names" "" "$(tar -tzf "$release/$chart" | grep -E 'crds/(samples|examples|README|Kustomization)' || true)"

t_ok "SPDX: ids are unique, and relationships are between them" is_sound_spdx "$release/$spdx"
t_eq "SPDX: every program of both architectures" "$(for arch in "${arches[@]}"; do printf "%s-$arch\n" orbweaver{,-agent,-operator,-tools}; done | sort)" \
	"$(jq -r '.relationships[] | select(.relationshipType == "DESCRIBES").relatedSpdxElement | ltrimstr("SPDXRef-") | rtrimstr("-program")' "$release/$spdx" | sort)"

cp "$release/SHA256SUMS" "$tmp/sums"
t_ok "it is put together again, elsewhere in the world" again
t_ok "with the same sums" diff "$tmp/sums" "$release/SHA256SUMS"
t_done
