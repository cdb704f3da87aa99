// SPDX-License-Identifier: Apache-2.0

package cpython

import (
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/sdk"
)

// offset is the place of a member in its struct, in bytes.
type offset int32

// none is the place of a member that the version does not have.
const none offset = -1

func (o offset) isKnown() bool { return o >= 0 }

// layout is where a version of CPython has what.
type layout struct {
	minor  int  // 11 is Python 3.11
	isFree bool // a free-threaded build

	runtime     runtimeLayout
	interpreter interpreterLayout
	gil         gilLayout
	thread      threadLayout
	handled     handledLayout
	cframe      cframeLayout
	frame       frameLayout
	frameObject frameObjectLayout
	code        codeLayout
	object      objectLayout
	class       classLayout
	sequence    sequenceLayout
	dict        dictLayout
	number      numberLayout
	text        textLayout
	generator   generatorLayout
	states      generatorStates
	exception   exceptionLayout
	traceback   tracebackLayout
	other       otherLayout
}

// runtimeLayout is _PyRuntimeState. gil is the struct of the lock itself, before 3.12.
type runtimeLayout struct{ finalizing, interpreters, gil, current offset }

// interpreterLayout is PyInterpreterState. gil is a pointer, from 3.12 on.
type interpreterLayout struct {
	id, next, threads, modules, gil, sysdict, builtins, tasks offset
}

// gilLayout is struct _gil_runtime_state. enabled is of free-threaded builds.
type gilLayout struct{ holder, locked, enabled offset }

// threadLayout is PyThreadState, and from 3.14 on _PyThreadStateImpl. raised are the exception that
// is on its way to a handler, handled the pointer to the innermost one that is being handled.
type threadLayout struct {
	size, prev, next, interpreter, frame, cframe, rootCFrame, baseFrame, holdsGIL, gilRequested, threadID, nativeID, state,
	raisedType, raisedValue, raisedTraceback, handled, id, runningLoop, runningTask, tasks offset
}

// handledLayout is _PyErr_StackItem.
type handledLayout struct{ class, traceback, value, previous offset }

// cframeLayout is CFrame of 3.10 to 3.12, a variable of the C function that executes frames.
type cframeLayout struct{ frame, previous offset }

// frameLayout is PyFrameObject before 3.11, and then _PyInterpreterFrame.
type frameLayout struct {
	size, globals, builtins, namespace, code, previous, instruction, last, locals, owner, isEntry, function, object, stack,
	line, trace, generator, stackTop, stackDepth, state, stackPointer, tlbcIndex offset
}

// frameObjectLayout is PyFrameObject from 3.11 on.
type frameObjectLayout struct{ frame, line offset }

// codeLayout is PyCodeObject. bytes is an object before 3.11, and adaptive the code itself.
type codeLayout struct {
	size, arguments, keywordOnly, flags, firstLine, fileName, name, localCount, constants, lines, qualifiedName, bytes,
	adaptive, localNames, localKinds, variables, cells, free, tlbc offset
}

// objectLayout is PyObject, with the count of PyVarObject.
type objectLayout struct{ size, class, count offset }

// classLayout is PyTypeObject and PyHeapTypeObject.
type classLayout struct {
	size, name, flags, basicSize, itemSize, dictOffset, base, dict, mro, heapName, heapQualifiedName, cachedKeys offset
}

// sequenceLayout has the members of tuple, list, bytes, bytearray and set.
type sequenceLayout struct {
	tupleItems, listItems, bytesData, byteArrayData, setUsed, setMask, setTable offset
}

// dictLayout is PyDictObject with its keys and values. beforeObject is how far before an object the
// pointer to its dict is where the class has none, and valuesBeforeObject that to its values.
type dictLayout struct {
	used, keys, values, keysSize, keysLogSize, keysLogIndexBytes, keysKind, keysUsable, keysCount, keysIndices, valuesItems,
	valuesCapacity, valuesSize, valuesValid, beforeObject, valuesBeforeObject offset
}

// numberLayout has the members of float, complex and int.
type numberLayout struct{ floatValue, complexValue, longTag, longDigits offset }

// textLayout is str: data is a pointer, asciiData and compactData the text itself. kindShift is the
// number of bits before the kind in its state.
type textLayout struct{ length, state, kindShift, asciiData, compactData, data offset }

// generatorLayout is PyGenObject: frame is a pointer before 3.11, and then the frame itself.
type generatorLayout struct{ frame, state, code, name, qualifiedName offset }

