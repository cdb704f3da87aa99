// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/trace"
)

// This file finds the frames of a stack that readers look for, by the tables of signatures.

// Row is consecutive frames of a run-time library that ended the program, of a panic or an abort,
// or by which a language runtime executes the functions further in.
type Row struct {
	First, End int    // of the frames of the stack; End is after the last one
	Subject    string // "the panic", "the runtime cpython"
	IsBehind   bool   // managed frames further in stand for them
}

// subjects are the words for kinds of machinery.
var subjects = map[*kind]string{
	raised: "raise", aborted: "the abort", thrown: "the fatal error", asserted: "the failed assertion", corrupted: "the heap's check",
	smashed: "the stack's check", fortified: "the buffer's check", terminated: "the exception", pure: "the pure virtual call", panicked: "the panic",
	sanitized: "the sanitizer", undefined: "the sanitizer", overflowed: "the stack overflow",
}

// fatalPython are functions by which Python ends itself. Signatures keep their names.
var fatalPython = tableOf([]string{"Py_FatalError", "_Py_FatalError*", "fatal_error", "fatal_error_exit", "faulthandler_fatal_error"})

// Reading is the frames of a stack that readers look for.
type Reading struct {
	Rows []Row
	// HasOwn reports whether there is a function of the program's own: Level is its index among
	// the Symbols of the frame with index Own.
	HasOwn     bool
	Own, Level int
}

// Read finds the rows of machinery in a stack that other functions called, and the innermost
// function of the program's own, from the frame first on: a handler of the failure may be further
// in.
func Read(s *trace.Stack, first int) *Reading {
	r := newReader(s)
	r.hasPython, r.isApple = true, true
	for i := range s.Frames {
		if len(r.calls) >= maxCalls {
			break
		}
		r.index = i
		r.frame(&s.Frames[i])
	}
	calls := withoutStartup(r.calls, &newStartups)
	out := &Reading{}
	for i := 0; i < len(calls); {
		n, kind, _ := row(calls[i:], i == 0)
		if n == 0 {
			i++
			continue
		}
		for i+n < len(calls) && calls[i+n].isSystem { // without a name, in the same library
			n++
		}
		if subject := subjects[kind]; subject != "" && i+n < len(calls) {
			out.add(r.calls, i, i+n, subject)
		}
		i += n
	}
	out.addBehind(s.Frames)
	out.findOwn(s, calls, first)
	return out
}

// Behind finds the rows of native frames in a stack that managed ones stand for.
func Behind(frames []trace.Frame) []Row {
	var r Reading
	r.addBehind(frames)
	return r.Rows
}

// addBehind adds the rows of native frames that managed ones stand for, as far as they are in no
// other row, and sorts all rows.
func (o *Reading) addBehind(frames []trace.Frame) {
	runtime := ""
	var rows []Row
	for i := range frames {
		f := &frames[i]
		if m := f.Managed(); m != nil && !m.IsNative {
			runtime = m.Runtime
		}
		if !f.BehindManaged || o.has(i) {
			continue
		}
		if n := len(rows); n > 0 && rows[n-1].End == i {
			rows[n-1].End++
			continue
		}
		rows = append(rows, Row{i, i + 1, "the runtime " + runtime, true})
	}
	if len(rows) == 0 {
		return
	}
	o.Rows = append(o.Rows, rows...)
	slices.SortFunc(o.Rows, func(a, b Row) int { return cmp.Compare(a.First, b.First) })
}

// add adds the frames of which all calls are in a row.
func (o *Reading) add(calls []call, first, end int, subject string) {
	from, to := calls[first].frame, calls[end-1].frame+1
	if first > 0 && calls[first-1].frame == from {
		from++
	}
	if end < len(calls) && calls[end].frame == to-1 {
		to--
	}
	if from < to {
		o.Rows = append(o.Rows, Row{First: from, End: to, Subject: subject})
	}
}

// findOwn finds the program's own function: or else, the first one that is no machinery and has a
// name, of no runtime where there are others.
func (o *Reading) findOwn(s *trace.Stack, calls []call, first int) {
	for _, isOwn := range []func(*call, *trace.Frame) bool{isOwn, isUsableOutside, isUsable} {
		for i := range calls {
			if c := &calls[i]; c.level >= 0 && c.frame >= first && isOwn(c, &s.Frames[c.frame]) && !o.has(c.frame) {
				o.HasOwn, o.Own, o.Level = true, c.frame, c.level
				return
			}
		}
	}
}

// has reports whether a frame is in a row.
func (o *Reading) has(frame int) bool {
	for _, r := range o.Rows {
		if frame >= r.First && frame < r.End {
			return true
		}
	}
	return false
}

