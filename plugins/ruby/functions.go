// SPDX-License-Identifier: Apache-2.0

package ruby

import (
	"encoding/binary"
	"fmt"
	"sort"

	"github.com/unwindd/unwindd/sdk"
)

// functions are the starts of the module's functions, in memory and ascending. They come from the
// table for unwinding, which a module has without symbols too.
type functions struct{ starts []uint64 }

// maxFunctions bounds the functions of a module.
const maxFunctions = 1 << 20

// findFunctions reads the functions of the module; there are none where the table is not there.
func (r *reader) findFunctions() *functions {
	f := &functions{}
	for i := range r.request.Sections {
		if s := &r.request.Sections[i]; s.Name == ".eh_frame_hdr" {
			if b, err := r.engine.ReadSection(r.ctx, r.request.Object, s.Name); err == nil {
				f.starts = r.parseFunctions(b, s.Address)
			}
			break
		}
	}
	return f
}

// parseFunctions parses the table of .eh_frame_hdr at an address of the module's file, with
// entries of 4 bytes from its start on, as all linkers write it.
func (r *reader) parseFunctions(b []byte, address uint64) []uint64 {
	const version, encodings, header = 1, 0x3b_03_1b, 12
	if len(b) < header || b[0] != version || uint32(b[3])<<16|uint32(b[2])<<8|uint32(b[1]) != encodings {
		return nil
	}
	count := int(binary.LittleEndian.Uint32(b[8:]))
	if count > maxFunctions || count > (len(b)-header)/8 {
		return nil
	}
	starts := make([]uint64, 0, count)
	for i := range count {
		distance := int64(int32(binary.LittleEndian.Uint32(b[header+8*i:])))      //nolint:gosec // signed
		if start, ok := r.request.MemoryAddress(address + uint64(distance)); ok { //nolint:gosec // wraps
			starts = append(starts, start)
		}
	}
	sort.Slice(starts, func(i, k int) bool { return starts[i] < starts[k] })
	return starts
}

// start returns the start of the function of the module that an address is in; 0: unknown.
func (f *functions) start(address uint64) uint64 {
	i := sort.Search(len(f.starts), func(i int) bool { return f.starts[i] > address })
	if i == 0 {
		return 0
	}
	return f.starts[i-1]
}

// findStarts finds the functions of frames, of which those in the module have a table.
func (r *reader) findStarts(threads []sdk.NativeStack) error {
	var list []uint64
	for i := range threads {
		for k := range threads[i].Frames {
			f := &threads[i].Frames[k]
			if _, isKnown := r.starts[f.PC]; isKnown {
				continue
			}
			start := uint64(0)
			if f.InModule {
				start = r.code.start(f.PC)
			}
			if r.starts[f.PC] = start; start == 0 && len(list) < sdk.MaxFindFunctions {
				list = append(list, f.PC)
			}
		}
	}
	if len(list) == 0 {
		return nil
	}
	places, err := r.engine.FindFunctions(r.ctx, list)
	if err == nil && len(places) != len(list) {
		err = fmt.Errorf("FindFunctions: %d functions, expected %d", len(places), len(list))
	}
	for i := range places {
		if places[i].HasStart {
			r.starts[list[i]] = places[i].Start
		}
	}
	return err
}
