// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"encoding/binary"
	"math"
)

// RuntimeStack is, in a recording, the stack of a thread with the frames of language runtimes.
// They are in memory that a sample does not have, so that they are found when it is taken. It is
// a part of the raw data of samples, beside a Wait.
type RuntimeStack struct {
	Entries []RuntimeEntry // innermost first
	IsCut   bool           // there are further ones, outside the last, for which a sample has no room
	Stop    uint8          // a number of package profile for why it ends
}

// RuntimeEntry is a frame of a RuntimeStack.
type RuntimeEntry struct {
	PC uint64 // of a native frame
	// Found is a number of package code for how a native frame was found.
	Found    uint8
	IsExact  bool // the PC of a native frame is no return address
	IsBehind bool // a native frame for which others further in stand
	// Frame is the number of a RuntimeFrame in the recording, where IsManaged.
	Frame     uint32
	IsManaged bool
}

// RuntimeFrame is a function of a language runtime at a line.
type RuntimeFrame struct {
	Runtime, Kind  string
	Function, File string
	Line, Column   uint32
}

// The raw data begins with runtimeMagic and the size of the Wait's part, which follows. Then come
// numbers as of encoding/binary: how many texts there were before, the number of new ones, and these,
// with their sizes; how many frames there were before, the number of new ones, and these, each as the
// numbers of its texts from 0, its line and column; the number
// of why the stack ends; the number of entries, with one that is cut in the lowest bit, and these: a kind, and behind it the
// number of a RuntimeFrame, or the PC as a difference from that of the native frame before, and how that was found.
const (
	runtimeMagic  = "uwR1"
	runtimeHeader = 8

	entryManaged = 1
	entryExact   = 2
	entryBehind  = 4

	// MaxRuntimeStack bounds the raw data of a sample: the size of a record is a number of 16
	// bits.
	MaxRuntimeStack = 48 << 10
	// maxRuntimeText bounds a text.
	maxRuntimeText = 1 << 10
	// entryRoom is how many bytes an entry may need, with its text's numbers.
	entryRoom = 8 * binary.MaxVarintLen64
)

// RuntimeWriter writes the stacks of a recording, whose texts and frames are written once.
type RuntimeWriter struct {
	texts  map[string]uint64
	frames map[RuntimeFrame]uint32
}

// NewRuntimeWriter makes a RuntimeWriter.
func NewRuntimeWriter() *RuntimeWriter {
	return &RuntimeWriter{map[string]uint64{}, map[RuntimeFrame]uint32{}}
}

// runtimeParts are the parts of the raw data of one sample.
type runtimeParts struct {
	texts, frames, entries []byte
	oldTexts, oldFrames    uint64
	newTexts, newFrames    uint64
	count                  uint64
}

func (p *runtimeParts) size() int { return len(p.texts) + len(p.frames) + len(p.entries) }

// Append appends the raw data of a sample with a stack and, where it is not empty, a Wait's. The
// managed frames of entries are in frames, by their numbers there.
func (w *RuntimeWriter) Append(b []byte, wait []byte, s *RuntimeStack, frames []RuntimeFrame) []byte {
	p := runtimeParts{oldTexts: uint64(len(w.texts)), oldFrames: uint64(len(w.frames))}
	room := MaxRuntimeStack - runtimeHeader - len(wait) - 5*binary.MaxVarintLen64
	isCut := s.IsCut
	var pc uint64
	for i := range s.Entries {
		e := &s.Entries[i]
		if e.IsManaged {
			f := frames[e.Frame].bounded()
			need := entryRoom + len(f.Runtime) + len(f.Kind) + len(f.Function) + len(f.File)
			if p.size()+need > room {
				isCut = true
				break
			}
			p.entries = binary.AppendUvarint(append(p.entries, entryManaged), uint64(w.number(&p, f)))
			p.count++
			continue
		}
		if p.size()+entryRoom > room {
			isCut = true
			break
		}
		kind := byte(0)
		if e.IsExact {
			kind |= entryExact
		}
		if e.IsBehind {
			kind |= entryBehind
		}
		p.entries = binary.AppendVarint(append(p.entries, kind, e.Found), int64(e.PC-pc)) //nolint:gosec // it is added as it is
		pc = e.PC
		p.count++
	}
	b = append(b, runtimeMagic...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(wait))) //nolint:gosec // small
	b = append(b, wait...)
	b = append(binary.AppendUvarint(binary.AppendUvarint(b, p.oldTexts), p.newTexts), p.texts...)
	b = append(binary.AppendUvarint(binary.AppendUvarint(b, p.oldFrames), p.newFrames), p.frames...)
	count := p.count << 1
	if isCut {
		count |= 1
	}
	return append(binary.AppendUvarint(append(b, s.Stop), count), p.entries...)
}

// bounded returns the frame with texts that are not too long.
func (f RuntimeFrame) bounded() RuntimeFrame {
	for _, t := range []*string{&f.Runtime, &f.Kind, &f.Function, &f.File} {
		*t = (*t)[:min(len(*t), maxRuntimeText)]
	}
	return f
}

// number returns the number of a frame in the recording.
func (w *RuntimeWriter) number(p *runtimeParts, f RuntimeFrame) uint32 {
	if n, ok := w.frames[f]; ok {
		return n
	}
	n := uint32(len(w.frames)) //nolint:gosec // memory has room for fewer
	w.frames[f] = n
	p.newFrames++
	for _, text := range []string{f.Runtime, f.Kind, f.Function, f.File} {
		p.frames = binary.AppendUvarint(p.frames, w.text(p, text))
	}
	p.frames = binary.AppendUvarint(p.frames, uint64(f.Line))
	p.frames = binary.AppendUvarint(p.frames, uint64(f.Column))
	return n
}

