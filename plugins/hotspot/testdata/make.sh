#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make.sh JAVA17 JAVA25: makes mixed17.gz and virtual25.gz, by root on x86_64. JAVA17 and JAVA25 are the folders of JDKs.
set -eu
peers=$(cd "$(dirname "$0")/../../../.ci/peers" && pwd)
out=$(cd "$(dirname "$0")" && pwd)
mkdir -p /example/hotspot
cd /example/hotspot
cp "$peers/runtimes/hotspot/testdata/Mix.java" "$peers/runtimes/hotspot/testdata/mix.c" "$out/Virtual.java" .
"$1/bin/javac" -nowarn -g --release 8 -d . Mix.java
"$2/bin/javac" -g --release 21 -d . Virtual.java
gcc -shared -fPIC -O1 -I"$1/include" -I"$1/include/linux" -o libmix.so mix.c
ulimit -c unlimited
record() {
	java=$1 file=$2 only=$3
	shift 3
	rm -f core input log
	mkfifo input
	sleep 600 >input &
	env -i LANG=C.UTF-8 PATH=/usr/bin "$java/bin/java" -Xmx32m -Duser.home=/example -Duser.name=user \
		-XX:CompressedClassSpaceSize=16m -cp /example/hotspot "$@" <input >log 2>&1 &
	pid=$!
	until grep -q ready log; do sleep 0.2; done
	kill -ABRT $pid
	wait $pid || true
	(cd "$peers" && go run ./runtimes/hotspot/record -only "$only" -o "$out/$file" /example/hotspot/core)
}
record "$1" mixed17.gz Mix Mix 60001 /example/hotspot/libmix.so
record "$2" virtual25.gz Virtual Virtual 20000
rm -r /example/hotspot
