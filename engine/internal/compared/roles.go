// SPDX-License-Identifier: Apache-2.0

package compared

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/funcname"
	"github.com/unwindd/unwindd/engine/internal/signature"
	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/trace"
)

// This file finds the roles of threads, by which the threads of one target are matched with other targets'.

const (
	// mainRole is the role of the thread that a process began with.
	mainRole = "main"
	// noRole is the role of a thread of which nothing tells what it was started for.
	noRole = "thread"
)

// mainNames are the names that language runtimes give the main thread.
var mainNames = map[string]bool{"MainThread": true, "main": true}

// starters are functions by which libraries and language runtimes start threads, beside those that a
// signature leaves out.
var starters = map[string]bool{
	// the C library, by other names than signatures know, and what std::async has it call
	"clone": true, "pthread_once": true, "__pthread_once": true, "___pthread_once": true, "__pthread_once_slow": true, "__once_proxy": true, "__gthread_once": true,
	// std::__invoke of libc++, whose name begins with its type
	"decltype": true,
	// CPython
	"pythread_wrapper": true, "thread_run": true, "t_bootstrap": true, "bootstrap": true, "Thread._bootstrap": true, "Thread._bootstrap_inner": true, "Thread.run": true,
	"_bootstrap": true, "_bootstrap_inner": true, "run@threading.py": true, "method_vectorcall": true, "_PyVectorcall_Call": true, "PyObject_Call": true, "_PyObject_Call": true, "_PyFunction_Vectorcall": true, "PyEval_CallObjectWithKeywords": true,
	// HotSpot
	"thread_native_entry": true, "Thread::call_run": true, "JavaThread::run": true, "JavaThread::thread_main_inner": true, "thread_entry": true, "java_start": true,
	"JavaCalls::call_virtual": true, "JavaCalls::call_helper": true, "JavaCalls::call": true, "java.lang.Thread.run": true, "java.lang.Thread.runWith": true,
	"os::os_exception_wrapper": true, "ThreadJavaMain": true, "JavaMain": true, "invokeStaticMainWithArgs": true, "jni_CallStaticVoidMethod": true, "jni_invoke_static": true,
	// .NET
	"CorUnix::CPalThread::ThreadEntry": true, "Thread::intermediateThreadProc": true, "ThreadNative::KickOffThread": true, "ThreadNative::KickOffThread_Worker": true,
	"ManagedThreadBase::KickOff": true, "ManagedThreadBase_DispatchOuter": true, "ManagedThreadBase_DispatchMiddle": true, "ManagedThreadBase_DispatchInner": true,
	"ManagedThreadBase_FullTransition": true, "ManagedThreadBase_NoADTransition": true, "CallDescrWorkerInternal": true, "CallDescrWorkerWithHandler": true, "DispatchCallSimple": true,
	"MethodDescCallSite::CallTargetWorker": true, "System.Threading.Thread.StartCallback": true, "System.Threading.ThreadHelper.ThreadStart": true, "System.Threading.ThreadHelper.ThreadStart_Context": true,
	// Ruby, OCaml, cgo
	"nt_start": true, "thread_start_func_1": true, "thread_start_func_2": true, "thread_do_start": true, "caml_thread_start": true, "threadentry": true, "crosscall1": true, "crosscall_amd64": true,
	// Windows
	"_threadstartex": true, "_threadstart": true, "ThreadStartThunk": true, "call_thread_func": true, "thread_start_wrapper": true, "invoke_thread_procedure": true, "_callthreadstart": true, "_callthreadstartex": true,
	// GLib, Qt, Boost, libuv
	"g_thread_proxy": true, "QThreadPrivate::start": true, "thread_proxy": true, "boost::thread_proxy": true, "uv__thread_start": true,
	// sanitizers put their own function between
	"asan_thread_start": true, "__tsan_thread_start_func": true, "MsanThreadStartFunc": true, "__lsan_thread_start_func": true,
}

// starting begin the names of functions that lead to the one that a thread was started for: they are of libraries of
// languages, for whose own functions no program starts a thread.
var starting = []string{
	// std::thread, std::async, std::function, std::bind of C++; std::thread of Rust
	"std::", "alloc::boxed::",
	// Boost.Thread, with Boost.Bind and Boost.Function
	"boost::detail::thread_data", "boost::detail::function::", "boost::function", "boost::_bi::", "boost::_mfi::", "boost::bind",
	// D
	"core.thread.",
}

// pools begin the names of functions of libraries whose threads execute what comes: of OpenMP by GCC and LLVM, and TBB. One that
// waits has the pool's function as its role, as all that its libraries do there is chance.
var pools = []string{"gomp_", "GOMP_", "__kmp", "tbb::"}

func begins(plain string, with []string) bool {
	return slices.ContainsFunc(with, func(s string) bool { return strings.HasPrefix(plain, s) })
}

// isMachinery reports whether a function starts threads or the program, so that the next one further in
// is the one that the thread was started for.
func isMachinery(function, file string) bool {
	plain := signature.PlainName(function, file)
	return starters[plain] || starters[function] || file != "" && starters[plain+"@"+path.Base(file)] || begins(plain, starting) ||
		signature.IsStartup(plain) || signature.IsPlumbing(plain)
}

// isOfPool reports whether a function is of a library whose threads execute what comes.
func isOfPool(function, file string) bool { return begins(signature.PlainName(function, file), pools) }

