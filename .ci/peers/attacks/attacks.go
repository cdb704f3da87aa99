// SPDX-License-Identifier: Apache-2.0

package main

import "time"

// attacks are all kinds, in the order in which they run.
var attacks = []*kind{
	{name: "te-and-cl", does: "requests whose ends two readers see at different places", group: "probes", run: probed(framings)},
	{name: "other-sites", does: "requests of pages of other sites, rebound names, WebSockets, CONNECT", group: "probes", run: probed(sites)},
	{name: "paths", does: "names that lead out of folders", group: "probes", run: probed(paths)},
	{name: "strangers", does: "callers without a token", group: "probes", run: probed(strangers)},

	{name: "idle-connections", does: "1,500 connections that ask once and stay", group: "connections", run: stay(1500, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")},
	{name: "silent-connections", does: "1,500 connections that say nothing", group: "connections", run: stay(1500, "")},
	{name: "h2-connections", does: "1,500 connections of HTTP/2 without a stream", group: "connections", run: stay(1500, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")},
	{name: "slow-headers", does: "200 requests whose headers come a byte at a time", group: "connections", run: drip(200, beginHeaders, "a", 500*time.Millisecond)},
	{name: "upgrades", does: "WebSockets that nobody has agreed to", group: "connections", run: upgrades},

	{name: "slow-bodies", does: "64 bodies that come a byte at a time", group: "bodies", run: drip(64, beginBody, "x", time.Second)},
	{name: "slow-chunks", does: "64 bodies of chunks, a byte at a time", group: "bodies", run: drip(64, beginChunked, "1\r\nx\r\n", time.Second)},
	{name: "spool-held", does: "8 bodies of 12 MB that never end", group: "bodies", run: drip(8, beginUpload, "x", 2*time.Second)},
	{name: "slow-readers", does: "32 large reports that are read a byte at a time", group: "bodies", run: readSlowly},
	{name: "pipelining", does: "requests whose answers are not read", group: "bodies", run: pipeline},

	{name: "h2-held-messages", does: "messages of gRPC of 32 MiB that never end", group: "streams", run: sessions(3, 1<<20, endlessMessages)},
	{name: "h2-trickle", does: "messages of gRPC that come a byte to each frame", group: "streams", run: sessions(2, 1<<20, trickle)},
	{name: "h2-silent-streams", does: "streams of every method that send nothing", group: "streams", run: sessions(8, 1<<20, silentStreams)},
	{name: "h2-silent-bodies", does: "requests by HTTP/2 without their bodies", group: "streams", run: sessions(8, 1<<20, silentBodies)},
	{name: "grpc-methods", does: "calls of every method, health and reflection too, that stay open", group: "streams", run: sessions(8, 1<<20, openedMethods)},
	{name: "h2-no-window", does: "reports by HTTP/2 of which nothing is taken", group: "streams", run: sessions(4, 0, noWindow)},

	{name: "rapid-reset", does: "streams that are begun and taken back", group: "frames", run: sessions(4, 1<<20, rapidReset)},
	{name: "continuations", does: "headers that never end", group: "frames", run: sessions(4, 1<<20, continuations)},
	{name: "controls", does: "settings, pings and priorities without end", group: "frames", run: controls},
	{name: "huge-headers", does: "headers of a megabyte, and 20,000 of them", group: "frames", run: hugeHeaders},
	{name: "huge-options", does: "URLs, options and expressions as large as they can be", group: "frames", run: hugeOptions},

	upload("bombs", "files of gzip, xz, zstd and zip that unpack to 3 GiB, and in one another", 4, bombs),
	upload("shared-names", "minidumps of 60,000 modules with one name of 60,000 letters", 4, names),
	upload("longest", "cores of 40,000 threads: the work that takes the longest", 8, longest),
	upload("counts", "cores, minidumps, snapshots, recordings and ELF files with counts of 2^31", 4, counts),
	upload("profiles", "OTLP and pprof profiles: strings without end, nesting, indices to nothing", 4, profiles),

	{name: "many-tokens", does: "16 tokens of one address that ask for as much as they can", group: "shares", run: manyTokens},
	{name: "object-poison", does: "files with wrong names for build IDs of others", group: "shares", run: poisonObjects},
	{name: "objects", does: "files that push out others'", group: "shares", run: floodObjects},
	{name: "reports", does: "reports that push out others'", group: "shares", run: floodReports},
	{name: "crawling", does: "files that nobody has", group: "shares", run: crawl},
	{name: "just-in-time", does: "walks whose caller answers when the server has almost given up", group: "shares", run: justInTime},
}
