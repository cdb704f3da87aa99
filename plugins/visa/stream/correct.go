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
// put right, and says what was wrong. Where offsets cannot be right, and what
// they should be does not follow, the storage of all saves is Unknown.
//
// For DG2 and PVC, compilers until June 2023 multiplied the offset at which an
// instruction saves by half the bytes of a register. The registers that the
// same instruction saves follow at their true distance. It shows by saves that lie
// beyond the end of a frame, and concerns the whole stream: in a frame that is
// large enough it does not show.
func (s *Stream) Corrected() (frames []Frame, corrections []string) {
	wrong, scaled := -1, true
	for i := range s.Objects {
		o := &s.Objects[i]
		frames = append(frames, o.Frame)
		scaled = scaled && o.scaled()
		if wrong < 0 && o.Frame.savesOutside() {
			wrong = i
		}
	}
	switch {
	case wrong < 0:
		return frames, nil
	case !scaled:
		for i := range frames {
			frames[i].eachSave(func(g *SavedRegister) { g.Location = Location{Storage: Unknown} })
		}
		return frames, []string{fmt.Sprintf("object %d (%q): frame: registers are saved beyond its %d bytes: where the stream's frames save registers is unknown",
			wrong, s.Objects[wrong].Name, frames[wrong].Size)}
	}
	for i := range frames {
		put := map[int32]int32{} // the wrong offsets, and the right ones
		frames[i].eachSave(func(g *SavedRegister) {
			if from, to := g.Location.Offset, g.unscaled(); g.Location.relative() && from != to {
				put[from], g.Location.Offset = to, to
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

// eachSave applies change to a copy of each save.
func (f *Frame) eachSave(change func(*SavedRegister)) {
	for _, list := range []*[]Save{&f.CalleeSaves, &f.CallerSaves} {
		*list = slices.Clone(*list)
		for i := range *list {
			s := &(*list)[i]
			s.Registers = slices.Clone(s.Registers)
			for j := range s.Registers {
				change(&s.Registers[j])
			}
		}
	}
}

// relative says whether a location is in the frame.
func (l Location) relative() bool { return l.Storage == Memory && !l.Absolute }

// savesOutside says whether the frame saves registers outside of itself.
func (f *Frame) savesOutside() bool {
	for _, list := range [][]Save{f.CalleeSaves, f.CallerSaves} {
		for i := range list {
			for _, g := range list[i].Registers {
				at := int64(g.Location.Offset)
				if g.Location.relative() && (at < 0 || at+int64(g.Bytes) > int64(f.Size)) {
					return true
				}
			}
		}
	}
	return false
}

// scaled says whether all offsets of the object's saves can be of a compiler
// that multiplies them: put right they are in the frame and beside each other.
func (o *Object) scaled() bool {
	f := &o.Frame
	for _, v := range o.Variables {
		for _, i := range v.Intervals {
			if i.Location.relative() && i.Location.Offset >= int32(f.Size) {
				return false // the frame is larger than it says: a stream has 16 bits of its size
			}
		}
	}
	for _, list := range [][]Save{f.CalleeSaves, f.CallerSaves} {
		for i := range list {
			var taken []int32
			for _, g := range list[i].Registers {
				if !g.Location.relative() {
					continue
				}
				to := g.unscaled()
				if to < 0 || int64(to)+int64(g.Bytes) > int64(f.Size) {
					return false
				}
				taken = append(taken, to)
			}
			slices.Sort(taken)
			if n := len(taken); len(slices.Compact(taken)) < n {
				return false
			}
		}
	}
	return true
}

// unscaled is the offset of a save in the frame if it was multiplied; negative
// if it cannot have been.
func (g *SavedRegister) unscaled() int32 {
	size, offset := int32(g.Bytes), g.Location.Offset
	if size != 32 && size != 64 || offset < 0 {
		return -1
	}
	step := size * size / 2 // how far apart two registers are when multiplied
	distance := offset % step
	if distance%size != 0 || distance >= groupBytes {
		return -1
	}
	return offset/step*size + distance
}
