#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes job, and the snapshots of eight of its processes, anew, in a folder and with an environment of their
# own, so that they hold nothing of the machine they were made on. Needs gcc for x86-64, root, and unwindd in PATH.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=/srv/example
rm -rf "$work"
mkdir -p "$work"
cp "$here/job.c" "$work"
cd "$work"
gcc -O1 -fno-inline -fno-optimize-sibling-calls -fno-stack-protector -g -static -nostdlib -ffile-prefix-map="$work=/example" -Wl,--build-id -o job job.c
truncate -s 4096 meeting
rm -rf "$here/stacks" && mkdir "$here/stacks"

# node starts the ranks of a node, with a host name of its own, and takes their snapshots when all nodes have started.
node() {
	hostname "node$1"
	for rank in "${@:2}"; do
		env -i RANK=$rank ./job &
		pid[rank]=$!
	done
	sleep 2
	for rank in "${@:2}"; do
		unwindd snapshot "${pid[$rank]}" -o "$here/stacks/rank$rank.snapshot" # unwindd collect takes all at one moment
		chmod 644 "$here/stacks/rank$rank.snapshot"
	done
	sleep 2
	kill "${pid[@]}"
}
export -f node
export here
unshare --uts bash -ec 'node 0 0 1 2 3' &
unshare --uts bash -ec 'node 1 4 5 6 7' &
wait
cp job "$here/job"
rm -rf "$work"
ls -l "$here" "$here/stacks"
