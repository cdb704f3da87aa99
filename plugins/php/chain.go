// SPDX-License-Identifier: Apache-2.0

package php

import (
	"fmt"

	"github.com/unwindd/unwindd/sdk"
)

// maxFrames bounds the frames of one stack.
const maxFrames = 1 << 16

// frame is a zend_execute_data: a call of a function.
type frame struct {
	address, op, function, caller uint64
	this                          uint64 // an object where isObject
	flags                         uint64 // of this and of the call
	isObject                      bool
	count                         uint64 // arguments
	// isTop says that a native activation of execute_ex ends with the call.
	isTop bool
	// isDelegating says that the frame is a generator's that waits for the one further in.
	isDelegating bool
	// isInnermost says that execute_ex may not have written an operation to memory: it does that
	// where an operation calls something.
	isInnermost bool
}

// frame reads a frame.
func (r *reader) frame(address uint64) (frame, error) {
	if address == 0 || address%8 != 0 {
		return frame{}, fmt.Errorf("%#x is no zend_execute_data: expected an address that 8 divides", address)
	}
	b, err := r.Bytes(address, frameSize)
	if err != nil {
		return frame{}, err
	}
	at := func(offset int) uint64 { return r.Number(b[offset : offset+8]) }
	flags := r.Number(b[frameFlags : frameFlags+4])
	return frame{
		address: address, op: at(frameOp), function: at(frameFunction), caller: at(frameCaller), this: at(frameThis), flags: flags,
		isObject: flags&0xff == typeObject, isTop: flags&callTop != 0, count: r.Number(b[frameCount : frameCount+4]),
	}, nil
}

// chain reads the frames from one on, innermost first. Where the error is set, the frames outside
// those are missing. Frames without a function, which the interpreter makes for itself, are left
// out; the bottom of a fiber is kept.
func (r *reader) chain(address uint64) (list []frame, err error) {
	seen := map[uint64]bool{}
	for address != 0 {
		switch {
		case r.ctx.Err() != nil:
			return list, r.ctx.Err()
		case seen[address]:
			return list, fmt.Errorf("prev_execute_data leads back to %#x", address)
		case len(list) >= maxFrames:
			return list, fmt.Errorf("the frames outside the %d innermost are left out", maxFrames)
		}
		seen[address] = true
		f, err := r.frame(address)
		if err != nil {
			return list, fmt.Errorf("prev_execute_data: %w", err)
		}
		if f.function != 0 {
			f.isInnermost = len(list) == 0
			list = append(list, f)
		} else if list, err = r.withoutFunction(list, &f); err != nil {
			return list, err
		}
		address = f.caller
	}
	return list, nil
}

// withoutFunction appends the frames that a frame without a function stands for: frames of generators,
// or none. The interpreter clears one that it makes for itself, or copies the one outside it.
func (r *reader) withoutFunction(list []frame, f *frame) ([]frame, error) {
	isCleared := f.this == 0 && f.flags == 0 && f.count == 0
	if f.op == 0 && f.isObject && len(list) > 0 {
		class, err := r.Pointer(f.this + objectClass)
		if err == nil && class == r.generatorClass && class != 0 {
			return r.delegate(list, f.this)
		}
	}
	outer, err := frame{}, error(nil)
	if f.op == 0 && !isCleared {
		outer, err = r.frame(f.caller)
	}
	if f.op != 0 || !isCleared && (err != nil || outer.this != f.this || outer.flags&0xff != f.flags&0xff || outer.count != f.count) {
		return list, fmt.Errorf("the frame at %#x has no function, expected it cleared, a copy of the one outside, or a generator's", f.address)
	}
	return list, nil
}

// delegate appends the frames of generators that have delegated to the generator whose frame is
// the last of the list, innermost first. The outermost of them is the object at an address.
func (r *reader) delegate(list []frame, generator uint64) ([]frame, error) {
	root := list[len(list)-1].address
	var outer []frame
	for range maxFrames {
		address, err := r.Pointer(generator + r.generatorFrame)
		switch {
		case err != nil:
			return list, fmt.Errorf("the generator at %#x: %w", generator, err)
		case address == root:
			for i := len(outer) - 1; i >= 0; i-- {
				list = append(list, outer[i])
			}
			return list, nil
		}
		f, err := r.frame(address)
		if err != nil {
			return list, fmt.Errorf("the frame of the generator at %#x: %w", generator, err)
		}
		f.isTop, f.isDelegating = false, true
		outer = append(outer, f)
		if generator, err = r.Pointer(generator + r.generatorParent); err != nil || generator == 0 {
			return list, fmt.Errorf("the generators that yield from each other do not lead to the one at %#x", root)
		}
	}
	return list, fmt.Errorf("more than %d generators yield from each other", maxFrames)
}

