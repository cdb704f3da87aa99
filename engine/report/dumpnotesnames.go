// SPDX-License-Identifier: Apache-2.0

package report

import "strings"

// flagName is the name of a value of the bits in mask.
type flagName struct {
	mask, value uint64
	name        string
}

// bitNames are names of single bits, from the lowest one on; "-" for one without a name.
func bitNames(prefix, names string) (list []flagName) {
	for i, name := range strings.Fields(names) {
		if name != "-" {
			list = append(list, flagName{1 << i, 1 << i, prefix + name})
		}
	}
	return list
}

// dumpFlags are MINIDUMP_TYPE (minidumpapiset.h).
var dumpFlags = bitNames("MiniDump", `WithDataSegs WithFullMemory WithHandleData FilterMemory ScanMemory WithUnloadedModules
	WithIndirectlyReferencedMemory FilterModulePaths WithProcessThreadData WithPrivateReadWriteMemory WithoutOptionalData
	WithFullMemoryInfo WithThreadInfo WithCodeSegs WithoutAuxiliaryState WithFullAuxiliaryState WithPrivateWriteCopyMemory
	IgnoreInaccessibleMemory WithTokenInformation WithModuleHeaders FilterTriage WithAvxXStateContext WithIptTrace
	ScanInaccessiblePartialPages FilterWriteCombinedMemory`)

// The numbers of MINIDUMP_MEMORY_INFO (winnt.h).
var (
	pageProtections = bitNames("PAGE_", `NOACCESS READONLY READWRITE WRITECOPY EXECUTE EXECUTE_READ EXECUTE_READWRITE EXECUTE_WRITECOPY
		GUARD NOCACHE WRITECOMBINE`)
	pageStates = map[uint32]string{0x1000: "MEM_COMMIT", 0x2000: "MEM_RESERVE", 0x10000: "MEM_FREE"}
	pageTypes  = map[uint32]string{0: "", 0x20000: "MEM_PRIVATE", 0x40000: "MEM_MAPPED", 0x1000000: "MEM_IMAGE"}
)

// flagNames names the bits of a number; bits without a name follow as a number.
func flagNames(n uint64, names []flagName) []string {
	list := []string{}
	for _, f := range names {
		if n&f.mask == f.value {
			list = append(list, f.name)
			n &^= f.mask
		}
	}
	if n != 0 {
		list = append(list, hexNumber(n))
	}
	return list
}

// nameOf is the name of a number, or the number.
func nameOf(n uint32, names map[uint32]string) string {
	if name, ok := names[n]; ok {
		return name
	}
	return hexNumber(uint64(n))
}
