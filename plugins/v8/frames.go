// SPDX-License-Identifier: Apache-2.0

package v8

import (
	"errors"
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/sdk"
)

// A frame of V8 begins with the return address and the caller's frame pointer: the frame pointer
// is frameHead bytes below the CFA. The words that are looked at are below it.
const (
	frameHead  = 16
	frameWords = 64
)

// builtinPrefix begins the names of V8's own code, which lies in its module.
const builtinPrefix = "Builtins_"

// activation is a native frame of V8's code, which may be of a function.
type activation struct {
	index       int
	pc, fp      uint64
	isBuiltin   bool // its code is V8's own, by its name
	isGenerated bool // its code is in no module
}

// activations returns the native frames of a stack that may be of functions.
func (c *call) activations(s *sdk.NativeStack) (list []activation) {
	for i := range s.Frames {
		f := &s.Frames[i]
		isBuiltin := strings.HasPrefix(f.Function, builtinPrefix) // V8 may have mapped it a second time
		if f.HasCFA && f.CFA > frameHead+frameWords && (isBuiltin || f.Function == "") {
			list = append(list, activation{i, f.PC, f.CFA - frameHead, isBuiltin, !isBuiltin && !f.InModule})
		}
	}
	return list
}

// prefetch reads what the stacks need, in a few requests: the frames, then the objects that they
// lead to.
func (c *call) prefetch(stacks []sdk.NativeStack) {
	var frames []uint64
	for i := range stacks {
		for _, a := range c.activations(&stacks[i]) {
			frames = append(frames, a.fp-frameWords)
		}
	}
	c.Prefetch(frames, frameWords+frameHead)
	leads := func(addresses []uint64, offsets ...value) (objects []uint64) {
		seen := map[uint64]bool{}
		for _, address := range addresses {
			for _, v := range offsets {
				w, err := c.Pointer(address + c.offset(v))
				if o, ok := objectOf(w); err == nil && ok && !seen[uint64(o)] {
					seen[uint64(o)] = true
					objects = append(objects, uint64(o))
				}
			}
		}
		c.Prefetch(objects, frameWords)
		return objects
	}
	for i := range frames {
		frames[i] += frameWords
	}
	leads(frames, fpContext, fpBytecodeArray)
	functions := leads(frames, fpFunction)
	shared := leads(functions, functionShared)
	leads(shared, sharedName, sharedScript)
}

// stack finds the functions of a stack.
func (c *call) stack(s *sdk.NativeStack) (stack sdk.ManagedStack) {
	lacking, lack := 0, error(nil)
	for _, a := range c.activations(s) {
		frames, err := c.framesOf(&a)
		if errors.Is(err, errNoPositions) || errors.Is(err, errNoSafepoint) {
			lacking++
			lack, err = err, nil
		}
		if err != nil {
			stack.Problem = fmt.Sprintf("frame %d is at %#x in V8's code: %v: no further functions are shown", a.index, a.pc, err)
			return stack
		}
		if len(frames) > 0 {
			stack.Runs = append(stack.Runs, sdk.ManagedRun{First: uint32(a.index), Count: 1, Frames: frames}) //nolint:gosec // an index
		}
	}
	if lacking > 0 {
		stack.Problem = fmt.Sprintf("%d functions have no line: %v", lacking, lack)
	}
	return stack
}

// framesOf returns the functions of a frame, innermost first; none for a frame of another kind.
// With errNoPositions and errNoSafepoint, frames are without lines.
func (c *call) framesOf(a *activation) ([]sdk.ManagedFrame, error) {
	fn, isFunction, err := c.functionAt(a)
	if err != nil {
		return nil, err
	}
	if !isFunction {
		return c.exitFrames(a)
	}
	frames, err := c.functionFrames(a, fn)
	name, nameErr := c.ownName(fn)
	if nameErr != nil && err == nil {
		return nil, fmt.Errorf("the name of the function at %#x: %w", fn, nameErr)
	}
	if name != "" && len(frames) > 0 {
		frames[len(frames)-1].Function = name
	}
	return frames, err
}