// function is a zend_function.
type function struct {
	isUser       bool
	flags        uint64
	name         string // "": the code of a file
	class        uint64
	count        uint64 // parameters
	arguments    uint64 // the descriptions of an internal function's
	handler      uint64 // of an internal function
	code         uint64 // the operations of a function of the program
	last         uint64 // their number
	file         string
	first, end   uint64 // lines
	variables    uint64
	variableSize uint64 // their number
	err          error
}

// maxVariables bounds the variables and arguments of a function.
const maxVariables = 1 << 16

// maxOps bounds the operations of a function.
const maxOps = 1 << 26

// load reads what frames lead to, level by level.
func (r *reader) load(list []frame) {
	var functions, ops, more []uint64
	for i := range list {
		functions = append(functions, list[i].function)
		ops = append(ops, list[i].op)
	}
	r.Prefetch(functions, r.opArray.size)
	r.Prefetch(ops, opSize)
	for _, address := range functions {
		if b, err := r.Bytes(address, r.opArray.size); err == nil {
			for _, offset := range []uint64{functionName, functionClass, r.opArray.file} {
				more = append(more, r.Number(b[offset:offset+8]))
			}
		}
	}
	r.Prefetch(more, stringBytes)
	for i := range list {
		r.function(list[i].function)
	}
}

// function reads a function, once.
func (r *reader) function(address uint64) *function {
	f := r.functions[address]
	if f == nil {
		f = &function{}
		if f.err = r.readFunction(f, address); f.err != nil {
			f.err = fmt.Errorf("the function at %#x: %w", address, f.err)
		}
		r.functions[address] = f
	}
	return f
}

func (r *reader) readFunction(f *function, address uint64) error {
	if address%8 != 0 {
		return fmt.Errorf("expected an address that 8 divides")
	}
	b, err := r.Bytes(address, functionTypes+8)
	if err != nil {
		return err
	}
	at := func(offset uint64) uint64 { return r.Number(b[offset : offset+8]) }
	f.flags, f.class, f.arguments = r.Number(b[functionFlags:functionFlags+4]), at(functionClass), at(functionTypes)
	if f.count = r.Number(b[functionCount : functionCount+4]); f.count > maxVariables {
		return fmt.Errorf("%d parameters, expected at most %d", f.count, maxVariables)
	}
	if name := at(functionName); name != 0 {
		if f.name, err = r.text(name); err != nil {
			return fmt.Errorf("its name: %w", err)
		}
		if f.name = valid(f.name); f.name == "" && b[0] != functionInternal {
			return fmt.Errorf("its name at %#x is empty", name)
		}
	}
	switch kind := b[0]; kind {
	case functionInternal:
		f.handler, err = r.Pointer(address + r.handler)
		return err
	case functionUser, functionEval:
		f.isUser = true
		return r.readUser(f, address)
	default:
		return fmt.Errorf("type %d, expected %d, %d or %d", kind, functionInternal, functionUser, functionEval)
	}
}

// readUser reads a function of the program.
func (r *reader) readUser(f *function, address uint64) error {
	l := &r.opArray
	b, err := r.Bytes(address, l.size)
	if err != nil {
		return err
	}
	f.code, f.last = r.Number(b[l.code:l.code+8]), r.Number(b[l.last:l.last+4])
	f.variables, f.variableSize = r.Number(b[l.variables:l.variables+8]), r.Number(b[l.lastVariable:l.lastVariable+4])
	f.first, f.end = r.Number(b[l.lines:l.lines+4]), r.Number(b[l.lines+4:l.lines+8])
	switch {
	case f.code == 0 || f.code%8 != 0:
		return fmt.Errorf("operations at %#x, expected an address that 8 divides", f.code)
	case f.last > maxOps:
		return fmt.Errorf("%d operations, expected at most %d", f.last, maxOps)
	case f.variableSize > maxVariables:
		return fmt.Errorf("%d variables, expected at most %d", f.variableSize, maxVariables)
	}
	if f.file, err = r.text(r.Number(b[l.file : l.file+8])); err != nil {
		return fmt.Errorf("its file: %w", err)
	}
	f.file = valid(f.file)
	return nil
}