func isUsable(c *call, _ *trace.Frame) bool { return c.kind == nil && !isPlumbing(c.plain) }

// isUsableOutside is isUsable for functions by which no runtime executes others.
func isUsableOutside(c *call, f *trace.Frame) bool { return isUsable(c, f) && !c.isRuntimes }

// isOwn reports whether a function is the program's own: of no library of the language, and of no
// library that lies with the system's.
func isOwn(c *call, f *trace.Frame) bool {
	s := &f.Symbols[c.level]
	if m := f.Managed(); m != nil {
		return m.Kind != trace.ManagedBuiltin && m.Kind != trace.ManagedEntry && !isManagedLibrary(m.Runtime, s)
	}
	return isUsableOutside(c, f) && !isLanguages(c.plain, s.File) && !isWithSystem(f.Module)
}

// languageFolders are parts of the paths of source files of languages' own libraries.
var languageFolders = []string{"/rustc/", "/include/c++/", "/include/bits/", "/usr/include/", "/lib/rustlib/"}

// isLanguages reports whether a function is of a language's own library.
func isLanguages(plain, file string) bool {
	if isRustLibrary(plain) || strings.HasPrefix(plain, "std::") || strings.HasPrefix(plain, "__gnu_cxx::") || strings.HasPrefix(plain, "operator ") {
		return true
	}
	for _, folder := range languageFolders {
		if strings.Contains(file, folder) {
			return true
		}
	}
	return strings.HasSuffix(file, ".go") && isGoLibrary(plain, file)
}

// managedLibraries tell the own libraries of languages by runtimes: by the beginnings of functions,
// by parts of the paths of files, and by parts of these that are other people's all the same.
var managedLibraries = map[string]struct{ functions, files, others []string }{
	"cpython": {files: []string{"<frozen ", "/lib/python3.", "/lib64/python3."}, others: []string{"/site-packages/", "/dist-packages/"}},
	"hotspot": {functions: []string{"java.", "javax.", "jdk.", "sun.", "com.sun."}},
	"v8":      {files: []string{"node:", "internal/"}},
	"ruby":    {files: []string{"/lib/ruby/", "<internal:"}, others: []string{"/gems/"}},
	"dotnet":  {functions: []string{"System.", "Microsoft.", "Interop."}},
	"beam":    {files: []string{"/lib/erlang/lib/"}},
}

// isManagedLibrary reports whether a function of a runtime is of the language's own library.
func isManagedLibrary(runtime string, s *trace.Symbol) bool {
	own := managedLibraries[runtime]
	contains := func(part string) bool { return strings.Contains(s.File, part) }
	begins := func(part string) bool { return strings.HasPrefix(s.File, part) }
	if slices.ContainsFunc(own.others, contains) {
		return false
	}
	return slices.ContainsFunc(own.functions, func(part string) bool { return strings.HasPrefix(s.Function, part) }) ||
		slices.ContainsFunc(own.files, func(part string) bool { return begins(part) || part[0] == '/' && contains(part) })
}

// isGoLibrary reports whether a function of Go is of the standard library, whose packages have
// no dots in their paths and are in the folder src.
func isGoLibrary(plain, file string) bool {
	slash := strings.LastIndexByte(plain, '/') + 1
	last, _, _ := strings.Cut(plain[slash:], ".")
	pkg := plain[:slash] + last
	if pkg == "main" || pkg == "" {
		return false
	}
	if pkg == "runtime" {
		return true
	}
	begins, _, _ := strings.Cut(pkg, "/")
	return !strings.Contains(begins, ".") && strings.HasSuffix(path.Dir(file), "/src/"+pkg)
}

// isWithSystem reports whether a module is a library in a folder of the system's own.
func isWithSystem(m *trace.Module) bool {
	if m == nil {
		return true
	}
	if isSystem(moduleName(m.Path)) || IsWithMacOS(m.Path) {
		return true
	}
	folder := path.Dir(m.Path)
	if path.Base(folder) == "lib-dynload" || strings.Contains(folder, "/lib/jvm/") { // of Python's library, and Java's
		return true
	}
	for _, lib := range []string{"/lib", "/lib64", "/usr/lib", "/usr/lib64"} {
		if folder == lib || path.Dir(folder) == lib && strings.Contains(path.Base(folder), "-linux-") {
			return true
		}
	}
	return false
}

// isFatalPython reports whether a function ends Python. Some of the names are common: the module has
// to be Python's.
func isFatalPython(n string, m *trace.Module) bool {
	is, _ := fatalPython.find(n)
	return is && m != nil && strings.Contains(moduleName(m.Path), "python")
}
