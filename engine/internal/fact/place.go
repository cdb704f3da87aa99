// SPDX-License-Identifier: Apache-2.0

package fact

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/funcname"
	"github.com/unwindd/unwindd/engine/internal/signature"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
)

// This file names the places of a crash: the frame that failed, whether it has a name or not,
// and who called it.

// libraries are the beginnings of names of functions that only pass a failure on.
var libraries = []string{
	"std::", "__gnu_cxx::", "__cxa_", "_Unwind_", "__gxx_", "core::", "alloc::", "rust_", "__rust", "<std::", "<core::", "<alloc::",
	"runtime.", "__assert", "abort", "raise", "__libc_", "__stack_chk", "__fortify", "__chk_fail", "malloc_", "_int_", "operator ",
	"__interceptor", "___interceptor",
}

func isLibrary(name string) bool { return beginsWith(name, libraries) || beginsWith(name, sanitizers) }

func beginsWith(name string, list []string) bool {
	return slices.ContainsFunc(list, func(begin string) bool { return strings.HasPrefix(name, begin) })
}

// whereText names where the process failed: the innermost frame, and the program's own function
// that called it where that is one of a library.
func (c *crash) whereText() string { return c.whereTextFrom(0) }

// whereTextFrom is whereText for the frames from one on.
func (c *crash) whereTextFrom(first int) string {
	if first >= len(c.stack.Frames) {
		return ""
	}
	text := c.place(&c.stack.Frames[first])
	if text == "" {
		return ""
	}
	if caller := c.caller(first); caller != "" && caller != text {
		text += ", called from " + caller
	}
	return " in " + text
}

// calledFrom names the function that called the code at the PC.
func (c *crash) calledFrom() string {
	if caller := c.whereTextFrom(1); caller != "" {
		return ", called from" + caller[len(" in"):]
	}
	return ""
}

// whereInProgram names the innermost function of the program's own: one in another module than
// the function that sent the signal, and no part of a run-time library.
func (c *crash) whereInProgram() string {
	name, _ := c.culprit(0)
	if name == "" {
		return ""
	}
	return " in " + name
}

// place names the place of a frame: its innermost function, or the module and the offset in it,
// or, outside all modules, what the mapping there is; "" where there is none.
func (c *crash) place(f *trace.Frame) string {
	if name := nameAt(f); name != "" {
		return name
	}
	if f.Module != nil {
		if file := object.LastPart(f.Module.Path); file != "" {
			return fmt.Sprintf("%s+%#x", file, f.ModuleOffset)
		}
	}
	_, mapping, _ := c.around(f.PC)
	_, isExecutable := c.process.State().Mapped(f.PC)
	switch {
	case mapping != nil && mapping.File != "":
		return fmt.Sprintf("%s, at its offset %#x", object.LastPart(mapping.File), mapping.Offset+f.PC-mapping.Start)
	case isExecutable:
		return fmt.Sprintf("code at %#x, which no file has", f.PC)
	}
	return ""
}

// nameAt returns the innermost function at a frame that has a name; "" where none has.
func nameAt(f *trace.Frame) string {
	for i := range f.Symbols {
		if name := nameOf(&f.Symbols[i]); name != "" {
			return name
		}
	}
	return ""
}

// nameOf returns the short name of a function; "" where it has none.
func nameOf(s *trace.Symbol) string {
	return strings.TrimPrefix(funcname.Of(s), "__GI_") // glibc's own calls of functions that it exports
}

// functionAt returns the physical function of a frame, whatever was inlined there, or its
// place.
func (c *crash) functionAt(i int) string {
	f := &c.stack.Frames[i]
	if n := len(f.Symbols); n > 0 && f.Symbols[n-1].Function != "" {
		return nameOf(&f.Symbols[n-1])
	}
	return c.place(f)
}

// maxNamed is how many frames are looked at for one that has a name.
const maxNamed = 64

// caller names the caller of the function at a frame: the program's own function where that is
// one of a library, and the next one that has a name where it has none.
func (c *crash) caller(first int) string {
	if nameAt(&c.stack.Frames[first]) != "" {
		name, _ := c.culprit(first)
		return name
	}
	name := ""
	var module *trace.Module
	for i := first + 1; i < len(c.stack.Frames) && i < first+maxNamed; i++ {
		f := &c.stack.Frames[i]
		next := nameAt(f)
		switch {
		case isStart(next), name != "" && (f.Module != module || next == ""):
			return name
		case next != "":
			if name, module = next, f.Module; module == nil || !isLibC(module.Path) {
				return name
			}
			// For the C library it is the function by which the program called it.
			name = c.functionAt(i)
		}
	}
	return name
}

// isStart reports whether a function called the program's outermost one, which tells nothing of
// a crash.
func isStart(name string) bool {
	return name == "_start" || strings.HasPrefix(name, "__libc_start") || name == "start_thread" || strings.HasPrefix(name, "clone") ||
		strings.HasPrefix(name, "__clone")
}

// culprit returns the innermost function of the program's own from a frame on, with its
// position, or its module and offset where it has no name; "" where there is none.
func (c *crash) culprit(first int) (name, position string) {
	for i := first; i < len(c.stack.Frames); i++ {
		f := &c.stack.Frames[i]
		if f.Module == nil || isLibC(f.Module.Path) || isLibCxx(f.Module.Path) || signature.IsWithMacOS(f.Module.Path) {
			continue
		}
		if nameAt(f) == "" {
			return c.place(f), ""
		}
		for j := range f.Symbols {
			s := &f.Symbols[j]
			name := nameOf(s)
			if name == "" || isLibrary(name) || isSystemHeader(s.File) {
				continue
			}
			if s.Line > 0 {
				position = fmt.Sprintf("%s:%d", path.Base(s.File), s.Line)
			}
			return name, position
		}
	}
	return "", ""
}

// isSystemHeader reports whether a file is one of the system's include files, which a cross
// compiler has in a folder of its own: /usr/aarch64-linux-gnu/include.
func isSystemHeader(file string) bool {
	rest, isSystems := strings.CutPrefix(file, "/usr/")
	return isSystems && (strings.HasPrefix(rest, "include/") || strings.Contains(rest, "/include/")) && !strings.HasPrefix(rest, "local/") && !strings.HasPrefix(rest, "src/")
}

// systems are the beginnings of the names of system libraries that only pass a failure on: the
// C library and its parts, and the parts of Windows by which programs raise exceptions.
var systems = []string{
	"libc.so", "libc-2", "libpthread", "ld-linux", "ld-musl", "ld-2", "libm.so", "linux-vdso",
	"ntdll.", "kernel32.", "kernelbase.", "ucrtbase", "vcruntime", "msvcp", "msvcr",
}

// runtimes are the beginnings of the names of libraries that compilers' code needs, which pass
// exceptions on.
var runtimes = []string{"libstdc++.so", "libc++", "libgcc_s", "libunwind.", "libsupc++"}

func isLibC(file string) bool { return beginsWith(strings.ToLower(object.LastPart(file)), systems) }

func isLibCxx(file string) bool { return beginsWith(strings.ToLower(object.LastPart(file)), runtimes) }