// roles returns the roles of the threads of a process.
func (r *Reader) roles(p *Process) []string {
	roles, process := make([]string, len(p.Threads)), p.name()
	for i, th := range p.Threads {
		roles[i] = clip(r.role(p, th, process))
	}
	return roles
}

// name returns the name of the process, which threads have too that no name was given: that of its main
// thread, or of its file as the kernel cuts it.
func (p *Process) name() string {
	for _, th := range p.Threads {
		if p.isMain(th) && th.Name != "" {
			return th.Name
		}
	}
	const maxComm = 15
	file := path.Base(strings.ReplaceAll(p.Executable, `\`, "/"))
	return file[:min(len(file), maxComm)]
}

func (p *Process) isMain(th *Thread) bool {
	return p.PID != 0 && th.Word == "" && !th.IsWave && th.ID == strconv.FormatInt(p.PID, 10)
}

// role returns the role of a thread. process is the name of its process.
func (r *Reader) role(p *Process, th *Thread, process string) string {
	switch {
	case th.IsWave:
		return "wave of " + kernelName(th)
	case th.Word != "":
		return strings.TrimSuffix(th.Word+" of "+entryName(th.Entry), " of ")
	}
	if i := slices.IndexFunc(th.Named, func(n string) bool { return n != "" }); i >= 0 {
		if mainNames[th.Named[i]] {
			return mainRole
		}
		return withoutNumbers(th.Named[i])
	}
	switch {
	case p.isMain(th):
		return mainRole
	case th.Name != "" && th.Name != process:
		return withoutNumbers(th.Name)
	}
	return r.entry(th)
}

// kernelName returns the name of the kernel of a wave.
func kernelName(th *Thread) string {
	kernel := strings.TrimSuffix(th.Kernel, ".kd")
	if kernel == "" {
		for i := range slices.Backward(th.Frames) {
			if f := &th.Frames[i]; f.IsWave && f.Function != "" {
				return f.Function
			}
		}
		return "a kernel without a name"
	}
	return entryName(kernel)
}

// entryName returns the name of a function for people.
func entryName(function string) string {
	return funcname.Short(symbol.Demangle(function), function, "")
}

// entry returns the function that a thread was started for: its outermost one that starts no threads.
// A stack of which the outermost frames are not known does not tell.
func (r *Reader) entry(th *Thread) string {
	isKnown := th.Ends == ""
	var pool *trace.ComparedFrame
	for i := range slices.Backward(th.Frames) {
		f := &th.Frames[i]
		switch {
		case r.starts(f):
			isKnown = true
		case r.isOfPool(f):
			if isKnown = true; pool == nil {
				pool = f
			}
		case pool != nil && f.Module != "" && (f.Module == pool.Module || signature.IsSystem(f.Module)): // it waits
		case !isKnown:
			return noRole
		default:
			return nameOfEntry(f)
		}
	}
	if pool != nil {
		return nameOfEntry(pool)
	}
	return noRole
}

// nameOfEntry names the function of a frame for a role.
func nameOfEntry(f *trace.ComparedFrame) string {
	switch {
	case f.Function == "" && f.Module == "":
		return noRole
	case f.Function == "":
		return f.Module + "+0x" + strconv.FormatUint(f.Offset, 16)
	case f.Short != "":
		return f.Short
	}
	return f.Function
}

// isOfPool reports whether a frame is of a library whose threads execute what comes.
func (r *Reader) isOfPool(f *trace.ComparedFrame) bool {
	return f.Function != "" && r.nameOf(&trace.Symbol{Function: f.Function, File: f.File}).isOfPool
}

// starts reports whether a frame is of a function that starts threads. Libraries of the system do that in
// functions without a name, too.
func (r *Reader) starts(f *trace.ComparedFrame) bool {
	if f.Function == "" {
		return f.Module != "" && signature.IsSystem(f.Module)
	}
	return r.nameOf(&trace.Symbol{Function: f.Function, File: f.File}).isMachinery
}

// withoutNumbers returns a name with # in the place of each number.
func withoutNumbers(s string) string {
	isNumber := func(c byte) bool { return c >= '0' && c <= '9' }
	out := make([]byte, 0, len(s))
	for i := range len(s) {
		switch {
		case !isNumber(s[i]):
			out = append(out, s[i])
		case i == 0 || !isNumber(s[i-1]):
			out = append(out, '#')
		}
	}
	return string(out)
}

// leaveOutSchedulers removes the threads of Go's scheduler, where the goroutines are threads of the target:
// which of its functions an idle thread is in is chance, and the goroutine that a thread executes stands
// for that one. A thread in a function of another language stays.
func (p *Process) leaveOutSchedulers() {
	if !slices.ContainsFunc(p.Threads, func(th *Thread) bool { return th.Word == goroutine }) {
		return
	}
	p.Threads = slices.DeleteFunc(p.Threads, func(th *Thread) bool {
		return th.Word == "" && !th.IsWave && !th.Crashed && len(th.Frames) > 0 && !slices.ContainsFunc(th.Frames, func(f trace.ComparedFrame) bool {
			return !strings.HasPrefix(f.Function, "runtime.") && (!th.Executes || !isGo(&f))
		})
	})
}

// goroutine is Go's word for threads that it schedules.
const goroutine = "goroutine"

// isGo reports whether a frame is of Go: of a source file of Go, or of its assembler.
func isGo(f *trace.ComparedFrame) bool {
	return strings.HasSuffix(f.File, ".go") || strings.HasSuffix(f.File, ".s") || funcname.IsGo(f.Function, f.File)
}
