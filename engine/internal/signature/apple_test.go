// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/trace"
)

// Functions of macOS by which an exception or a failed assertion ends a process are left out of the signatures of
// its reports and cores, and of no others.
func TestFunctionsOfMacOS(t *testing.T) {
	const app, core, objc, kernel, swift = "/Applications/A.app/Contents/MacOS/A", "/System/Library/Frameworks/CoreFoundation.framework/Versions/A/CoreFoundation", "/usr/lib/libobjc.A.dylib",
		"/usr/lib/system/libsystem_kernel.dylib", "/usr/lib/swift/libswiftCore.dylib"
	for _, c := range []struct{ frames, want, others string }{
		{
			core + " __exceptionPreprocess;" + objc + " objc_exception_throw;" + core + " -[NSException raise];" + app + " -[A run:];/usr/lib/dyld start",
			"[terminate] | -[A run:]", "exceptionPreprocess | [terminate] | -[NSException raise] | -[A run:] | start",
		},
		{
			kernel + " __pthread_kill;" + kernel + " pthread_kill$VARIANT$mp;/usr/lib/system/libsystem_c.dylib abort;/usr/lib/libc++abi.dylib abort_message;" +
				"/usr/lib/libc++abi.dylib demangling_terminate_handler();" + objc + " _objc_terminate();/usr/lib/libc++abi.dylib std::__terminate(void (*)());" + app + " run();" + app + " main;/usr/lib/dyld start",
			"[terminate] | run | main", "[raise] | pthread_kill$VARIANT$mp | [terminate] | run | main",
		},
		{
			swift + " _assertionFailure(_:_:file:line:flags:);" + swift + " specialized _assertionFailure(_:_:file:line:flags:);" + app + " start;" + app + " A.b()",
			"[panic] | start | A.b", "assertionFailure | start | A.b",
		},
		{"? ?;" + kernel + " __pthread_kill;/usr/lib/system/libsystem_c.dylib abort;" + app + " main", "[abort] | main", "?? | [abort] | main"},
		{"/usr/lib/system/libsystem_malloc.dylib nanov2_allocate_outlined;" + app + " main", "[heap] | main", "nanov2_allocate_outlined | main"},
		{app + " run();/usr/lib/system/libsystem_pthread.dylib _pthread_wqthread;/usr/lib/system/libsystem_pthread.dylib start_wqthread", "run", "run | pthread_wqthread | start_wqthread"},
	} {
		s := &trace.Stack{Thread: &trace.Thread{}}
		modules := map[string]*trace.Module{}
		for frame := range strings.SplitSeq(c.frames, ";") {
			path, function, _ := strings.Cut(frame, " ")
			if path == "?" {
				s.Frames = append(s.Frames, trace.Frame{})
				continue
			}
			if modules[path] == nil {
				modules[path] = &trace.Module{Path: path, IsMachO: true}
			}
			s.Frames = append(s.Frames, trace.Frame{Module: modules[path], Symbols: []trace.Symbol{{Function: function}}})
		}
		for isApple, want := range map[bool]string{true: c.want, false: c.others} {
			one := Of(trace.SignatureVersion, &Crash{Stack: s, IsApple: isApple})
			if got := strings.Join(one.Frames, " | "); got != want {
				t.Errorf("%v: %s, expected %s", isApple, got, want)
			}
		}
	}
}
