// SPDX-License-Identifier: Apache-2.0

package php

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/unwindd/unwindd/sdk"
)

// process is the interpreter in a process.
type process struct {
	*layout // nil: its version is not known
	request *sdk.OpenRuntimeRequest

	executor, core            uint64 // executor_globals and core_globals; 0: unknown
	executeStart, executeEnd  uint64 // execute_ex, which executes PHP
	generatorClass            uint64 // 0: unknown, as the others
	fiberClass                uint64
	exceptionClass, errorCase uint64
}

// reader reads a process during one call.
type reader struct {
	*process
	*sdk.MemoryReader
	ctx    context.Context
	engine sdk.RuntimeEngine
	limits *limits // of variables; nil: none are read

	functions map[uint64]*function
	classes   map[uint64]string
	wrong     error // of the exception that is read
}

func newReader(ctx context.Context, e sdk.RuntimeEngine, x *process) *reader {
	return &reader{
		process: x, MemoryReader: sdk.NewMemoryReader(ctx, e, x.request.ByteOrder, x.request.AddressBits), ctx: ctx, engine: e,
		functions: map[uint64]*function{}, classes: map[uint64]string{},
	}
}

// open finds the version and the places of the interpreter's state.
func (r *reader) open() (version string, err error) {
	x, q := r.process, r.request
	if len(q.Symbols) != len(Description().Symbols) {
		return "", errors.New("the engine says nothing of its symbols")
	}
	if q.AddressBits != 64 {
		return "", fmt.Errorf("addresses of %d bits, expected 64", q.AddressBits)
	}
	place := func(symbol int) uint64 {
		if s := &q.Symbols[symbol]; s.IsKnown {
			return s.Address
		}
		return 0
	}
	if place(symbolModules) == 0 {
		return "", errors.New("its table of modules, module_registry, is not exported")
	}
	version, known, err := r.findVersion(place(symbolModules))
	if err != nil {
		return version, err
	}
	switch s := &q.Symbols[symbolExecute]; {
	case place(symbolExecutor) == 0:
		return version, errors.New("executor_globals is not exported")
	case !s.IsKnown || s.Size == 0:
		return version, errors.New("execute_ex is not exported")
	default:
		x.executor, x.core = place(symbolExecutor), place(symbolCore)
		x.executeStart, x.executeEnd = s.Address, s.Address+s.Size
	}
	for symbol, to := range map[int]*uint64{
		symbolGenerator: &x.generatorClass, symbolFiber: &x.fiberClass, symbolException: &x.exceptionClass, symbolError: &x.errorCase,
	} {
		if address := place(symbol); address != 0 {
			*to, _ = r.Pointer(address) // 0 until the class is made
		}
	}
	x.layout = known
	return version, nil
}

// maxModules bounds the modules of an interpreter.
const maxModules = 1 << 10

// findVersion finds the version by the interpreter's own modules: each has the number that it was
// built for, and the one named standard has the version of PHP.
func (r *reader) findVersion(registry uint64) (string, *layout, error) {
	t, err := r.Bytes(registry, tableSize)
	if err != nil {
		return "", nil, fmt.Errorf("module_registry: %w", err)
	}
	used := min(r.Number(t[tableUsed:tableUsed+4]), maxModules)
	buckets, err := r.Bytes(r.Number(t[tableData:tableData+8]), used*bucketSize)
	if err != nil {
		return "", nil, fmt.Errorf("the modules in module_registry: %w", err)
	}
	for ; len(buckets) >= bucketSize; buckets = buckets[bucketSize:] {
		if kind := buckets[valueType]; kind != typePointer && kind != typePointer74 {
			continue
		}
		m, err := r.Bytes(r.Number(buckets[:8]), moduleSize)
		if err != nil || r.Number(m[:2]) != moduleSize {
			continue
		}
		if name, err := r.Text(r.Number(m[moduleName:moduleName+8]), sdk.MaxName); err != nil || name != "standard" {
			continue
		}
		return r.versionOf(m)
	}
	return "", nil, errors.New("module_registry has no module standard, which has the version of PHP")
}

// versionOf returns the version that a module was built for.
func (r *reader) versionOf(m []byte) (string, *layout, error) {
	version, err := r.Text(r.Number(m[moduleVersion:moduleVersion+8]), sdk.MaxName)
	if err != nil || !utf8.ValidString(version) {
		return "", nil, errors.New("the version of its module standard is no text")
	}
	api := r.Number(m[moduleAPI : moduleAPI+4])
	i := slices.IndexFunc(layouts, func(l layout) bool { return l.api == api })
	switch {
	case i < 0 || !strings.HasPrefix(version, layouts[i].version+"."):
		var names []string
		for _, l := range layouts {
			names = append(names, l.version)
		}
		return version, nil, fmt.Errorf("version %q with modules for %d, expected one of %s", version, api, strings.Join(names, ", "))
	case m[moduleThreads] != 0:
		return version, nil, errThreads
	case m[moduleDebug] != 0:
		return version, nil, errors.New("it is a debug build, which no layout here describes")
	}
	return version, &layouts[i], nil
}

