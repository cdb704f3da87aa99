# SPDX-License-Identifier: Apache-2.0
#
# fetch.sh FOLDER: CPython of suites of Debian, unpacked and not installed, wheels of numpy, py-spy and pystack. What is
# there already is kept. FOLDER/status says what could not be had.
set -eu
mkdir -p "$1"
cd "$1"
root=$PWD
: >status

base=$(sed -n 's/^URIs: *//p; s/^deb  *\(\[[^]]*\] *\)\?\([^ ]*\) .*/\2/p' /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null | grep -m 1 /debian) || {
	echo "the machine has no list of Debian's packages" >>status
	exit 0
}

suite_apt() { # SUITE ARGUMENT...
	apt-get -q -o Dir::Etc::SourceList="$root/$1.apt/suite.sources" -o Dir::Etc::SourceParts=/dev/null -o APT::Architecture=amd64 -o APT::Architectures=amd64 \
		-o APT::Sandbox::User= -o Dir::State::lists="$root/$1.apt/lists" -o Dir::Cache="$root/$1.apt/cache" -o Dir::State::status="$root/$1.apt/status" \
		-o Acquire::Languages=none -o Debug::NoLocking=1 "${@:2}"
}

suite() { # SUITE PACKAGE...
	[ ! -d "$1" ] || return 0
	mkdir -p "$1.apt"/{lists/partial,cache/archives/partial,deb} "$1.new"
	: >"$1.apt/status"
	printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n' "$base" "$1" >"$1.apt/suite.sources"
	suite_apt "$1" update
	for p in "${@:2}"; do
		suite_apt "$1" --print-uris download "$p" >/dev/null 2>&1 || { echo "$1 has no package $p" >>status; continue; }
		echo "$p" >>"$1.apt/list"
	done
	(cd "$1.apt/deb" && suite_apt "$1" download $(cat ../list))
	for f in "$1.apt"/deb/*.deb; do dpkg-deb -x "$f" "$1.new"; done
	rm -rf "$1.apt"
	mv "$1.new" "$1"
}

python() { # VERSION...
	for v; do
		echo "python$v-minimal python$v libpython$v-minimal libpython$v-stdlib python$v-dbg libpython$v-dbg libpython$v-dev libpython$v"
	done
}

libraries="libc6 libexpat1 zlib1g libsqlite3-0 liblzma5 libuuid1 libncursesw6 libtinfo6 libgcc-s1 libstdc++6 libssl3t64 libffi8 libbz2-1.0 libreadline8t64 libzstd1 libdb5.3t64"
suite sid $(python 3.13 3.14 3.15) $libraries libmpdec4
suite trixie $(python 3.13) $libraries
suite bookworm $(python 3.11)
suite bullseye $(python 3.9) libffi7 libssl1.1 libmpdec3

wheels() { # FOLDER ARGUMENT...
	[ ! -d "$1" ] || return 0
	if "${@:2}" --quiet --no-deps --only-binary :all: --target "$1.new"; then
		mv "$1.new" "$1"
	else
		echo "no wheels for $1" >>status
	fi
}

wheels peers python3 -m pip install py-spy pystack
for v in 3.8 3.9 3.10 3.11 3.12 3.13 3.14 3.15; do
	wheels "numpy-$v" python3 -m pip install --python-version "$v" --implementation cp numpy
done
