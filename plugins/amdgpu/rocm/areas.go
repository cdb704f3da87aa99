// SPDX-License-Identifier: Apache-2.0

package rocm

import (
	"context"
	"encoding/binary"
	"fmt"
)

// areas are the save areas of a queue, one for each XCC, in a row.
type areas struct {
	size  uint64 // of each
	count uint32
}

func (a areas) String() string {
	if a.count == 1 {
		return fmt.Sprintf("a save area of %#x bytes", a.size)
	}
	return fmt.Sprintf("%d save areas of %#x bytes", a.count, a.size)
}

// saveHeader is the header of a save area, which the runtime, the firmware and the
// driver write. Offsets are from that start.
type saveHeader struct {
	stack, stackSize uint64
	waves, wavesSize uint64 // waves is where they end
	debug, debugSize uint64 // space for debuggers behind the last area; 0 where it was not written
}

func (m *memory) readSaveHeader(ctx context.Context, address uint64) (saveHeader, error) {
	var b [saveHeaderSize]byte
	if err := m.read(ctx, address, b[:]); err != nil {
		return saveHeader{}, err
	}
	word := func(offset int) uint64 { return uint64(binary.LittleEndian.Uint32(b[offset:])) }
	return saveHeader{word(0), word(4), word(8), word(12), word(16), word(20)}, nil
}

// isEmpty reports whether there were no waves.
func (h *saveHeader) isEmpty() bool { return h.stackSize == 0 && h.wavesSize == 0 }

// check returns why the header contradicts itself, or nil.
func (h *saveHeader) check() error {
	switch {
	case h.stack < saveHeaderSize || h.stack+h.stackSize > h.waves:
		return fmt.Errorf("its control stack of %#x bytes at offset %#x is not between its header of %#x bytes and its waves' end at %#x",
			h.stackSize, h.stack, saveHeaderSize, h.waves)
	case h.wavesSize > h.waves || h.stack+h.stackSize != h.waves-h.wavesSize:
		return fmt.Errorf("its control stack ends at offset %#x and %#x bytes of waves at %#x, expected one to begin where the other ends",
			h.stack+h.stackSize, h.wavesSize, h.waves)
	}
	return nil
}

// areasOf returns the save areas of a queue. The runtime library of June and July 2026
// recorded as their size the bytes of the waves of the first. The headers have the true
// one: each has the distance to the end of the last area. Where they and the note differ,
// why describes the choice.
func (r *reader) areasOf(ctx context.Context, q *queue, a *agent) (found areas, why string) {
	noted := areas{uint64(q.saveSize), a.xccs}
	h, err := r.memory.readSaveHeader(ctx, q.saveAt)
	if err != nil || h.check() != nil && !h.isEmpty() {
		return noted, "" // reading the area reports that
	}
	isWithin := h.waves <= noted.size || h.isEmpty() && (h.debug == 0 || noted.count == 1)
	if isWithin && (h.debug == 0 || h.debug == noted.size*uint64(noted.count)) {
		return noted, ""
	}
	said := fmt.Sprintf("by the note it has %s, but the header at %#x says that its waves end at offset %#x", noted, q.saveAt, h.waves)
	if h.debug != 0 {
		said += fmt.Sprintf(" and the last area at %#x", h.debug)
	}
	if h.debug != 0 {
		byCount, bySize := noted, noted
		if noted.count > 0 && h.debug%uint64(noted.count) == 0 {
			byCount.size = h.debug / uint64(noted.count)
		}
		if noted.size > 0 && h.debug%noted.size == 0 {
			bySize.count = uint32(h.debug / noted.size) //nolint:gosec // of 32 bits
		}
		for _, guess := range [...]areas{byCount, bySize} {
			if r.isLaidOut(ctx, q.saveAt, guess) && (guess.count > 1 || !isWithin) {
				return guess, fmt.Sprintf("%s: it is read as %s", said, guess)
			}
		}
	}
	switch {
	case isWithin, h.debug != 0 && h.waves > h.debug:
		return noted, ""
	case noted.count == 1:
		return areas{h.waves, 1}, said + ": its waves are read up to there"
	}
	return areas{h.waves, 1}, said + ": where the areas of its other XCCs are is not known: the waves of XCC 0 alone are read"
}

// isLaidOut reports whether the headers of areas, as far as they are there, all lead to the end
// of the last one, with their waves within their areas.
func (r *reader) isLaidOut(ctx context.Context, start uint64, a areas) bool {
	if a.count == 0 || a.count > maxXCCs || a.size < saveHeaderSize {
		return false
	}
	agreed := 0
	for i := range uint64(a.count) {
		h, err := r.memory.readSaveHeader(ctx, start+i*a.size)
		if err != nil {
			continue
		}
		if h.debug != (uint64(a.count)-i)*a.size || !h.isEmpty() && (h.waves > a.size || h.check() != nil) {
			return false
		}
		agreed++
	}
	return agreed >= min(int(a.count), 2)
}
