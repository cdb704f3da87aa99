// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"slices"
	"testing"

	"github.com/unwindd/unwindd/engine/trace"
)

// The modules of a Python program with an extension.
var (
	python    = &trace.Module{Path: "/opt/python/bin/python3"}
	extension = &trace.Module{Path: "/srv/app/fast.so"}
	library   = &trace.Module{Path: "/opt/python/lib/python3.12/lib-dynload/_json.so"}
	ctypes    = &trace.Module{Path: "/opt/python/lib/python3.12/lib-dynload/_ctypes.cpython-312-x86_64-linux-gnu.so"}
	ffi       = &trace.Module{Path: "/usr/lib/x86_64-linux-gnu/libffi.so.8.1.2"}
	libC      = &trace.Module{Path: "/lib/x86_64-linux-gnu/libc.so.6"}
)

func machine(m *trace.Module, function string) trace.Frame {
	return trace.Frame{Module: m, Symbols: []trace.Symbol{{Function: function}}}
}

func language(kind trace.ManagedKind, function, file string) trace.Frame {
	return trace.Frame{Symbols: []trace.Symbol{{Function: function, File: file, Line: 1}}, Details: &trace.FrameDetails{Managed: &trace.Managed{Runtime: "cpython", Kind: kind}}}
}

func behind(f trace.Frame) trace.Frame {
	f.BehindManaged = true
	return f
}

// program is a stack of a Python program around innermost frames.
func program(innermost ...trace.Frame) *trace.Stack {
	frames := slices.Concat(innermost, []trace.Frame{
		language(trace.ManagedInterpreted, "load", "/srv/app/main.py"), behind(machine(python, "_PyEval_EvalFrameDefault")),
		machine(python, "method_vectorcall"), language(trace.ManagedEntry, "<entry>", ""),
		language(trace.ManagedInterpreted, "<module>", "/srv/app/main.py"), behind(machine(python, "_PyEval_EvalFrameDefault")),
		machine(python, "pymain_run_python"), machine(python, "main"), machine(libC, "__libc_start_main"),
	})
	return &trace.Stack{Thread: &trace.Thread{Crashed: true}, Frames: frames, Runtimes: []trace.RuntimeThread{{Runtime: "cpython", Module: python}}}
}

func TestFunctionsOfTheProgramComeBeforeTheRuntimes(t *testing.T) {
	aborted := []trace.Frame{machine(libC, "raise"), machine(libC, "abort"), machine(python, "os_abort_impl"), machine(python, "os_abort")}
	deep := []trace.Frame{machine(python, "list_dealloc"), machine(python, "subtype_dealloc"), machine(python, "call"), machine(python, "object_vacall"), machine(python, "method"), machine(python, "x")}
	for _, c := range []struct {
		name   string
		stack  *trace.Stack
		raised string
		want   []string
		own    string // "": the innermost function of the program's own
	}{
		{"in an extension", program(machine(extension, "parse"), machine(python, "cfunction_call")), "", []string{"parse", "load", "<module>"}, "parse"},
		{"in the interpreter", program(deep...), "", []string{"load", "<module>", "list_dealloc"}, "load"},
		{"in a library of the language's", program(machine(library, "scan_once"), language(trace.ManagedInterpreted, "decode", "/opt/python/lib/python3.12/json/decoder.py")), "",
			[]string{"scan_once", "decode", "load", "<module>"}, "load"},
		{"in a function of C that ctypes calls", program(append([]trace.Frame{machine(libC, "strlen"), machine(ffi, ""), machine(ffi, "ffi_call")}, machine(ctypes, "callproc"), machine(python, "call"))...), "",
			[]string{"strlen", "load", "<module>"}, "load"},
		{"in a package", program(language(trace.ManagedInterpreted, "decode", "/opt/python/lib/python3.12/site-packages/x.py")), "", []string{"decode", "load", "<module>"}, "decode"},
		{"in a builtin", program(language(trace.ManagedBuiltin, "len", "")), "", []string{"len", "load", "<module>"}, "load"},
		{"by abort", program(aborted...), "", []string{"[abort]", "load", "<module>", "os_abort_impl"}, "load"},
		{"by an exception", program(aborted...), "ValueError", []string{"[ValueError]", "load", "<module>", "os_abort_impl"}, "load"},
		{"without functions of the language", &trace.Stack{Thread: &trace.Thread{}, Frames: deep, Runtimes: program().Runtimes}, "",
			[]string{"list_dealloc", "subtype_dealloc", "call", "object_vacall", "method"}, "list_dealloc"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if s := Of(trace.SignatureVersion, &Crash{Stack: c.stack, Raised: c.raised}); !slices.Equal(s.Frames, c.want) {
				t.Errorf("signature %q, expected %q", s.Frames, c.want)
			}
			r := Read(c.stack, 0)
			if !r.HasOwn || c.stack.Frames[r.Own].Symbols[r.Level].Function != c.own {
				t.Errorf("the program's own function: %+v, expected %s", r, c.own)
			}
		})
	}
}

func TestSignaturesOfTheFirstVersionAreAsTheyWere(t *testing.T) {
	s := Of(trace.FirstSignatureVersion, &Crash{Stack: program(machine(python, "list_dealloc")), Raised: "ValueError"})
	if want := []string{"list_dealloc", "load", "method_vectorcall", "<entry>", "<module>"}; !slices.Equal(s.Frames, want) {
		t.Errorf("signature %q, expected %q", s.Frames, want)
	}
}

// A long recursion of the language is named by its functions.
func TestARecursionOfTheLanguage(t *testing.T) {
	var frames []trace.Frame
	for range 40 {
		frames = append(frames, language(trace.ManagedInterpreted, "walk", "/srv/app/main.py"), behind(machine(python, "_PyEval_EvalFrameDefault")), machine(python, "method_vectorcall"), machine(python, "slot_call"))
	}
	s := Of(trace.SignatureVersion, &Crash{Stack: program(frames...), IsOverflow: true})
	if want := []string{"[stack overflow]", "walk"}; !slices.Equal(s.Frames, want) {
		t.Errorf("signature %q, expected %q", s.Frames, want)
	}
}
