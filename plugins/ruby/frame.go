// SPDX-License-Identifier: Apache-2.0

package ruby

import (
	"fmt"

	"github.com/unwindd/unwindd/sdk"
)

// frame is a control frame of the interpreter.
type frame struct {
	address  uint64
	flags    uint64 // of its environment
	sequence *sequence
	pc       uint64
	ep, self uint64
	function uint64 // of a method that is written in C; 0: unknown
	isHidden bool   // Ruby does not show it
	shown    sdk.ManagedFrame
}

// Flags of environments.
const (
	frameKindMask = 0x7fff0001
	frameC        = 0x55550001 // a method that is written in C
	frameBlockC   = 0x66660001 // a block that is written in C
	frameDummy    = 0x79990001
	frameHandler  = 0x78880001 // a handler of exceptions, or code that follows in any case
	frameFinish   = 0x20       // the interpreter returns to C behind it
	frameLocal    = 2          // the environment is that of a method
)

// maxFrames bounds the control frames of a thread.
const maxFrames = 1 << 17

// readFrames reads the control frames of an execution context, innermost first. Where one is
// wrong, it returns those before it.
func (r *reader) readFrames(ec uint64) ([]*frame, error) {
	b, err := r.Bytes(ec, r.ecThread+8)
	if err != nil {
		return nil, fmt.Errorf("the execution context: %w", err)
	}
	stack, words, first := r.Number(b[ecStack:][:8]), r.Number(b[ecStackWords:][:8]), r.Number(b[ecFrame:][:8])
	end := stack + 8*words
	switch {
	case stack == 0 && words == 0:
		return nil, nil // its fiber has ended, or not begun
	case !isPlace(stack) || words > maxLength || first < stack || first > end || (end-first)%r.frameSize != 0:
		return nil, fmt.Errorf("the control frames at %#x of the stack of %d words at %#x: expected frames of %d bytes up to its end", first, words, stack, r.frameSize)
	case (end-first)/r.frameSize > maxFrames:
		return nil, fmt.Errorf("%d control frames, expected at most %d", (end-first)/r.frameSize, maxFrames)
	}
	b, err = r.Bytes(first, end-first)
	if err != nil {
		return nil, fmt.Errorf("the control frames: %w", err)
	}
	list := make([]*frame, 0, uint64(len(b))/r.frameSize)
	var places, sequences []uint64
	for at := uint64(0); at < uint64(len(b)); at += r.frameSize {
		f := &frame{address: first + at}
		get := func(at2 uint64) uint64 { return r.Number(b[at+at2:][:8]) }
		f.pc, f.self, f.ep = get(framePC), get(frameSelf), get(frEP)
		if s := get(frameIseq); s != 0 {
			f.sequence = &sequence{address: s}
			sequences = append(sequences, s)
		}
		places = append(places, f.ep-16)
		list = append(list, f)
	}
	r.prefetch(places, sequences)
	for i, f := range list {
		err := r.readFrame(f)
		// The outermost frame is there before the first call. No other one is like it but the next.
		isDummy := err == nil && f.flags&frameKindMask == frameDummy
		if isOuter := i == len(list)-1; err == nil && (isOuter && !isDummy || isDummy && i < len(list)-2) {
			err = fmt.Errorf("its flags are %#x, expected %#x of the outermost frame alone", f.flags, frameDummy)
		}
		if err != nil {
			r.placeC(list[:i])
			return list[:i], fmt.Errorf("control frame %d at %#x: %w", i, f.address, err)
		}
	}
	if r.isQualified {
		hideHandled(list)
	}
	r.placeC(list)
	return list, nil
}

// prefetch reads what frames need, in few requests.
func (r *reader) prefetch(environments, sequences []uint64) {
	r.Prefetch(append(environments, sequences...), 24)
	var bodies, texts []uint64
	for _, s := range sequences {
		if body, err := r.Pointer(s + iseqBody); err == nil && isPlace(body) {
			bodies = append(bodies, body)
		}
	}
	r.Prefetch(bodies, bodyBytes)
	for _, body := range bodies {
		for _, at := range []uint64{bodyLabel, bodyPath, r.bodyInfo, r.bodyInfo + infoIndex} {
			if text, err := r.Pointer(body + at); err == nil && isPlace(text) {
				texts = append(texts, text)
			}
		}
	}
	r.Prefetch(texts, 40)
}

// readFrame reads what a frame is of.
func (r *reader) readFrame(f *frame) error {
	if !isPlace(f.ep) {
		return fmt.Errorf("the environment at %#x: expected an address", f.ep)
	}
	var err error
	if f.flags, err = r.word("the environment's flags", f.ep); err != nil {
		return err
	}
	kind := f.flags & frameKindMask
	k, isKnown := frameKinds[kind]
	hasCode := f.sequence != nil && f.pc != 0
	switch {
	case !isKnown:
		return fmt.Errorf("the environment at %#x has the flags %#x, expected those of a frame", f.ep, f.flags)
	case k.isRuby && !hasCode, kind == frameC && (f.sequence != nil || f.pc != 0), kind == frameBlockC && f.pc != 0:
		return fmt.Errorf("its flags %#x do not go with its instructions, and its PC %#x", f.flags, f.pc)
	case !k.isRuby:
		f.sequence, f.isHidden = nil, kind != frameC
		if kind == frameC {
			return r.readC(f)
		}
		return nil
	}
	if f.sequence, err = r.sequence(f.sequence.address); err != nil {
		return err
	}
	if f.sequence.kind >= 32 || k.sequences>>f.sequence.kind&1 == 0 {
		return fmt.Errorf("its flags %#x do not go with instructions of the kind %d", f.flags, f.sequence.kind)
	}
	line, err := r.line(f.sequence, f.pc)
	if err != nil {
		return err
	}
	label := f.sequence.label
	if r.isQualified {
		if label, err = r.label(f); err != nil {
			return err
		}
	}
	f.shown = sdk.ManagedFrame{Function: label, File: f.sequence.path, Line: line, Kind: sdk.Interpreted}
	return nil
}