// generatorStates are the numbers of the states of a generator's frame, from 3.11 on; 127 stands for
// one that the version does not have.
type generatorStates struct{ created, suspended, executing, last, yieldsFrom, yieldsFromLocked int8 }

// exceptionLayout is PyBaseExceptionObject.
type exceptionLayout struct {
	dict, arguments, traceback, context, cause, suppressContext, notes offset
}

// tracebackLayout is PyTracebackObject.
type tracebackLayout struct{ next, frame, last, line offset }

// otherLayout has the members of modules, functions, cells, methods and weak references.
type otherLayout struct {
	moduleDict, functionCode, functionName, functionQualifiedName, functionModule, cellValue, methodFunction, methodSelf,
	builtinMethod, builtinSelf, weakTarget offset
}

// versions says which versions are known.
const versions = "3.8 to 3.15"

// findLayout returns a copy of the layout of a version; nil where it is not known.
func findLayout(minor int, isFree bool) *layout {
	for i := range layouts {
		if l := layouts[i]; l.minor == minor && l.isFree == isFree {
			return &l
		}
	}
	return nil
}

// debugCookie begins what CPython says of its own layout, from 3.13 on, at _PyRuntime.
const debugCookie = "xdebugpy"

// debugHeader is the length of the cookie, the version and whether the build is free-threaded.
const debugHeader = 24

// debugWords are the members that the words behind the header are the places of, in their order;
// "-" are not needed.
var debugWords = map[int]string{
	13: `- runtime.finalizing runtime.interpreters
- interpreter.id interpreter.next interpreter.threads - interpreter.modules interpreter.sysdict interpreter.builtins interpreter.gil gil gil.enabled gil.locked gil.holder
thread.size thread.prev thread.next thread.interpreter thread.frame thread.threadID thread.nativeID - -
frame.size frame.previous frame.code frame.instruction frame.locals frame.owner
code.size code.fileName code.name code.qualifiedName code.lines code.firstLine code.arguments code.localNames code.localKinds code.adaptive
object.size object.class
class.size class.name - class.flags
- tuple.items object.count
- list.items object.count
- dict.keys dict.values
- number.float
- number.tag number.digits
- object.count bytes.data
- text.state text.length text.asciiData
- -`,
	14: `- runtime.finalizing runtime.interpreters
- interpreter.id interpreter.next interpreter.threads - - interpreter.modules interpreter.sysdict interpreter.builtins interpreter.gil gil gil.enabled gil.locked gil.holder - -
thread.size thread.prev thread.next thread.interpreter thread.frame thread.threadID thread.nativeID - -
frame.size frame.previous frame.code frame.instruction frame.locals frame.owner frame.stackPointer frame.tlbcIndex
code.size code.fileName code.name code.qualifiedName code.lines code.firstLine code.arguments code.localNames code.localKinds code.adaptive code.tlbc
object.size object.class
class.size class.name - class.flags
- tuple.items object.count
- list.items object.count
- set.used set.table set.mask
- dict.keys dict.values
- number.float
- number.tag number.digits
- object.count bytes.data
- text.state text.length text.asciiData
- -
- generator.name generator.frame generator.state
- -
- - - - - -`,
	15: `- runtime.finalizing runtime.interpreters
- interpreter.id interpreter.next interpreter.threads - - interpreter.modules interpreter.sysdict interpreter.builtins interpreter.gil gil gil.enabled gil.locked gil.holder - -
thread.size thread.prev thread.next thread.interpreter thread.frame thread.baseFrame - - thread.threadID thread.nativeID - - thread.holdsGIL thread.gilRequested thread.raised -
handled.value
frame.size frame.previous frame.code frame.instruction frame.locals frame.owner frame.stackPointer frame.tlbcIndex
code.size code.fileName code.name code.qualifiedName code.lines code.firstLine code.arguments code.localNames code.localKinds code.adaptive code.tlbc
object.size object.class
class.size class.name - class.flags class.basicSize class.dictOffset
- class.cachedKeys
- tuple.items object.count
- list.items object.count
- set.used set.table set.mask
- dict.keys dict.values
- number.float
- number.tag number.digits
- object.count bytes.data
- text.state text.length text.asciiData text.compactData
- - - - -
- generator.name generator.frame generator.state
- -
- - - - - -`,
}