// text returns the number of a text in the recording.
func (w *RuntimeWriter) text(p *runtimeParts, text string) uint64 {
	n, ok := w.texts[text]
	if !ok {
		n = uint64(len(w.texts))
		w.texts[text] = n
		p.newTexts++
		p.texts = append(binary.AppendUvarint(p.texts, uint64(len(text))), text...)
	}
	return n
}

// SplitRaw returns the Wait's part of a sample's raw data, and the part of a RuntimeStack; nil where
// there is none.
func SplitRaw(raw []byte) (wait, stack []byte) {
	if len(raw) < runtimeHeader || string(raw[:len(runtimeMagic)]) != runtimeMagic {
		return raw, nil
	}
	size := binary.LittleEndian.Uint32(raw[len(runtimeMagic):])
	if uint64(size) > uint64(len(raw)-runtimeHeader) {
		return nil, nil
	}
	return raw[runtimeHeader : runtimeHeader+size], raw[runtimeHeader+size:]
}

// rawReader reads the numbers of raw data. After the first that is not there, there are none.
type rawReader struct {
	data  []byte
	isBad bool
}

func (r *rawReader) number(most uint64) uint64 {
	n, size := binary.Uvarint(r.data)
	if size <= 0 || n > most {
		r.isBad, r.data = true, nil
		return 0
	}
	r.data = r.data[size:]
	return n
}

func (r *rawReader) difference() uint64 {
	n, size := binary.Varint(r.data)
	if size <= 0 {
		r.isBad, r.data = true, nil
		return 0
	}
	r.data = r.data[size:]
	return uint64(n) //nolint:gosec // it is added as it was
}

func (r *rawReader) bytes(n uint64) []byte {
	if n > uint64(len(r.data)) {
		r.isBad, r.data = true, nil
		return nil
	}
	b := r.data[:n]
	r.data = r.data[n:]
	return b
}

func (r *rawReader) byte() byte {
	b := r.bytes(1)
	if len(b) == 0 {
		return 0
	}
	return b[0]
}

// skipTables passes over the new texts and frames.
func (r *rawReader) skipTables() {
	r.number(math.MaxUint64)
	for n := r.number(math.MaxUint64); n > 0 && !r.isBad; n-- {
		r.bytes(r.number(math.MaxUint64))
	}
	r.number(math.MaxUint64)
	for n := r.number(math.MaxUint64); n > 0 && !r.isBad; n-- {
		for range 6 {
			r.number(math.MaxUint64)
		}
	}
}

// ReadRuntimeStack reads a RuntimeStack's part of raw data into s, whose entries are reused. It returns
// false where that is damaged.
func ReadRuntimeStack(s *RuntimeStack, stack []byte) bool {
	r := rawReader{data: stack}
	r.skipTables()
	s.Stop = r.byte()
	count := r.number(math.MaxUint32)
	s.IsCut, s.Entries = count&1 != 0, s.Entries[:0]
	var pc uint64
	for count >>= 1; count > 0 && !r.isBad; count-- {
		kind := r.byte()
		if kind == entryManaged {
			s.Entries = append(s.Entries, RuntimeEntry{Frame: uint32(r.number(math.MaxUint32)), IsManaged: true}) //nolint:gosec // bounded
			continue
		}
		found := r.byte()
		pc += r.difference()
		s.Entries = append(s.Entries, RuntimeEntry{PC: pc, Found: found, IsExact: kind&entryExact != 0, IsBehind: kind&entryBehind != 0})
	}
	return !r.isBad
}

// RuntimeReader has the frames of a recording whose samples are read in their order.
type RuntimeReader struct {
	texts    []string
	frames   []RuntimeFrame
	isBroken bool // what follows has other numbers than it was written with
}

// Read adds the frames that are new in a RuntimeStack's part of raw data. It returns false where that, or
// one before, is damaged: then no further frames are known.
func (t *RuntimeReader) Read(stack []byte) bool {
	r := rawReader{data: stack}
	t.isBroken = t.isBroken || r.number(math.MaxUint64) != uint64(len(t.texts))
	for n := r.number(math.MaxUint64); n > 0 && !r.isBad && !t.isBroken; n-- {
		if b := r.bytes(r.number(maxRuntimeText)); !r.isBad {
			t.texts = append(t.texts, string(b))
		}
	}
	t.isBroken = t.isBroken || r.number(math.MaxUint64) != uint64(len(t.frames))
	for n := r.number(math.MaxUint64); n > 0 && !r.isBad && !t.isBroken; n-- {
		if f := t.readFrame(&r); !r.isBad {
			t.frames = append(t.frames, f)
		}
	}
	t.isBroken = t.isBroken || r.isBad
	return !t.isBroken
}

// readFrame reads a frame.
func (t *RuntimeReader) readFrame(r *rawReader) (f RuntimeFrame) {
	for _, text := range []*string{&f.Runtime, &f.Kind, &f.Function, &f.File} {
		if k := r.number(math.MaxUint64); k < uint64(len(t.texts)) {
			*text = t.texts[k]
		} else {
			r.isBad = true
		}
	}
	f.Line, f.Column = uint32(r.number(math.MaxUint32)), uint32(r.number(math.MaxUint32)) //nolint:gosec // bounded
	return f
}

// Len returns how many frames were read.
func (t *RuntimeReader) Len() int { return len(t.frames) }

// Frame returns a frame by its number; ok is false where there is none.
func (t *RuntimeReader) Frame(number uint32) (f RuntimeFrame, ok bool) {
	if t.isBroken || uint64(number) >= uint64(len(t.frames)) {
		return f, false
	}
	return t.frames[number], true
}