// exitTarget is where a frame that left for a function of V8 in C++ has that function, above the
// frame pointer.
const exitTarget = 24

// exitFrames returns the function of V8 in C++ for which a frame left JavaScript, where V8's own
// stack traces show it.
func (c *call) exitFrames(a *activation) ([]sdk.ManagedFrame, error) {
	w, err := c.Pointer(a.fp + c.offset(fpContext))
	if err != nil || !a.isBuiltin || w != c.offset(frameBuiltinExit)<<1 {
		return nil, nil //nolint:nilerr // the frame is native
	}
	if w, err = c.Pointer(a.fp + exitTarget); err != nil {
		return nil, nil //nolint:nilerr // the frame is native
	}
	fn, ok := objectOf(w)
	if !ok || !c.isBetween(fn, typeFunction, typeFunctionLast) {
		return nil, nil
	}
	shared, err := c.sharedOf(fn)
	if err != nil {
		return nil, err
	}
	f, err := c.functionOf(shared)
	if err != nil || f.script != nil || !f.isNative {
		return nil, err
	}
	return []sdk.ManagedFrame{{Function: f.name, Kind: sdk.Builtin}}, nil
}

// functionFrames returns the functions of a frame of a function, innermost first.
func (c *call) functionFrames(a *activation, fn object) ([]sdk.ManagedFrame, error) {
	shared, err := c.sharedOf(fn)
	if err != nil {
		return nil, err
	}
	f, err := c.functionOf(shared)
	if err != nil {
		return nil, fmt.Errorf("the function at %#x: %w", fn, err)
	}
	if a.isGenerated {
		frames, err := c.compiledFrames(a, f)
		if !errors.Is(err, errNoCode) {
			return frames, err
		}
	}
	bytecode, offset, isInterpreted := c.interpreted(a)
	switch {
	case isInterpreted && f.bytecode != 0 && f.bytecode != bytecode:
		return nil, fmt.Errorf("the function %s has the bytecode at %#x, but the frame at %#x executes that at %#x", f.name, f.bytecode, a.fp, bytecode)
	case isInterpreted:
		frame, err := c.frame(f, sdk.Interpreted, bytecode, offset)
		return []sdk.ManagedFrame{frame}, err
	case a.isGenerated:
		return nil, errNoCode
	case a.isBuiltin && f.script == nil && f.isNative && f.bytecode == 0:
		return []sdk.ManagedFrame{{Function: f.name, Kind: sdk.Builtin}}, nil
	}
	if a.index > 0 && (f.script != nil || f.bytecode != 0) {
		return nil, fmt.Errorf("the function %s is of the program, expected bytecode that the frame at %#x executes", f.name, a.fp)
	}
	return nil, nil
}

// maxMarker bounds the numbers of kinds of frames.
const maxMarker = 64

// functionAt returns the function of a frame; false for a frame of another kind, which has a
// number in place of the context. The innermost frame may not have either yet.
func (c *call) functionAt(a *activation) (object, bool, error) {
	w, err := c.Pointer(a.fp + c.offset(fpContext))
	if err != nil {
		return 0, false, nil //nolint:nilerr // the frame is native
	}
	o, ok := objectOf(w)
	if !ok || !c.isBetween(o, typeContext, typeContextLast) {
		if a.index > 0 && (a.isBuiltin || a.isGenerated) && (w&tag != 0 || w == 0 || w > maxMarker<<1) {
			err = fmt.Errorf("the frame at %#x has %#x, expected a context or the number of a kind", a.fp, w)
		}
		return 0, false, err
	}
	if w, err = c.Pointer(a.fp + c.offset(fpFunction)); err != nil {
		return 0, false, err
	}
	o, ok = objectOf(w)
	if !ok || !c.isBetween(o, typeFunction, typeFunctionLast) {
		if a.index > 0 {
			err = fmt.Errorf("the frame at %#x has %#x, expected a function", a.fp, w)
		}
		return 0, false, err
	}
	return o, true, nil
}