// maxString bounds names, files and messages, in bytes.
const maxString = 1 << 14

// errText is the error for memory that is no string of PHP.
var errText = errors.New("is no string")

// text reads a zend_string of at most maxString bytes.
func (r *reader) text(address uint64) (string, error) {
	s, left, err := r.textPart(address, maxString)
	if err == nil && left > 0 {
		err = fmt.Errorf("the string at %#x has %d bytes, expected at most %d", address, uint64(len(s))+left, maxString)
	}
	return s, err
}

// textPart reads the first most bytes of a zend_string, and returns how many were left out.
func (r *reader) textPart(address, most uint64) (part string, left uint64, err error) {
	if address == 0 || address%8 != 0 {
		return "", 0, fmt.Errorf("%#x %w: expected an address that 8 divides", address, errText)
	}
	head, err := r.Bytes(address, stringBytes)
	if err != nil {
		return "", 0, err
	}
	if kind := head[4] & 15; kind != typeString {
		return "", 0, fmt.Errorf("%#x %w: it has type %d, expected %d", address, errText, kind, typeString)
	}
	size := r.Number(head[stringLength : stringLength+8])
	if size > 1<<40 {
		return "", 0, fmt.Errorf("%#x %w: it has %d bytes", address, errText, size)
	}
	n := min(size, most)
	b, err := r.Bytes(address+stringBytes, n)
	if err != nil {
		return "", 0, err
	}
	if end, err := r.Uint(address+stringBytes+size, 1); n == size && (err != nil || end != 0) {
		return "", 0, fmt.Errorf("%#x %w: no 0 follows its %d bytes", address, errText, size)
	}
	if h := r.Number(head[stringHash : stringHash+8]); h != 0 && n == size && h != hash(b) {
		return "", 0, fmt.Errorf("%#x %w: its hash is %#x, expected %#x", address, errText, h, hash(b))
	}
	return string(b), size - n, nil
}

// hash is the hash of a string, which PHP keeps once it needs it: Bernstein's, with the highest bit.
func hash(b []byte) uint64 {
	h := uint64(5381)
	for _, c := range b {
		h = h*33 + uint64(c)
	}
	return h | 1<<63
}

// valid returns a text of a program as UTF-8.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// class returns the name of a class. That of an anonymous one ends before the file that has it.
func (r *reader) class(address uint64) (string, error) {
	if name, isKnown := r.classes[address]; isKnown {
		return name, nil
	}
	if address == 0 || address%8 != 0 {
		return "", fmt.Errorf("%#x is no class: expected an address that 8 divides", address)
	}
	head, err := r.Bytes(address, classParent+8)
	if err != nil {
		return "", err
	}
	if kind := head[classType]; kind != functionInternal && kind != functionUser {
		return "", fmt.Errorf("%#x is no class: it has type %d, expected 1 or 2", address, kind)
	}
	name, err := r.text(r.Number(head[className : className+8]))
	if err != nil {
		return "", err
	}
	name, _, _ = strings.Cut(name, "\x00")
	if name == "" {
		return "", fmt.Errorf("the class at %#x has no name", address)
	}
	name = valid(name)
	r.classes[address] = name
	return name, nil
}

// checkClass checks the part of an object's class that the target has. One that is named as the interpreter's
// own is that: it is 0 until it is made.
func (r *reader) checkClass(address uint64, name string, own uint64) error {
	if address == 0 || address%8 != 0 || address>>47 != 0 {
		return fmt.Errorf("%#x is no class: expected an address that 8 divides", address)
	}
	if address == own {
		return nil
	}
	kind, err := r.Uint(address+classType, 1)
	if err != nil {
		return nil //nolint:nilerr // the target does not have it
	}
	if kind > functionUser { // 0: of the interpreter itself
		return fmt.Errorf("%#x is no class: it has type %d, expected at most 2", address, kind)
	}
	if found, err := r.class(address); err == nil && found == name {
		return fmt.Errorf("the class %s is at %#x, expected %#x", name, address, own)
	}
	return nil
}

// executes reports whether a native stack executes PHP.
func (x *process) executes(s *sdk.NativeStack) bool {
	for i := range s.Frames {
		if x.isEntry(s.Frames[i]) || x.mayBeEntry(s, i) {
			return true
		}
	}
	return false
}

// callers are the functions that call execute_ex.
var callers = map[string]bool{"zend_execute": true, "zend_call_function": true, "zend_generator_resume": true}

// mayBeEntry reports whether a native frame without a name may stand for execute_ex: it is called as
// that is. Code that opcache compiled goes on in execute_ex's own frame, and so does its cold part,
// which has no symbol.
func (x *process) mayBeEntry(s *sdk.NativeStack, i int) bool {
	if i+1 >= len(s.Frames) || s.Frames[i].Function != "" {
		return false
	}
	outer := &s.Frames[i+1]
	return outer.InModule && callers[outer.Function]
}

// isEntry reports whether a native frame is of execute_ex.
func (x *process) isEntry(f sdk.NativeFrame) bool {
	return f.InModule && (f.PC-x.executeStart < x.executeEnd-x.executeStart || strings.HasPrefix(f.Function, "execute_ex."))
}
