// SPDX-License-Identifier: Apache-2.0

package trace

// DataAccess counts the samples of an event whose instruction accessed memory in one way, as
// perf mem and perf c2c record it. A text is "" where the processor does not tell.
type DataAccess struct {
	Event     int    // an index of Profile.Events
	Operation string // "load", "store", "prefetch" or "execute"
	Level     string // where the data was: "L1 hit", "local RAM", "remote cache (1 hop) hit"
	Snoop     string // how other caches answered: "none", "hit", "miss", "HitM", "forward", "peer"
	TLB       string // how the address was translated: "L1 hit", "walker"
	Locked    bool   // the instruction was locked
	Samples   uint64
	// Latency is the sum of the weights that the processor measured, mostly in its cycles.
	Latency uint64
}
