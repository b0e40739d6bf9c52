#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Images of this machine's architecture (release_test.sh has both): the same from two folders, small, with nothing in them but a
# program, its libraries, their licences and a list of both; the programs start in there and say the version that they were made
# from, which is one of the index's two tags.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

. tests/lib.sh
. tests/integration/images.sh

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
	[[ $version != *dirty ]] || return 1
	for name in "${names[@]}"; do
		[[ -x build/bin/orbweaver-$name && $("build/bin/orbweaver-$name" --version | cut -d ' ' -f 2) == "$version" ]] &&
			image_names "build/images/orbweaver-$name.tar" | grep -qx "localhost/orbweaver-$name:${version//+/_}" &&
			[[ $(platforms "build/images/orbweaver-$name.tar") != *' '* ]] || return
	done
}

archive() {
	echo "$tmp/$1/build/images/orbweaver-$2.tar"
}

# One that answers to --version in its own root as the user that the image names has all its libraries.
starts() {
	chroot --userspec="$2" "$1" "/usr/bin/orbweaver-$3" --version
}

version() {
	"$tmp/$1/build/bin/orbweaver-$2" --version | cut -d ' ' -f 2
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
	t_eq "$name: an index of one platform" "linux/$machine" "$(platforms "$a" | sed 's|/v8$||')"
	t_ok "$name: one layer that can be unpacked" unpack "$a" "$machine" "$root"
	t_ok "$name: 25 MB at most, unpacked ($(du -sm --apparent-size "$root" | cut -f 1) MB, packed $(du -m "$a" | cut -f 1) MB)" \
		test "$(du -sb --apparent-size "$root" | cut -f 1)" -le 25000000
	t_eq "$name: programs and libraries are for it" "$(elf_machine "$machine")" "$(elf_machines "$root")"
	t_eq "$name: no shell, no other program" "" "$(strangers "$root")"
	t_eq "$name: nothing that runs as another user" "" "$(find "$root" -perm /6000)"
	t_ok "$name: licences and list are complete" complete "$root" "$name"
	t_eq "$name: what starts" "[\"/usr/bin/orbweaver-$name\"]" "$(config "$a" "$machine" '.config.Entrypoint | tojson')"
	names_wanted=("localhost/orbweaver-$name:latest" "localhost/orbweaver-$name:$(version first "$name" | tr + _)")
	t_eq "$name: its tags are latest and the version" "$(printf '%s\n' "${names_wanted[@]}")" "$(image_names "$a")"
	t_ok "$name: it is there by both" pulled "$a" "${names_wanted[@]}"
	t_ok "$name: it starts with what is in there" starts "$root" "$(config "$a" "$machine" .config.User)" "$name"
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
t_eq "the operator is not root" 65532:65532 "$(config "$(archive first operator)" "$machine" .config.User)"
t_done
