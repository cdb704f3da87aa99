// SPDX-License-Identifier: Apache-2.0

package target

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/unwindd/unwindd/engine/trace"
)

// ELFSymbols returns the SymbolID of an ELF file from its base name and build ID, as
// Breakpad's dump_syms writes it: the first 16 bytes of the build ID are a GUID in
// little-endian order, and the age is 0. It is zero without a build ID.
func ELFSymbols(name string, buildID []byte) trace.SymbolID {
	if len(buildID) == 0 {
		return trace.SymbolID{}
	}
	var g [16]byte // a shorter build ID is followed by zeros
	copy(g[:], buildID)
	return trace.SymbolID{
		DebugFile: name,
		DebugID: fmt.Sprintf("%08X%04X%04X%X0",
			binary.LittleEndian.Uint32(g[:]), binary.LittleEndian.Uint16(g[4:]), binary.LittleEndian.Uint16(g[6:]), g[8:]),
		CodeID: hex.EncodeToString(buildID),
	}
}
