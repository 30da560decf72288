# SPDX-License-Identifier: MIT
# Shared by the set-up scripts: paths, the cache, and packages of other suites.
# Sourced by bash scripts, never run.

set -euo pipefail
export LC_ALL=C.UTF-8

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CACHE=${NEURON_CACHE:-${XDG_CACHE_HOME:-${HOME:?HOME is not set}/.cache}/neuron-accel}

say()
{
	printf '%s: %s\n' "${0##*/}" "$*" >&2
}

die()
{
	say "error: $*"
	exit 1
}

# as_root COMMAND...: run it as root, by sudo when we are somebody else.
as_root()
{
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		die "need root for: $* (not root, and sudo is not installed)"
	fi
}

# hash_of FILE...: one short key for names and contents; nothing may be missing.
hash_of()
{
	sha256sum -- "$@" | sed 's,  .*/,  ,' | sha256sum | cut -c1-16
}

# lock NAME: hold a lock of the cache until this shell ends.  Two clones may
# run at once; the second waits here and then finds the work done.
lock()
{
	mkdir -p "$CACHE/locks"
	exec {LOCK_FD}>"$CACHE/locks/$1"
	if ! flock -n "$LOCK_FD"; then
		say "waiting for another set-up that holds '$1'"
		flock "$LOCK_FD"
	fi
}

unlock()
{
	exec {LOCK_FD}>&-
}

# new_tmp: a fresh folder in the cache (same filesystem, so that a rename of
# a finished entry is atomic); left-overs of killed runs are removed.
new_tmp()
{
	mkdir -p "$CACHE/tmp"
	find "$CACHE/tmp" -mindepth 1 -maxdepth 1 -mtime +1 -exec rm -rf {} + 2>/dev/null || :
	mktemp -d "$CACHE/tmp/${1:-x}.XXXXXX"
}

# publish TMPDIR ENTRY: make a finished folder appear under its name.
publish()
{
	mkdir -p "$(dirname "$2")"
	chmod 755 "$1"			# mktemp's 700 is not meant to last
	if [ -e "$2" ]; then
		rm -rf "$1"		# somebody was faster; both are equal
	else
		mv -T "$1" "$2"
	fi
}

# ---- packages of suites that the system's apt does not list ----------------

codename()
{
	( . /etc/os-release && printf '%s\n' "${VERSION_CODENAME:?}" )
}

# The mirror that this system's apt uses for its own release; apt itself reads
# its configuration, so both source formats and any option are understood.
apt_mirror()
{
	local suite
	suite=$(codename)
	apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
		awk -v s="$suite" '$2 == s && $3 == "main" { print $1; exit }'
}

PAPT_DIR=$CACHE/apt

# papt SUITES apt-get|apt-cache ARGS...: run apt with private sources and state.
papt()
{
	local suites=$1 tool=$2 d=$PAPT_DIR/$1
	shift 2
	"$tool" -o Dir::Etc::sourcelist="$d/sources.list" \
		-o Dir::Etc::sourceparts=- \
		-o Dir::State::lists="$d/lists" \
		-o Dir::Cache::pkgcache="$d/pkgcache.bin" \
		-o Dir::Cache::srcpkgcache="$d/srcpkgcache.bin" \
		-o Dir::Cache::archives="$d/archives" \
		-o APT::Get::List-Cleanup=true \
		-o APT::Sandbox::User=root \
		-o Acquire::Retries=3 \
		-o Acquire::Languages=none "$@"
}

# papt_update SUITES: suites joined by commas; refreshed at most once a day, so
# that a whole set-up sees one state of the archive.
papt_update()
{
	local suites=$1 d=$PAPT_DIR/$1 mirror s
	if [ -n "$(find "$d/stamp" -mmin -1440 2>/dev/null)" ]; then
		return
	fi
	mirror=$(apt_mirror)
	[ -n "$mirror" ] || die "apt on this system lists no mirror with '$(codename) main'; Debian 12 or 13 is needed"
	mkdir -p "$d/lists/partial" "$d/archives/partial"
	for s in ${suites//,/ }; do
		printf '%s [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n' \
			deb "$mirror" "$s" deb-src "$mirror" "$s"
	done >"$d/sources.list"
	say "reading the package lists of $suites (privately: the system's sources stay as they are)"
	papt "$suites" apt-get -q -q update || die "apt could not read $suites from the mirror that this system uses"
	touch "$d/stamp"
}

# papt_version SUITES PACKAGE: the candidate version, empty if there is none.
papt_version()
{
	papt "$1" apt-cache policy "$2" | awk '/Candidate:/ && $2 != "(none)" { print $2 }'
}

# papt_newest SUITES PACKAGE: the highest version (backports carry a low pin).
papt_newest()
{
	local best= v
	while read -r v; do
		if [ -z "$best" ] || dpkg --compare-versions "$v" gt "$best"; then
			best=$v
		fi
	done < <(papt "$1" apt-cache madison "$2" | awk -F' *[|] *' '!/Sources/ { print $2 }')
	printf '%s\n' "$best"
}

# papt_unpack SUITES DIR PACKAGE=VERSION...: unpack packages, install nothing.
papt_unpack()
{
	local suites=$1 dest=$2 t deb
	shift 2
	t=$(new_tmp deb)
	( cd "$t" && papt "$suites" apt-get -q -q download "$@" ) ||
		{ rm -rf "$t"; return 1; }
	for deb in "$t"/*.deb; do
		dpkg-deb -x "$deb" "$dest"
	done
	rm -rf "$t"
}
