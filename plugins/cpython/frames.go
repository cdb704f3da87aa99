// SPDX-License-Identifier: Apache-2.0

package cpython

import (
	"errors"
	"fmt"
)

// frame is a frame of Python, or from 3.12 on one that marks where the C function begins that
// executes the frames further in.
type frame struct {
	address  uint64
	code     uint64 // the address of its code object
	previous uint64
	isMarker bool
	// isEntry says, of 3.11, that the C function was called for this frame.
	isEntry     bool
	instruction uint64 // the address of the instruction that is executed, from 3.11 on
	last        int32  // the number of that instruction before 3.11: in bytes, or of two bytes each in 3.10
	copy        int32  // which copy of the instructions it executes
	line        int32  // before 3.11, where it is traced; 0: not known

	resolved *code
	position position
}

// The owners of frames.
const (
	ownerGenerator = 1
	ownerMarker    = 3 // and above: a frame of the interpreter, not of Python
	maxOwner       = 4
)

// maxFrames bounds the frames of a thread.
const maxFrames = 1 << 16

// chain is the list of the frames of a thread's state, innermost first.
type chain struct {
	next   uint64 // the address of the next frame; 0: there is none
	frames []*frame
	seen   map[uint64]bool
	err    error // why the frames from there on are missing
}

// readChains reads frames of all chains, one frame of each at a time.
func (r *reader) readChains(chains []*chain) {
	active := make([]*chain, 0, len(chains))
	for _, c := range chains {
		if c.seen = map[uint64]bool{}; c.err == nil && c.next != 0 {
			active = append(active, c)
		}
	}
	addresses := make([]uint64, 0, len(active))
	for len(active) > 0 && r.ctx.Err() == nil {
		addresses = addresses[:0]
		for _, c := range active {
			addresses = append(addresses, c.next)
		}
		r.mem.Prefetch(addresses, uint64(r.layout.frame.size)) //nolint:gosec // known in all versions
		left := active[:0]
		for _, c := range active {
			if c.step(r); c.err == nil && c.next != 0 {
				left = append(left, c)
			}
		}
		active = left
	}
	r.resolve(chains)
}

// step reads the next frame of a chain.
func (c *chain) step(r *reader) {
	switch {
	case c.seen[c.next]:
		c.err = fmt.Errorf("frame at %#x follows itself", c.next)
		return
	case len(c.frames) >= maxFrames:
		c.err = fmt.Errorf("frame at %#x: there are more than %d", c.next, maxFrames)
		return
	}
	c.seen[c.next] = true
	f, err := r.readFrame(c.next)
	if err != nil {
		c.err = fmt.Errorf("frame at %#x: %w", c.next, err)
		return
	}
	c.frames, c.next = append(c.frames, f), f.previous
}

// readFrame reads the frame at an address.
func (r *reader) readFrame(address uint64) (*frame, error) {
	if err := checkPointer(address); err != nil {
		return nil, err
	}
	l := &r.layout.frame
	b, err := r.mem.Bytes(address, uint64(l.size)) //nolint:gosec // known in all versions
	if err != nil {
		return nil, err
	}
	f := &frame{address: address, code: r.word(b, l.code), previous: r.word(b, l.previous), instruction: r.word(b, l.instruction)}
	f.copy = int32(r.part(b, l.tlbcIndex, 4)) //nolint:gosec // signed in C
	if r.layout.minor < 11 {
		return f, r.readFrameObject(f, b)
	}
	owner := r.part(b, l.owner, 1)
	if owner > maxOwner || r.layout.minor == 11 && owner >= ownerMarker {
		return nil, fmt.Errorf("its owner is %d, expected at most %d", owner, maxOwner)
	}
	f.isMarker, f.isEntry = owner >= ownerMarker, r.part(b, l.isEntry, 1) == 1
	if r.layout.minor >= 14 {
		f.code &^= 3 // whether the frame has a reference of its own
	}
	return f, nil
}

// readFrameObject reads what frames before 3.11 have, which are objects.
func (r *reader) readFrameObject(f *frame, b []byte) error {
	class, err := r.class(f.address)
	if err != nil {
		return err
	}
	if class.name != "frame" {
		return fmt.Errorf("it is a %s, expected a frame", class.name)
	}
	l := &r.layout.frame
	f.last = int32(r.part(b, l.last, 4)) //nolint:gosec // signed in C
	// Up to 3.9 the line is only kept where the frame is traced.
	if r.layout.minor == 10 || r.word(b, l.trace) != 0 {
		f.line = int32(r.part(b, l.line, 4)) //nolint:gosec // signed in C
	}
	return nil
}

// resolve finds the code and the position of frames. Where one of a chain is wrong, the frames from
// there on are left out.
func (r *reader) resolve(chains []*chain) {
	var codes []uint64
	for _, c := range chains {
		for _, f := range c.frames {
			if !f.isMarker {
				codes = append(codes, f.code)
			}
		}
	}
	r.prepareCodes(codes)
	for _, c := range chains {
		for i, f := range c.frames {
			if f.isMarker {
				continue
			}
			if err := r.resolveFrame(f); err != nil {
				c.frames, c.err = c.frames[:i], fmt.Errorf("frame at %#x: %w", f.address, err)
				break
			}
		}
	}
}

// resolveFrame finds the code and the position of a frame.
func (r *reader) resolveFrame(f *frame) error {
	c := r.code(f.code)
	if c.err != nil {
		return c.err
	}
	f.resolved = c
	at, err := r.placeOf(f, c)
	if err != nil {
		return err
	}
	if f.position = c.position(r.layout.minor, at); f.line > 0 {
		f.position = newPosition(int64(f.line), -1)
	}
	return nil
}

// placeOf returns the place of the instruction that a frame executes, in bytes of its code.
func (r *reader) placeOf(f *frame, c *code) (int64, error) {
	if r.layout.minor < 11 {
		unit := int64(1)
		if r.layout.minor == 10 {
			unit = 2
		}
		at := int64(f.last) * unit
		if f.last < -1 || at >= int64(c.size) { //nolint:gosec // at most maxCode
			return 0, fmt.Errorf("f_lasti is %d, and its code has %d bytes: %w", f.last, c.size, errOutside)
		}
		return at, nil
	}
	start := c.start
	if f.copy != 0 {
		var err error
		if start, err = r.copyStart(c, f.copy); err != nil {
			return 0, err
		}
	}
	return c.place(f.instruction, start)
}

// errNoFrame says that the frames of a thread are not where its state says.
var errNoFrame = errors.New("its frames do not end where the C function was entered")
