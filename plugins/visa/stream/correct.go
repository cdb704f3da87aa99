package stream

import (
	"fmt"
	"slices"
)

// groupBytes is the most that one instruction saves: 256 bytes of registers.
const groupBytes = 256

// Corrected returns the frames of the objects with the offsets of their saves
// put right, and says what was put right and what cannot be. Of a register that
// is saved at an offset which cannot be right, the storage is Unknown.
//
// For DG2 and PVC, compilers until June 2023 multiplied the offset at which an
// instruction saves by half the bytes of a register. The registers that the
// same instruction saves follow at their true distance. It shows by saves that lie
// beyond the end of a frame, and concerns the whole stream: a frame that is large
// enough does not show it.
func (s *Stream) Corrected() (frames []Frame, corrections []string) {
	for i := range s.Objects {
		frames = append(frames, s.Objects[i].Frame)
	}
	if !slices.ContainsFunc(frames, func(f Frame) bool { return f.beyond() > 0 }) {
		return frames, nil
	}
	scaled := true
	for i := range frames {
		scaled = scaled && frames[i].scaled()
	}
	for i := range frames {
		f := &frames[i]
		beyond := f.beyond()
		if scaled {
			if f.eachSave(unscale) > 0 {
				corrections = append(corrections, fmt.Sprintf("object %d (%q): frame: offsets of saves are too large by a factor that the compiler is known for, %d of them beyond the frame's %d bytes: corrected where frames are used", i, s.Objects[i].Name, beyond, f.Size))
			}
		} else if f.eachSave(func(g *SavedRegister) bool { return g.forget(f.Size) }) > 0 {
			corrections = append(corrections, fmt.Sprintf("object %d (%q): frame: %d saves lie beyond the frame's %d bytes: where they are is unknown", i, s.Objects[i].Name, beyond, f.Size))
		}
	}
	return frames, corrections
}

// relative says whether a register is saved in the frame.
func (g *SavedRegister) relative() bool { return g.Location.Storage == Memory && !g.Location.Absolute }

// outside says whether a register is saved outside of a frame of so many bytes.
func (g *SavedRegister) outside(size uint16) bool {
	return g.relative() && (g.Location.Offset < 0 || int64(g.Location.Offset)+int64(g.Bytes) > int64(size))
}

// beyond counts the saves outside of the frame.
func (f *Frame) beyond() (n int) {
	for _, list := range [][]Save{f.CalleeSaves, f.CallerSaves} {
		for i := range list {
			for j := range list[i].Registers {
				if list[i].Registers[j].outside(f.Size) {
					n++
				}
			}
		}
	}
	return n
}

// scaled says whether all offsets of the frame's saves can be of a compiler that
// multiplies them: they come apart into an offset and a distance, and put right
// they are in the frame and beside each other.
func (f *Frame) scaled() bool {
	for _, list := range [][]Save{f.CalleeSaves, f.CallerSaves} {
		for i := range list {
			var taken []int64 // beginning and end of each save, in turn
			for _, g := range list[i].Registers {
				if !g.relative() {
					continue
				}
				base, distance, ok := g.parts()
				if !ok || base+distance+int64(g.Bytes) > int64(f.Size) {
					return false
				}
				taken = append(taken, base+distance)
			}
			slices.Sort(taken)
			for j := 1; j < len(taken); j++ {
				if taken[j] == taken[j-1] {
					return false
				}
			}
		}
	}
	return true
}

// parts are the true offset at which the instruction begins to save that saves a
// register, and the distance of the register from there.
func (g *SavedRegister) parts() (base, distance int64, ok bool) {
	size, offset := int64(g.Bytes), int64(g.Location.Offset)
	if size != 32 && size != 64 || offset < 0 {
		return 0, 0, false
	}
	step := size * size / 2 // what a register further is when multiplied
	base, distance = offset/step*size, offset%step
	return base, distance, distance%size == 0 && distance < groupBytes
}

// unscale puts an offset right, and says whether it was wrong.
func unscale(g *SavedRegister) bool {
	if !g.relative() {
		return false
	}
	base, distance, _ := g.parts()
	wrong := int64(g.Location.Offset) != base+distance
	g.Location.Offset = int32(base + distance)
	return wrong
}

// forget marks a save outside of a frame of so many bytes.
func (g *SavedRegister) forget(size uint16) bool {
	if !g.outside(size) {
		return false
	}
	g.Location = Location{Storage: Unknown}
	return true
}

// eachSave applies change to a copy of each save, and counts those that it says
// it changed.
func (f *Frame) eachSave(change func(*SavedRegister) bool) (changed int) {
	for _, list := range []*[]Save{&f.CalleeSaves, &f.CallerSaves} {
		*list = slices.Clone(*list)
		for i := range *list {
			s := &(*list)[i]
			s.Registers = slices.Clone(s.Registers)
			for j := range s.Registers {
				if change(&s.Registers[j]) {
					changed++
				}
			}
		}
	}
	return changed
}
