// SPDX-License-Identifier: Apache-2.0

package main

import "time"

// attacks are all kinds, in the order in which they run.
var attacks = []*kind{
	{"te-and-cl", "requests whose ends two readers see at different places", "probes", probed(framings)},
	{"other-sites", "requests of pages of other sites, rebound names, WebSockets, CONNECT", "probes", probed(sites)},
	{"paths", "names that lead out of folders", "probes", probed(paths)},
	{"strangers", "callers without a token", "probes", probed(strangers)},

	{"idle-connections", "1,500 connections that ask once and stay", "connections", stay(1500, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")},
	{"silent-connections", "1,500 connections that say nothing", "connections", stay(1500, "")},
	{"h2-connections", "1,500 connections of HTTP/2 without a stream", "connections", stay(1500, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")},
	{"slow-headers", "200 requests whose headers come a byte at a time", "connections", drip(200, beginHeaders, "a", 500*time.Millisecond)},
	{"upgrades", "WebSockets that nobody has agreed to", "connections", upgrades},

	{"slow-bodies", "64 bodies that come a byte at a time", "bodies", drip(64, beginBody, "x", time.Second)},
	{"slow-chunks", "64 bodies of chunks, a byte at a time", "bodies", drip(64, beginChunked, "1\r\nx\r\n", time.Second)},
	{"spool-held", "8 bodies of 12 MB that never end", "bodies", drip(8, beginUpload, "x", 2*time.Second)},
	{"slow-readers", "32 large reports that are read a byte at a time", "bodies", readSlowly},
	{"pipelining", "requests whose answers are not read", "bodies", pipeline},

	{"h2-held-messages", "messages of gRPC of 32 MiB that never end", "streams", sessions(3, 1<<20, heldMessages)},
	{"h2-trickle", "messages of gRPC that come a byte to each frame", "streams", sessions(2, 1<<20, trickle)},
	{"h2-silent-streams", "streams of every method that send nothing", "streams", sessions(8, 1<<20, silentStreams)},
	{"h2-silent-bodies", "requests by HTTP/2 without their bodies", "streams", sessions(8, 1<<20, silentBodies)},
	{"grpc-methods", "calls of every method, health and reflection too, that stay open", "streams", sessions(8, 1<<20, openedMethods)},
	{"h2-no-window", "reports by HTTP/2 of which nothing is taken", "streams", sessions(4, 0, noWindow)},

	{"rapid-reset", "streams that are begun and taken back", "frames", sessions(4, 1<<20, rapidReset)},
	{"continuations", "headers that never end", "frames", sessions(4, 1<<20, continuations)},
	{"controls", "settings, pings and priorities without end", "frames", controls},
	{"huge-headers", "headers of a megabyte, and 20,000 of them", "frames", hugeHeaders},
	{"huge-options", "URLs, options and expressions as large as they can be", "frames", hugeOptions},

	{"bombs", "files of gzip, xz, zstd and zip that unpack to 3 GiB, and in one another", "files", upload(4, bombs)},
	{"shared-names", "minidumps of 60,000 modules with one name of 60,000 letters", "files", upload(4, names)},
	{"longest", "cores of 40,000 threads: the work that takes the longest", "files", upload(8, longest)},
	{"counts", "cores, minidumps, snapshots, recordings and ELF files with counts of 2^31", "files", upload(4, counts)},
	{"profiles", "OTLP and pprof profiles: strings without end, nesting, indices to nothing", "files", upload(4, profiles)},

	{"many-tokens", "16 tokens of one address that ask for as much as they can", "shares", manyTokens},
	{"object-poison", "files with wrong names for build IDs of others", "shares", poisonObjects},
	{"objects", "files that push out others'", "shares", floodObjects},
	{"reports", "reports that push out others'", "shares", floodReports},
	{"crawling", "files that nobody has", "shares", crawl},
	{"just-in-time", "walks whose caller answers when the server has almost given up", "shares", justInTime},
}