// interpreted returns the bytecode of an interpreted frame, and the offset in it; false for a
// frame of another kind.
func (c *call) interpreted(a *activation) (bytecode object, offset int64, is bool) {
	w, err := c.Pointer(a.fp + c.offset(fpBytecodeArray))
	if err != nil {
		return 0, 0, false
	}
	o, ok := objectOf(w)
	if !ok || !c.isType(o, typeBytecodeArray) {
		return 0, 0, false
	}
	if w, err = c.Pointer(a.fp + c.offset(fpBytecodeOffset)); err != nil {
		return 0, 0, false
	}
	n, ok := c.smi(w)
	size, err := c.number(o, arrayLength)
	n -= c.values[bytecodeData] - tag // it is counted from the object's address
	return o, n, ok && err == nil && n >= functionEntry && n < size
}

// frame makes the frame of a function at a bytecode offset.
func (c *call) frame(f *function, kind sdk.ManagedKind, bytecode object, offset int64) (sdk.ManagedFrame, error) {
	frame := sdk.ManagedFrame{Function: f.name, Kind: kind}
	if f.script == nil {
		return frame, nil
	}
	frame.File = f.script.name
	if bytecode == 0 {
		return frame, errNoPositions
	}
	at, err := c.placeInBytecode(f.script, bytecode, offset)
	frame.Line, frame.Column = at.line, at.column
	return frame, err
}

// compiledFrames returns the functions of code that V8 made, innermost first: the function that
// the frame has, and those that are inlined where the call is.
func (c *call) compiledFrames(a *activation, f *function) ([]sdk.ManagedFrame, error) {
	m, err := c.codeAt(a.pc)
	if err != nil {
		return nil, err
	}
	isMaglev := false
	switch int64(m.kind) - c.values[kindBaseline] {
	case 0:
		bytecode, offset, err := c.bytecodeOffset(m, a.pc)
		if err == nil && f.bytecode != bytecode {
			err = fmt.Errorf("its code is of the bytecode at %#x, but the frame at %#x is of %s, which has that at %#x", bytecode, a.fp, f.name, f.bytecode)
		}
		if err != nil {
			return nil, err
		}
		frame, err := c.frame(f, sdk.Compiled, bytecode, offset)
		return []sdk.ManagedFrame{frame}, err
	case 1:
		isMaglev = true
	case 2:
	default:
		return nil, nil
	}
	list, literals, err := c.inlined(m, isMaglev, a.pc)
	if err == nil && len(list) == 0 {
		err = errNoTranslation
	}
	if errors.Is(err, errNoSafepoint) {
		frame, _ := c.frame(f, sdk.Compiled, 0, 0)
		return []sdk.ManagedFrame{frame}, err
	}
	if err != nil {
		return nil, err
	}
	if outermost, err := c.literal(literals, list[0].literal); err != nil {
		return nil, err
	} else if outermost != f {
		return nil, fmt.Errorf("its code is of %s, but the frame at %#x is of %s", outermost.name, a.fp, f.name)
	}
	return c.inlinedFrames(list, literals)
}

// inlinedFrames makes the frames of a list, innermost first.
func (c *call) inlinedFrames(list []inlinedFrame, literals object) (frames []sdk.ManagedFrame, lacking error) {
	for i := len(list) - 1; i >= 0; i-- {
		f, err := c.literal(literals, list[i].literal)
		if err != nil {
			return nil, err
		}
		if list[i].isContinuation {
			frames = append(frames, sdk.ManagedFrame{Function: f.name, Kind: sdk.Builtin})
			continue
		}
		frame, err := c.frame(f, sdk.Compiled, f.bytecode, list[i].offset)
		if err != nil && !errors.Is(err, errNoPositions) {
			return nil, err
		}
		if err != nil {
			lacking = err
		}
		frames = append(frames, frame)
	}
	return frames, lacking
}
