// SPDX-License-Identifier: Apache-2.0

package v8

import (
	"fmt"
)

// function is a function of the program: a SharedFunctionInfo.
type function struct {
	shared   object
	name     string
	script   *script // nil: it is of V8 itself
	bytecode object  // 0: it has none
	isNative bool    // V8's own stack traces show it, though it is of V8 itself
}

// flagNative is the bit of a SharedFunctionInfo's flags that isNative is in.
const flagNative = 1 << 5

// sharedOf returns the SharedFunctionInfo of a function.
func (c *call) sharedOf(fn object) (object, error) {
	return c.member(fn, functionShared, typeShared)
}

// functionOf reads a SharedFunctionInfo.
func (c *call) functionOf(shared object) (*function, error) {
	if f := c.functions[shared]; f != nil {
		return f, nil
	}
	f := &function{shared: shared}
	var err error
	if f.name, err = c.nameOf(shared); err != nil {
		return nil, fmt.Errorf("its name: %w", err)
	}
	w, err := c.word(shared, sharedScript)
	if err != nil {
		return nil, err
	}
	o, err := c.reference(w)
	if err == nil && c.isType(o, typeScript) {
		f.script, err = c.scriptOf(o)
	}
	if err != nil {
		return nil, fmt.Errorf("its script: %w", err)
	}
	flags, err := c.Uint(uint64(shared)+c.offset(sharedFlags), 4)
	if err != nil {
		return nil, err
	}
	f.isNative = flags&flagNative != 0
	if w, err = c.word(shared, sharedData); err != nil {
		return nil, err
	}
	if o, ok := objectOf(w); ok {
		if f.bytecode = c.bytecodeOf(o); f.bytecode != 0 && f.script == nil {
			return nil, fmt.Errorf("it has bytecode at %#x, and no script", f.bytecode)
		}
	}
	f.setName()
	c.functions[shared] = f
	return f, nil
}

// setName gives a function without a name the word that V8's stack traces have for it.
func (f *function) setName() {
	switch {
	case f.name != "":
	case f.script != nil && f.script.isEval:
		f.name = "eval"
	default:
		f.name = "<anonymous>"
	}
}

// bytecodeOf returns the bytecode that the data of a function leads to; 0: it does not.
func (c *call) bytecodeOf(data object) object {
	if c.isType(data, typeCode) { // baseline code
		w, err := c.word(data, codeData)
		o, ok := objectOf(w)
		if err != nil || !ok {
			return 0
		}
		data = o
	}
	if c.isType(data, typeInterpreterData) {
		// Its first member is the bytecode, but behind the second one in some versions.
		for i := uint64(1); i <= 2; i++ {
			w, err := c.Pointer(uint64(data) + i*c.PointerSize())
			if o, ok := objectOf(w); err == nil && ok && c.isType(o, typeBytecodeArray) {
				return o
			}
		}
	}
	if c.isType(data, typeBytecodeArray) {
		return data
	}
	return 0
}

// nameOf returns the name of a function as V8's stack traces have it; "" for none.
func (c *call) nameOf(shared object) (string, error) {
	w, err := c.word(shared, sharedName)
	if err != nil {
		return "", err
	}
	o, ok := objectOf(w)
	switch {
	case w == 0: // stands for no name
		return "", nil
	case !ok:
		return "", fmt.Errorf("%s of the object at %#x is %#x, expected an object or 0", nameOf(sharedName), shared, w)
	case c.isType(o, typeScopeInfo):
		return c.nameInScope(o)
	}
	return c.text(o)
}

// The bits of a ScopeInfo's flags.
const (
	scopeKindMask     = 1<<4 - 1
	scopeHasClass     = 1 << 10
	scopeFunctionMask = 3 << 12 // where the function's name is a variable
	scopeHasInferred  = 1 << 14
)

const (
	// maxLocals bounds the locals of a scope, and manyLocals is from which number on their names
	// are in a table.
	maxLocals  = 1 << 20
	manyLocals = 75
)

// nameInScope returns the name of a function that its ScopeInfo has, or the one that V8 inferred.
func (c *call) nameInScope(scope object) (string, error) {
	word := func(i uint64) (uint64, error) { return c.Pointer(uint64(scope) + (1+i)*c.PointerSize()) }
	number := func(i uint64) (int64, error) {
		w, err := word(i)
		if err != nil {
			return 0, err
		}
		n, ok := c.smi(w)
		if !ok {
			return 0, fmt.Errorf("word %d of the scope at %#x is %#x, expected a number", i, scope, w)
		}
		return n, nil
	}
	flags, err := c.Uint(uint64(scope)+c.offset(scopeFlags), 4)
	if err != nil {
		return "", err
	}
	locals, err := number(2)
	if err != nil {
		return "", err
	}
	if locals < 0 || locals > maxLocals {
		return "", fmt.Errorf("the scope at %#x has the flags %#x and %d locals", scope, flags, locals)
	}
	at := uint64(3)
	for _, part := range c.scope {
		size, isName := c.scopeSize(part, flags, uint64(locals))
		if isName {
			w, err := word(at)
			if err != nil {
				return "", err
			}
			if text, err := c.textOr(w); err != nil || text != "" {
				return text, err
			}
		}
		at += size
	}
	return "", nil
}

// scopeSize returns how many words a part of a scope has, and whether the first is a name.
func (c *call) scopeSize(part scopePart, flags, locals uint64) (size uint64, isName bool) {
	switch {
	case part == partPositions:
		return 2, false
	case part == partModuleVariables && flags&scopeKindMask == c.offset(scopeOfModule):
		return 1, false
	case part == partLocals && locals < manyLocals:
		return 2 * locals, false
	case part == partLocals:
		return 1 + locals, false
	case part == partSavedClass && flags&scopeHasClass != 0:
		return 1, false
	case part == partFunctionName && flags&scopeFunctionMask != 0:
		return 2, true
	case part == partInferredName && flags&scopeHasInferred != 0:
		return 1, true
	}
	return 0, false
}

// script is a script of the program.
type script struct {
	object       object
	name         string
	line, column int64 // of its first character, where it is a part of another file
	ends         []int64
	failure      error // why there are no ends
	isRead       bool
	isEval       bool // it is of a call of eval, or of the constructor Function
}

// scriptOf reads a script.
func (c *call) scriptOf(o object) (*script, error) {
	if s := c.scripts[o]; s != nil {
		return s, nil
	}
	s := &script{object: o}
	// The name that the source says, with sourceURL, counts.
	for _, from := range []value{scriptSourceURL, scriptName} {
		w, err := c.word(o, from)
		if err != nil {
			return nil, err
		}
		text, err := c.textOr(w)
		if err != nil {
			return nil, fmt.Errorf("%s of the object at %#x: %w", nameOf(from), o, err)
		}
		if s.name == "" {
			s.name = text
		}
	}
	var err error
	if s.line, err = c.number(o, scriptLineOffset); err != nil {
		return nil, err
	}
	if s.column, err = c.number(o, scriptColumnOffset); err != nil {
		return nil, err
	}
	if w, err := c.word(o, scriptEvalFrom); err == nil {
		from, ok := objectOf(w)
		s.isEval = ok && c.isType(from, typeShared)
	}
	c.scripts[o] = s
	return s, nil
}
