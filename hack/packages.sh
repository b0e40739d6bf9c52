# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Debian's packages of this machine's architecture or another, and SPDX documents of what our programs are made of. Sourced by
# images and release, which have `here`, `build`, `version` and `created`, and a function `die`.
#
# shellcheck disable=SC2154,SC2034 # variables of the script that sources it

# Set by settle_on: an architecture, the root that its packages are installed in (empty: this machine), the folder of our
# programs, and the prefix of binutils.
arch='' sysroot='' programs='' triplet=''
machine=$(dpkg --print-architecture)

settle_on() {
	arch=$1
	case $arch in
	amd64) triplet=x86_64-linux-gnu ;;
	arm64) triplet=aarch64-linux-gnu ;;
	*) die "ARCH: \"$arch\" is not an architecture of ours; there are amd64 and arm64" ;;
	esac
	if [[ $arch == "$machine" ]]; then
		sysroot=
		programs=$build/bin
		return
	fi
	sysroot=$("$here/sysroot" "$arch")
	programs=$build/$arch
	[[ ! -e $programs/version || $(<"$programs/version") == "$version" ]] ||
		die "programs for $arch are $(<"$programs/version"), those for $machine are $version: build both by one make"
}

packages() {
	dpkg-query --admindir="$sysroot/var/lib/dpkg" "$@"
}

# The package of a file, whose name comes without the root. On a system with merged /usr the file list may have either name.
package_of() {
	local file=$1 real

	real=$(realpath "$sysroot$file")
	real=${real#"$sysroot"}
	packages -S "$file" 2>/dev/null || packages -S "${file#/usr}" 2>/dev/null || packages -S "/usr$file" 2>/dev/null ||
		packages -S "$real" 2>/dev/null || packages -S "${real#/usr}" 2>/dev/null ||
		die "$file belongs to no Debian package"
}

# Print SPDX 2.3 of a program: what is inside, with versions and where the sources are. $1: its name; $2: those of the packages
# that follow, in words, that are linked into the program.
spdx() {
	local name=$1 static=$2
	shift 2
	# shellcheck disable=SC2016 # dpkg-query expands it
	packages -W -f '${Package}\t${Version}\t${Architecture}\t${source:Package}\t${source:Version}\n' "$@" |
		jq -Rn --arg name "$name" --arg version "$version" --arg created "$created" \
			--arg static "$static" --arg arch "$arch" '
			def id: gsub("[^A-Za-z0-9.]"; "-");
			[inputs | split("\t")] as $packages |
			{
				spdxVersion: "SPDX-2.3", dataLicense: "CC0-1.0", SPDXID: "SPDXRef-DOCUMENT",
				name: $name, documentNamespace: "urn:orbweaver:\($name):\($version):\($arch)",
				creationInfo: { created: $created, creators: ["Tool: orbweaver hack/packages.sh"] },
				packages: ([{
					SPDXID: "SPDXRef-program", name: $name, versionInfo: $version,
					downloadLocation: "NOASSERTION", filesAnalyzed: false
				}] + [$packages[] | {
					SPDXID: "SPDXRef-\(.[0] | id)", name: .[0], versionInfo: .[1],
					downloadLocation: "NOASSERTION", filesAnalyzed: false, licenseConcluded: "NOASSERTION",
					comment: "licence: /usr/share/doc/\(.[0])/copyright",
					externalRefs: [{
						referenceCategory: "PACKAGE-MANAGER", referenceType: "purl",
						referenceLocator: "pkg:deb/debian/\(.[0])@\(.[1] | @uri)?arch=\(.[2])&upstream=\(.[3])@\(.[4] | @uri)"
					}]
				}]),
				relationships: ([{
					spdxElementId: "SPDXRef-DOCUMENT", relationshipType: "DESCRIBES", relatedSpdxElement: "SPDXRef-program"
				}] + [$packages[] | {
					spdxElementId: "SPDXRef-program",
					relationshipType: (if .[0] | IN(($static | split(" "))[]) then "STATIC_LINK" else "DYNAMIC_LINK" end),
					relatedSpdxElement: "SPDXRef-\(.[0] | id)"
				}])
			}'
}
