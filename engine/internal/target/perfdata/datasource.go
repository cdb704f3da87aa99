// SPDX-License-Identifier: Apache-2.0

package perfdata

import "strings"

// DataSource says which memory an instruction reached (union perf_mem_data_src). 0 is that of a
// sample without it.
type DataSource uint64

// The places of its parts: the first bit, and how many there are.
var (
	dataOperation = dataPart{0, 5}
	dataLevel     = dataPart{5, 14}
	dataSnoop     = dataPart{19, 5}
	dataLock      = dataPart{24, 2}
	dataTLB       = dataPart{26, 7}
	dataLevelNum  = dataPart{33, 4}
	dataRemote    = dataPart{37, 1}
	dataSnoopX    = dataPart{38, 2}
)

type dataPart struct{ first, bits uint }

func (p dataPart) of(d DataSource) uint64 { return uint64(d) >> p.first & (1<<p.bits - 1) }

// The names of bits, the lowest first; "" for none.
var (
	operationNames = [...]string{"", "load", "store", "prefetch", "execute"}
	levelNames     = [...]string{
		"", "", "", "L1", "LFB", "L2", "L3", "local RAM", "remote RAM (1 hop)", "remote RAM (2 hops)", "remote cache (1 hop)", "remote cache (2 hops)", "I/O", "uncached",
	}
	levelNumbers = [...]string{
		"", "L1", "L2", "L3", "L4", "L2 MHB", "memory-side cache", "L0", "uncached", "CXL", "I/O", "any cache", "LFB", "RAM", "PMEM", "",
	}
	snoopNames  = [...]string{"", "none", "hit", "miss", "HitM"}
	snoopXNames = [...]string{"forward", "peer"}
	tlbNames    = [...]string{"", "", "", "L1", "L2", "walker", "fault handler"}
)

const (
	dataHit, dataMiss = 2, 4
	tlbHit, tlbMiss   = 2, 4
)

// IsKnown reports whether the operation or the level is known. Most events record that neither is
// (PERF_MEM_NA).
func (d DataSource) IsKnown() bool {
	const notAvailable = 1
	number := dataLevelNum.of(d)
	return dataOperation.of(d)&^notAvailable != 0 || dataLevel.of(d)&^notAvailable != 0 || number != 0 && levelNumbers[number] != ""
}

// bitNames joins the names of the bits that are set.
func bitNames(names []string, bits uint64) string {
	var list []string
	for i, name := range names {
		if name != "" && bits>>i&1 != 0 {
			list = append(list, name)
		}
	}
	return strings.Join(list, " or ")
}

// withResult adds whether there was a hit to a name.
func withResult(name string, bits uint64, hit, miss uint64) string {
	switch {
	case name == "":
		return ""
	case bits&hit != 0:
		return name + " hit"
	case bits&miss != 0:
		return name + " miss"
	}
	return name
}

// Operation is the kind of access: "load", "store", "prefetch", "execute"; "" where it is not known.
func (d DataSource) Operation() string { return bitNames(operationNames[:], dataOperation.of(d)) }

// Level is where the data was, as "L1 hit" or "remote RAM"; "" where it is not known. Newer
// processors tell one level by number, older ones by bits.
func (d DataSource) Level() string {
	bits := dataLevel.of(d)
	name := levelNumbers[dataLevelNum.of(d)]
	if name != "" && dataRemote.of(d) != 0 {
		name = "remote " + name
	}
	if old := bitNames(levelNames[:], bits); name == "" || old != "" && dataRemote.of(d) == 0 {
		name = old
	}
	return withResult(name, bits, dataHit, dataMiss)
}

// Snoop is how other caches answered: "HitM" where one had changed the line; "" where it is not
// known.
func (d DataSource) Snoop() string {
	if x := bitNames(snoopXNames[:], dataSnoopX.of(d)); x != "" {
		return x
	}
	return bitNames(snoopNames[:], dataSnoop.of(d))
}

// TLB is how the address was translated: "L1 hit", "walker"; "" where it is not known.
func (d DataSource) TLB() string {
	bits := dataTLB.of(d)
	return withResult(bitNames(tlbNames[:], bits), bits, tlbHit, tlbMiss)
}

// IsLocked reports whether the access was of a locked instruction.
func (d DataSource) IsLocked() bool { return dataLock.of(d)&2 != 0 }
