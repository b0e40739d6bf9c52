#!/bin/bash
# Images: the same from two folders, small, with nothing in them but a program, its libraries, their licences and a list of
# both; the programs start in there and say the version that they were made from, which is one of the image's two tags.
#
# shellcheck disable=SC2317 # functions are called through t_ok
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# shellcheck source=tests/lib.sh
. tests/lib.sh

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
names=(operator agent)

# Programs and images from the committed state, in folder $1.
clone_images() {
	git clone -q --shared . "$tmp/$1" && make_images "$1"
}

make_images() {
	make -s -C "$tmp/$1" -j2 VARIANT=opt BUILD=build build/bin/orbweaver-operator build/bin/orbweaver-agent build/bin/orbweaver-cni &&
		BUILD='' "$tmp/$1/hack/images" "${names[@]}"
}

# What has been made of this very commit in the checkout; `make check` has.
made_here() {
	local name version

	version=$(hack/version)
	[[ $version != *-dirty ]] || return 1
	for name in "${names[@]}"; do
		[[ -x build/bin/orbweaver-$name && $("build/bin/orbweaver-$name" --version | cut -d ' ' -f 2) == "$version" ]] &&
			image_names "build/images/orbweaver-$name.tar" | grep -qx "localhost/orbweaver-$name:$version" || return
	done
}

archive() {
	echo "$tmp/$1/build/images/orbweaver-$2.tar"
}

digest() {
	tar -xOf "$1" index.json | jq -r '.manifests[0].digest'
}

blob() {
	tar -xOf "$1" "blobs/${2/://}"
}

manifest() {
	blob "$1" "$(digest "$1")"
}

# The file tree of an image, of one layer.
unpack() {
	local layer

	layer=$(manifest "$1" | jq -er '.layers | if length == 1 then .[0].digest else error("layers") end') &&
		mkdir "$2" && blob "$1" "$layer" | tar -xz -C "$2"
}

config() {
	blob "$1" "$(manifest "$1" | jq -r .config.digest)" | jq -r "$2"
}

# Every ELF file but the program is in the list of some package, and each package in the list has its licence.
complete() {
	local root=$1 name=$2 list package
	list=$root/usr/share/sbom/orbweaver-$name.spdx.json

	jq -e '.spdxVersion == "SPDX-2.3" and (.packages | length > 5) and
		(.relationships | map(select(.relationshipType == ("DYNAMIC_LINK", "STATIC_LINK"))) | length) == (.packages | length - 1)' "$list" >/dev/null || return 1
	for package in $(jq -r '.packages[1:][].name' "$list"); do
		[[ -s $root/usr/share/doc/$package/copyright ]] || { echo "no licence of $package" && return 1; }
	done
	[[ $(find "$root/usr/share/doc" -mindepth 1 -maxdepth 1 | wc -l) == $(jq '.packages | length - 1' "$list") ]]
}

# One that answers to --version in its own root as the user that the image names has all its libraries.
starts() {
	chroot --userspec="$2" "$1" "/usr/bin/orbweaver-$3" --version
}

version() {
	"$tmp/$1/build/bin/orbweaver-$2" --version | cut -d ' ' -f 2
}

# The names of the one image, for those who read index.json.
image_names() {
	tar -xOf "$1" index.json | jq -r '(.manifests | map(.digest) | unique | length | select(. != 1) | "images: \(.)"),
		.manifests[].annotations["org.opencontainers.image.ref.name"]'
}

# docker-archive is what reads manifest.json.
pulled() {
	local archive=$1 name

	shift
	for name; do
		for transport in oci-archive docker-archive; do
			[[ $(STORAGE_DRIVER=vfs buildah --root "$tmp/storage-$transport" --runroot "$tmp/run-$transport" \
				pull -q "$transport:$archive:$name" | wc -l) == 1 ]] || return
		done
	done
}

strangers() {
	find "$1" -type f -perm /111 ! -name '*.so*' ! -path "$1/usr/bin/orbweaver-*"
}

hack/deps build images
if made_here; then
	ln -s "$PWD" "$tmp/first"
else
	t_ok "images are made" clone_images first
	t_need
fi
t_ok "and made again in another folder" clone_images second
t_need
for name in "${names[@]}"; do
	a=$(archive first "$name")
	root=$tmp/$name
	t_eq "$name: the same commit gives the same digest" "$(digest "$a")" "$(digest "$(archive second "$name")")"
	t_ok "$name: one layer that can be unpacked" unpack "$a" "$root"
	t_ok "$name: 25 MB at most, unpacked ($(du -sm --apparent-size "$root" | cut -f 1) MB, packed $(du -m "$a" | cut -f 1) MB)" \
		test "$(du -sb --apparent-size "$root" | cut -f 1)" -le 25000000
	t_eq "$name: no shell, no other program" "" "$(strangers "$root")"
	t_eq "$name: nothing that runs as another user" "" "$(find "$root" -perm /6000)"
	t_ok "$name: licences and list are complete" complete "$root" "$name"
	t_eq "$name: what starts" "[\"/usr/bin/orbweaver-$name\"]" "$(config "$a" '.config.Entrypoint | tojson')"
	names_wanted=("localhost/orbweaver-$name:latest" "localhost/orbweaver-$name:$(version first "$name")")
	t_eq "$name: its tags are latest and the version" "$(printf '%s\n' "${names_wanted[@]}")" "$(image_names "$a")"
	t_ok "$name: it is there by both" pulled "$a" "${names_wanted[@]}"
	t_ok "$name: it starts with what is in there" starts "$root" "$(config "$a" .config.User)" "$name"
done
# Whoever looks for a vulnerable library finds those that no file shows.
linked_inside() {
	jq -r '[.relationships[] | select(.relationshipType == "STATIC_LINK") | .relatedSpdxElement] | sort | join(" ")' \
		"$tmp/$1/usr/share/sbom/orbweaver-$1.spdx.json"
}

if [[ -n $(hack/curl-build --dir) ]]; then
	t_eq "libcurl is in the operator's list" SPDXRef-libcurl4-openssl-dev "$(linked_inside operator)"
	t_eq "the plugin's C library is in the agent's" "SPDXRef-libcurl4-openssl-dev SPDXRef-musl-dev" "$(linked_inside agent)"
else
	t_skip "libraries that are linked in are in the lists" "no sources of libcurl"
fi
git -C "$tmp/second" tag v0.0.1+next
t_ok "images of the next version are made" make_images second
for name in "${names[@]}"; do
	t_eq "$name: the program says it" 0.0.1+next "$(version second "$name")"
	t_eq "$name: a tag has no plus" "localhost/orbweaver-$name:latest localhost/orbweaver-$name:0.0.1_next" \
		"$(image_names "$(archive second "$name")" | paste -sd ' ')"
done
t_eq "the operator is not root" 65532:65532 "$(config "$(archive first operator)" .config.User)"
t_done