// places are the members that debugWords names.
func (l *layout) places() map[string]*offset {
	return map[string]*offset{
		"runtime.finalizing": &l.runtime.finalizing, "runtime.interpreters": &l.runtime.interpreters,
		"interpreter.id": &l.interpreter.id, "interpreter.next": &l.interpreter.next, "interpreter.threads": &l.interpreter.threads,
		"interpreter.modules": &l.interpreter.modules, "interpreter.sysdict": &l.interpreter.sysdict, "interpreter.builtins": &l.interpreter.builtins,
		"interpreter.gil": &l.interpreter.gil, "gil.enabled": &l.gil.enabled, "gil.locked": &l.gil.locked, "gil.holder": &l.gil.holder,
		"thread.size": &l.thread.size, "thread.prev": &l.thread.prev, "thread.next": &l.thread.next, "thread.interpreter": &l.thread.interpreter,
		"thread.frame": &l.thread.frame, "thread.baseFrame": &l.thread.baseFrame, "thread.threadID": &l.thread.threadID,
		"thread.nativeID": &l.thread.nativeID, "thread.holdsGIL": &l.thread.holdsGIL, "thread.gilRequested": &l.thread.gilRequested,
		"thread.raised": &l.thread.raisedValue, "handled.value": &l.handled.value,
		"frame.size": &l.frame.size, "frame.previous": &l.frame.previous, "frame.code": &l.frame.code, "frame.instruction": &l.frame.instruction,
		"frame.locals": &l.frame.locals, "frame.owner": &l.frame.owner, "frame.stackPointer": &l.frame.stackPointer, "frame.tlbcIndex": &l.frame.tlbcIndex,
		"code.size": &l.code.size, "code.fileName": &l.code.fileName, "code.name": &l.code.name, "code.qualifiedName": &l.code.qualifiedName,
		"code.lines": &l.code.lines, "code.firstLine": &l.code.firstLine, "code.arguments": &l.code.arguments, "code.localNames": &l.code.localNames,
		"code.localKinds": &l.code.localKinds, "code.adaptive": &l.code.adaptive, "code.tlbc": &l.code.tlbc,
		"object.size": &l.object.size, "object.class": &l.object.class, "object.count": &l.object.count,
		"class.size": &l.class.size, "class.name": &l.class.name, "class.flags": &l.class.flags, "class.basicSize": &l.class.basicSize,
		"class.dictOffset": &l.class.dictOffset, "class.cachedKeys": &l.class.cachedKeys,
		"tuple.items": &l.sequence.tupleItems, "list.items": &l.sequence.listItems, "bytes.data": &l.sequence.bytesData,
		"set.used": &l.sequence.setUsed, "set.table": &l.sequence.setTable, "set.mask": &l.sequence.setMask,
		"dict.keys": &l.dict.keys, "dict.values": &l.dict.values,
		"number.float": &l.number.floatValue, "number.tag": &l.number.longTag, "number.digits": &l.number.longDigits,
		"text.state": &l.text.state, "text.length": &l.text.length, "text.asciiData": &l.text.asciiData, "text.compactData": &l.text.compactData,
		"generator.name": &l.generator.name, "generator.frame": &l.generator.frame, "generator.state": &l.generator.state,
	}
}

// maxOffset bounds what CPython says of its layout: PyInterpreterState of 3.15 has 250 KB.
const maxOffset = 1 << 20

// takeDebugOffsets replaces what the version's table has by what the runtime says of itself.
func (l *layout) takeDebugOffsets(m *sdk.MemoryReader, runtime uint64) error {
	names := strings.Fields(debugWords[l.minor])
	if len(names) == 0 {
		return fmt.Errorf("the words of its debug offsets are not known")
	}
	words, err := m.Bytes(runtime+debugHeader, uint64(len(names))*8)
	if err != nil {
		return fmt.Errorf("_PyRuntime.debug_offsets: %w", err)
	}
	places, gil := l.places(), uint64(0)
	for i, name := range names {
		word := m.Number(words[i*8:][:8])
		if name == "-" {
			continue
		}
		if word >= maxOffset {
			return fmt.Errorf("_PyRuntime.debug_offsets: %s is %#x, expected less than %#x", name, word, maxOffset)
		}
		switch name {
		case "gil":
			gil = word
			continue
		case "gil.locked", "gil.holder": // places in the interpreter, where the lock is
			if word -= gil; word >= maxOffset {
				return fmt.Errorf("_PyRuntime.debug_offsets: %s is before the lock", name)
			}
		}
		place := places[name]
		if word == 0 && !place.isKnown() {
			continue // the build does not have it
		}
		*place = offset(word) //nolint:gosec // below maxOffset
	}
	return nil
}
