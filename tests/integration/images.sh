# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What tests of images and releases read from an OCI archive of hack/images: an index, of one image for each architecture.
# Functions with an ARCH take "amd64" or "arm64".

machine=$(dpkg --print-architecture)

# The name of an architecture in the header of an ELF file, as readelf prints it.
elf_machine() {
	case $1 in
	amd64) echo "Advanced Micro Devices X86-64" ;;
	arm64) echo AArch64 ;;
	esac
}

# The machines that programs and libraries below a folder are for.
elf_machines() {
	find "$1" -type f -exec sh -c 'head -c 4 "$1" | grep -q ELF && readelf -hW "$1" | sed -n "s/^ *Machine: *//p"' _ {} \; | sort -u
}

blob() {
	tar -xOf "$1" "blobs/${2/://}"
}

# Of the index.
digest() {
	tar -xOf "$1" index.json | jq -r '.manifests[0].digest'
}

index() {
	blob "$1" "$(digest "$1")"
}

platforms() {
	index "$1" | jq -r '.manifests[].platform | [.os, .architecture, .variant // empty] | join("/")' | paste -sd ' '
}

# ARCHIVE ARCH
manifest() {
	blob "$1" "$(index "$1" | jq -r --arg arch "$2" '.manifests[] | select(.platform.architecture == $arch).digest')"
}

# ARCHIVE ARCH FOLDER: the file tree of an image, of one layer.
unpack() {
	local layer

	layer=$(manifest "$1" "$2" | jq -er '.layers | if length == 1 then .[0].digest else error("layers") end') &&
		mkdir -p "$3" && blob "$1" "$layer" | tar -xz -C "$3"
}

# ARCHIVE ARCH FILTER
config() {
	blob "$1" "$(manifest "$1" "$2" | jq -r .config.digest)" | jq -r "$3"
}

# FOLDER NAME: every ELF file but the program is in the list of some package, and each package in the list has its licence.
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

# The names of the one index, for those who read index.json.
image_names() {
	tar -xOf "$1" index.json | jq -r '(.manifests | map(.digest) | unique | length | select(. != 1) | "images: \(.)"),
		.manifests[].annotations["org.opencontainers.image.ref.name"]'
}

# Programs in a root that are not ours.
strangers() {
	find "$1" -type f -perm /111 ! -name '*.so*' ! -path "$1/usr/bin/orbweaver-*"
}