// hasOp reports whether an address is of an operation of the function.
func (f *function) hasOp(address uint64) bool {
	return address >= f.code && address-f.code < f.last*opSize && (address-f.code)%opSize == 0
}

// maxLine bounds numbers of lines.
const maxLine = 1 << 30

// line returns the line of a frame of the program.
func (r *reader) line(c *frame, f *function) (uint32, error) {
	op := c.op
	if first := r.executor + r.layout.executor.exceptionOps; op >= first && op-first < 3*opSize {
		var err error // the frame handles an exception
		if op, err = r.Pointer(r.executor + r.layout.executor.lineBefore); err != nil {
			return 0, err
		}
	}
	if !f.hasOp(op) {
		if c.isDelegating || c.isInnermost || op == 0 {
			return 0, nil
		}
		return 0, fmt.Errorf("opline is %#x, expected one of the %d operations at %#x", op, f.last, f.code)
	}
	b, err := r.Bytes(op, opSize)
	if err != nil {
		return 0, err
	}
	n := r.Number(b[opLine : opLine+4])
	if n < f.first || n > f.end || n > maxLine {
		return 0, fmt.Errorf("line %d, expected %d to %d, the function's", n, f.first, f.end)
	}
	return uint32(n), nil //nolint:gosec // bounded
}

// managed returns frames as frames of PHP, innermost first, up to the first that cannot be read.
func (r *reader) managed(list []frame) (out []sdk.ManagedFrame, err error) {
	for i := range list {
		m, err := r.managedFrame(&list[i], list[i+1:])
		if err != nil {
			return out, fmt.Errorf("frame at %#x: %w", list[i].address, err)
		}
		out = append(out, m)
	}
	return out, nil
}

func (r *reader) managedFrame(c *frame, outer []frame) (m sdk.ManagedFrame, err error) {
	f := r.function(c.function)
	if f.err != nil {
		return m, f.err
	}
	m = sdk.ManagedFrame{Kind: sdk.Builtin, File: f.file}
	if f.isUser {
		m.Kind = sdk.Interpreted
		if m.Line, err = r.line(c, f); err != nil {
			return m, err
		}
	}
	if m.Function, err = r.nameOf(c, f, outer); err != nil {
		return m, err
	}
	if r.limits != nil {
		m.Variables = r.variables(c, f)
	}
	return m, nil
}

// nameOf returns the name of a frame's function in PHP's own words.
func (r *reader) nameOf(c *frame, f *function, outer []frame) (string, error) {
	if f.name == "" {
		return r.included(f, outer)
	}
	if f.class == 0 {
		return f.name, nil
	}
	class, err := r.class(f.class)
	if err != nil {
		return "", err
	}
	if c.isObject {
		return class + "->" + f.name, nil
	}
	return class + "::" + f.name, nil
}

// included names the code of a file by the operation that executes it: include, eval. Code of a file
// has no parameters, and another operation of the program does not call it.
func (r *reader) included(code *function, outer []frame) (string, error) {
	if code.count != 0 {
		return "", fmt.Errorf("a function without a name has %d parameters, expected the code of a file", code.count)
	}
	if len(outer) == 0 {
		return "{main}", nil
	}
	f := r.function(outer[0].function)
	if f.err != nil || !f.isUser || !f.hasOp(outer[0].op) {
		return "{main}", nil //nolint:nilerr // the outer frame reports it
	}
	b, err := r.Bytes(outer[0].op, opSize)
	if err != nil {
		return "", err
	}
	name := includes[r.Number(b[opExtended:opExtended+4])]
	if b[opCode] != opIncludeOrEval || name == "" {
		return "", fmt.Errorf("operation %d calls a function without a name, expected %d, which executes a file", b[opCode], opIncludeOrEval)
	}
	return name, nil
}