// frameKind is a kind of frames.
type frameKind struct {
	isRuby    bool   // it has instructions
	sequences uint64 // the kinds of those, a bit each
}

// frameKinds are the kinds of frames, by the flags of their environments.
var frameKinds = map[uint64]frameKind{
	0x11110001:   {true, 1 << sequenceMethod},
	0x22220001:   {true, 1 << sequenceBlock},
	0x33330001:   {true, 1 << sequenceClass},
	0x44440001:   {true, 1<<sequenceTop | 1<<sequenceMain | 1<<sequenceEval},
	frameC:       {},
	frameBlockC:  {},
	0x77770001:   {true, 1<<sequenceTop | 1<<sequenceMain | 1<<sequenceEval},
	frameHandler: {true, 1<<sequenceRescue | 1<<sequenceEnsure | 1<<sequencePlain},
	frameDummy:   {},
}

// readC reads the method of a frame of C.
func (r *reader) readC(f *frame) error {
	f.shown = sdk.ManagedFrame{Kind: sdk.Builtin}
	address, err := r.method(f.ep)
	if err == nil && address == 0 {
		err = fmt.Errorf("the environment at %#x has no method", f.ep)
	}
	if err != nil {
		return err
	}
	m, err := r.readMethod(address)
	f.function, f.shown.Function = m.function, m.name
	return err
}

// method is a method of a class.
type method struct {
	owner    uint64
	isC      bool
	function uint64 // in C
	name     string // with its class, where labels have it
}

// readMethod reads a method.
func (r *reader) readMethod(address uint64) (m method, err error) {
	const kindMask, kindC = 0xf, 1
	flags, err := r.flags("a method", address, typeInternal)
	if err == nil && flags>>internalShift&internalMask != internalMethod {
		err = fmt.Errorf("the method at %#x is of the internal type %d, expected %d", address, flags>>internalShift&internalMask, internalMethod)
	}
	if err != nil {
		return m, err
	}
	definition, err := r.word("a method's definition", address+methodDefinition)
	if err == nil && !isPlace(definition) {
		err = fmt.Errorf("the definition at %#x of the method at %#x: expected an address", definition, address)
	}
	if err != nil {
		return m, err
	}
	b, err := r.Bytes(definition, definitionNameID+8)
	if err != nil {
		return m, fmt.Errorf("a method's definition: %w", err)
	}
	m.isC, m.function = r.Number(b[:1])&kindMask == kindC, r.Number(b[definitionFunction:][:8])
	if m.owner, err = r.word("the class of a method", address+methodOwner); err != nil || r.names == 0 {
		return m, err // OpenRuntime has said that there are no names
	}
	if m.name, err = r.name(r.Number(b[definitionNameID:][:8])); err == nil && r.isQualified {
		m.name, err = r.qualified(m.owner, m.name)
	}
	return m, err
}

// maxLevels bounds how deep environments lie in each other.
const maxLevels = 1 << 10

// method returns the method that an environment belongs to; 0: none.
func (r *reader) method(ep uint64) (uint64, error) {
	for range maxLevels {
		entry, err := r.word("the environment's method", ep-16)
		if err != nil {
			return 0, err
		}
		isLocal := false
		if flags, err := r.word("the environment's flags", ep); err == nil {
			isLocal = flags&frameLocal != 0
		}
		for entry != 0 && isPlace(entry) {
			flags, err := r.flags("the environment's method", entry, typeInternal)
			if err != nil {
				return 0, err
			}
			kind := flags >> internalShift & internalMask
			if kind == internalMethod {
				return entry, nil
			}
			if kind != internalVariables || !isLocal {
				break
			}
			// Variables of the frame have it, and stand in its place.
			if entry, err = r.word("the environment's method", entry+8); err != nil {
				return 0, err
			}
		}
		if isLocal {
			return 0, nil
		}
		if ep, err = r.word("the outer environment", ep-8); err != nil {
			return 0, err
		}
		if ep &^= 3; !isPlace(ep) {
			return 0, fmt.Errorf("the outer environment at %#x: expected an address", ep)
		}
	}
	return 0, fmt.Errorf("environments lie more than %d deep in each other", maxLevels)
}

// hideHandled hides the frames whose handlers are executed: they are the same call.
func hideHandled(list []*frame) {
	isHandled := false
	for _, f := range list {
		if f.isHidden || f.sequence == nil {
			continue
		}
		f.isHidden = isHandled
		isHandled = f.sequence.kind == sequenceRescue || f.sequence.kind == sequenceEnsure
	}
}

// placeC gives frames of C the place that calls them: that of the next frame of Ruby.
func (r *reader) placeC(list []*frame) {
	file, line := "", uint32(0)
	for i := len(list) - 1; i >= 0; i-- {
		switch f := list[i]; {
		case f.isHidden:
		case f.sequence != nil:
			file, line = f.shown.File, f.shown.Line
		default:
			f.shown.File, f.shown.Line = file, line
		}
	}
}
