// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// groupBytes is the most that one instruction saves.
const groupBytes = 256

// Corrected returns the frames of the objects with the offsets of their saves
// corrected, and a description of the corrections. Where offsets are wrong and
// cannot be corrected, the storage of all saves in frames is Unknown.
//
// For DG2 and PVC, compilers until June 2023 multiplied the offset at which an
// instruction saves by half the bytes of a register. The registers that the same
// instruction saves follow at their true distance. Saves beyond the end of a frame
// show it, for the whole stream: it does not show in a frame that is large enough.
func (s *Stream) Corrected() (frames []Frame, corrections []string) {
	wrong, scaled := -1, true
	for i := range s.Objects {
		o := &s.Objects[i]
		frames = append(frames, o.Frame)
		scaled = scaled && o.isScaled()
		if wrong < 0 && o.Frame.savesOutside() {
			wrong = i
		}
	}
	switch {
	case wrong < 0:
		return frames, nil
	case !scaled:
		for i := range frames {
			frames[i].eachSave(func(l *Location, _ uint16) { *l = Location{Storage: Unknown} })
		}
		return frames, []string{fmt.Sprintf("object %d (%q): frame: registers are saved beyond its %d bytes: where the stream's frames save registers is unknown",
			wrong, s.Objects[wrong].Name, frames[wrong].Size)}
	}
	for i := range frames {
		put := map[int32]int32{} // the wrong offsets, and the right ones
		frames[i].eachSave(func(l *Location, bytes uint16) {
			if to := unscaled(l.Offset, bytes); to != l.Offset {
				put[l.Offset], l.Offset = to, to
			}
		})
		var list []string
		for _, from := range slices.Sorted(maps.Keys(put)) {
			list = append(list, fmt.Sprintf("%d is %d", from, put[from]))
		}
		if list != nil {
			corrections = append(corrections, fmt.Sprintf("object %d (%q): frame: the compiler multiplied offsets at which registers are saved: %s",
				i, s.Objects[i].Name, strings.Join(list, ", ")))
		}
	}
	return frames, corrections
}

// eachSave applies change to a copy of each location of saved bytes in the
// frame.
func (f *Frame) eachSave(change func(l *Location, bytes uint16)) {
	for _, list := range []*[]Save{&f.CalleeSaves, &f.CallerSaves} {
		*list = slices.Clone(*list)
		for i := range *list {
			s := &(*list)[i]
			s.Registers = slices.Clone(s.Registers)
			for j := range s.Registers {
				if g := &s.Registers[j]; g.Location.isRelative() {
					change(&g.Location, g.Bytes)
				}
			}
		}
	}
}

// isRelative reports whether a location is in the frame.
func (l Location) isRelative() bool { return l.Storage == Memory && !l.IsAbsolute }

// savesOutside reports whether the frame has saves beyond its end.
func (f *Frame) savesOutside() bool {
	for _, list := range [][]Save{f.CalleeSaves, f.CallerSaves} {
		for i := range list {
			for _, g := range list[i].Registers {
				offset := int64(g.Location.Offset)
				if g.Location.isRelative() && (offset < 0 || offset+int64(g.Bytes) > int64(f.Size)) {
					return true
				}
			}
		}
	}
	return false
}

// isScaled reports whether a compiler that multiplies offsets can have written all
// saves of the object.
func (o *Object) isScaled() bool {
	f := &o.Frame
	for _, v := range o.Variables {
		for _, i := range v.Intervals {
			if i.Location.isRelative() && i.Location.Offset >= int32(f.Size) {
				return false // the frame is larger than its size: a stream has 16 bits of it
			}
		}
	}
	for _, list := range [][]Save{f.CalleeSaves, f.CallerSaves} {
		for i := range list {
			if !list[i].isScaled(f.Size) {
				return false
			}
		}
	}
	return true
}

// isScaled reports whether the offsets of a save can have been multiplied. Then,
// corrected, they lie in the frame of size bytes and do not overlap, and each
// register either is the first that its instruction saves or follows the one
// before.
func (s *Save) isScaled(size uint16) bool {
	saved := map[int32]uint16{} // the registers, by the offsets of the stream
	taken := map[int32]bool{}
	for _, g := range s.Registers {
		if g.Location.isRelative() {
			saved[g.Location.Offset] = g.Offset
		}
	}
	for _, g := range s.Registers {
		if !g.Location.isRelative() {
			continue
		}
		to := unscaled(g.Location.Offset, g.Bytes)
		if to < 0 || taken[to] || int64(to)+int64(g.Bytes) > int64(size) {
			return false
		}
		taken[to] = true
		before, ok := saved[g.Location.Offset-int32(g.Bytes)]
		if first := g.Location.Offset%apart(g.Bytes) == 0; !first && (!ok || before+g.Bytes != g.Offset) {
			return false
		}
	}
	return true
}

// apart returns the multiplied distance between two neighbouring registers
// that are saved by an instruction each.
func apart(bytes uint16) int32 { return int32(bytes) * int32(bytes) / 2 }

// unscaled returns the true offset of a save of so many bytes, if its offset
// was multiplied; negative if it cannot have been.
func unscaled(offset int32, bytes uint16) int32 {
	size := int32(bytes)
	if size != 32 && size != 64 || offset < 0 {
		return -1
	}
	first, distance := offset/apart(bytes)*size, offset%apart(bytes)
	if distance%size != 0 || distance >= groupBytes {
		return -1
	}
	return first + distance
}
