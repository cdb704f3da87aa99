#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Makes train.snapshot anew: runs train.py until it waits for the kernel, takes a snapshot of the process, puts in what
# its stacks need of the files of code, and adds the waves of ../mixed. PYTHON is the folder of a CPython with its headers, UNWINDD the command. It takes root, since
# the files are at paths of an example in a mount namespace of its own.
set -eu
cd "$(dirname "$0")"
here=$PWD
: "${PYTHON:=$(python3 -c 'import sys; print(sys.prefix)')}"
: "${UNWINDD:=unwindd}"
UNWINDD=$(command -v "$UNWINDD")
if [ -z "${IN_EXAMPLE:-}" ]; then
	IN_EXAMPLE=1 PYTHON=$PYTHON UNWINDD=$UNWINDD exec unshare --mount -- sh "$here/make.sh"
fi
mkdir -p /example
mount -t tmpfs none /example
mkdir /example/python
mount --bind "$PYTHON" /example/python
mount -t tmpfs none "$PYTHON" # where its program would look for its library
export LD_LIBRARY_PATH=/example/python/lib
cp train.py tensor.cc /example/
cd /example
g++ -O2 -g -shared -fPIC -I"$(echo python/include/python3*)" -o tensor.so tensor.cc
env -i PATH=/usr/bin:/bin LD_LIBRARY_PATH=/example/python/lib PYTHONPYCACHEPREFIX=/example/cache PYTHONHOME=/example/python PYTHONPATH=/example /example/python/bin/python3 /example/train.py &
pid=$!
sleep 2
"$UNWINDD" snapshot "$pid" -o host.snapshot
"$UNWINDD" stack --format json "$pid" >stacks.json
kill "$pid"
python/bin/python3 "$here/reduce.py" host.snapshot stacks.json reduced.snapshot "$UNWINDD"
python/bin/python3 "$here/join.py" reduced.snapshot "$here/../mixed/mixed.snapshot" "$here/train.snapshot"
