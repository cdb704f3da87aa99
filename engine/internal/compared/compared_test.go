// SPDX-License-Identifier: Apache-2.0

package compared

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/target/jsontext"
	"github.com/unwindd/unwindd/engine/internal/value"
	"github.com/unwindd/unwindd/engine/trace"
)

// stack makes frames, innermost first, of texts such as "function", "function module" and "function :runtime", from
// the outermost one on.
func stack(outermost ...string) (frames []trace.ComparedFrame) {
	for _, text := range slices.Backward(outermost) {
		function, in, _ := strings.Cut(text, " ")
		f := trace.ComparedFrame{Function: strings.TrimPrefix(function, "?")}
		if runtime, isManaged := strings.CutPrefix(in, ":"); isManaged {
			f.Runtime = runtime
		} else if f.Module = in; f.Function == "" && in != "" {
			f.Offset = 0x1230
		}
		frames = append(frames, f)
	}
	return frames
}

func TestRolesOfThreads(t *testing.T) {
	for _, c := range []struct {
		want string
		th   Thread
	}{
		{"main", Thread{ID: "10", Name: "server", Frames: stack("_start", "__libc_start_main", "main", "poll")}},
		{"main", Thread{ID: "10", Named: []string{"MainThread"}}},
		{"main", Thread{ID: "11", Named: []string{"", "main"}}},
		{"main", Thread{ID: "11", Frames: stack("_start", "__libc_start_main_impl", "__libc_start_call_main", "main", "poll")}},
		{"Thread-# (load)", Thread{ID: "11", Named: []string{"Thread-12 (load)"}}},
		{"pool-#-thread-#", Thread{ID: "11", Name: "pool-1-thread-12", Frames: stack("clone3", "start_thread", "worker")}},
		{"worker", Thread{ID: "11", Name: "server", Frames: stack("clone3", "start_thread", "worker", "poll")}},
		{"worker", Thread{ID: "11", Name: "server", Frames: stack("?", "? libc.so.6", "worker", "poll")[:3]}},
		{"pool::run", Thread{ID: "11", Frames: stack("clone", "start_thread", "execute_native_thread_routine", "std::thread::_State_impl<int>::_M_run()", "pool::run", "wait")}},
		{"refund", Thread{ID: "11", Frames: stack("clone3", "start_thread", "execute_native_thread_routine", "std::thread::_State_impl<int>::_M_run()",
			"std::thread::_Invoker<std::tuple<int>>::operator()()", "std::thread::_Invoker<std::tuple<int>>::_M_invoke<0ul>(std::_Index_tuple<0ul>)",
			"std::__invoke<int>(int&&)", "std::__invoke_impl<int,int>(std::__invoke_other,int&&)", "refund", "wait")}},
		{"answer", Thread{ID: "11", Frames: stack("clone3", "start_thread", "std::thread::_State_impl<int>::_M_run()", "std::__future_base::_Async_state_impl<int>::_M_run()",
			"std::call_once<int>(int)", "__gthread_once", "__pthread_once_slow", "__once_proxy", "std::function<int>::operator()()", "answer", "wait")}},
		{"refund", Thread{ID: "11", Frames: stack("clone3", "start_thread", "std::__1::__thread_proxy[abi:v15000]<int>(void*)", "decltype(std::declval<int>()())", "refund")}},
		{"pool::serve", Thread{ID: "11", Frames: stack("clone3", "start_thread", "thread_proxy", "boost::detail::thread_data<int>::run()", "boost::_bi::bind_t<int>::operator()()", "pool::serve")}},
		{"crate::work", Thread{ID: "11", Frames: stack("clone3", "start_thread", "std::sys::thread::unix::Thread::new::thread_start",
			"core::ops::function::FnOnce::call_once{{vtable.shim}}", "std::thread::lifecycle::spawn_unchecked::{{closure}}", "std::panicking::catch_unwind", "crate::work")}},
		{"core::run", Thread{ID: "11", Frames: stack("clone3", "start_thread", "core::run", "core::step")}},
		{"thread", Thread{ID: "11", Frames: stack("clone3", "start_thread", "std::thread::_State_impl<int>::_M_run()")}},
		// A thread of a pool has the role of what it executes, or of the pool.
		{"main._omp_fn.0", Thread{ID: "11", Frames: stack("clone3 libc.so.6", "start_thread libc.so.6", "gomp_thread_start libgomp.so.1", "main._omp_fn.0 solver", "wait")}},
		{"gomp_thread_start", Thread{ID: "11", Frames: stack("clone3 libc.so.6", "start_thread libc.so.6", "gomp_thread_start libgomp.so.1", "do_wait libgomp.so.1", "syscall libc.so.6")}},
		{"crate::work", Thread{ID: "11", Frames: stack("__clone", "start_thread", "std::sys::thread::unix::Thread::new::thread_start", "crate::work")}},
		{"load", Thread{ID: "11", Frames: stack("clone3", "start_thread", "pythread_wrapper", "thread_run", "method_vectorcall",
			"Thread._bootstrap :cpython", "Thread._bootstrap_inner :cpython", "Thread.run :cpython", "load :cpython", "time_sleep")}},
		{"Work", Thread{ID: "11", Frames: stack("RtlUserThreadStart ntdll.dll", "BaseThreadInitThunk kernel32.dll", "Work app.exe")}},
		{"libwork.so+0x1230", Thread{ID: "11", Frames: stack("clone3", "start_thread", "? libwork.so", "poll")}},
		{"thread", Thread{ID: "11", Ends: "no-row", Frames: stack("inner", "poll")}},
		{"worker", Thread{ID: "11", Ends: "no-row", Frames: stack("clone3", "worker", "poll")}},
		{"thread", Thread{ID: "11", Ends: "plugin-failed"}},
		{"thread", Thread{ID: "11", Frames: stack("?", "poll")}},
		{"wave of scale<...>", Thread{ID: "w0", IsWave: true, Kernel: "_Z5scaleIfEvPT_i.kd"}},
		{"wave of grade", Thread{ID: "w0", IsWave: true, Frames: []trace.ComparedFrame{{Function: "inner", IsWave: true}, {Function: "grade", IsWave: true}, {Function: "main"}}}},
		{"goroutine of main.serve", Thread{ID: "goroutine 7", Word: "goroutine", Entry: "main.serve"}},
		{"task", Thread{ID: "task 7", Word: "task"}},
	} {
		p := &Process{PID: 10, Executable: "/usr/bin/server", Threads: []*Thread{{ID: "9", Frames: stack("other")}, &c.th}}
		if got := (&Reader{}).roles(p)[1]; got != c.want {
			t.Errorf("%+v has the role %q, expected %q", c.th, got, c.want)
		}
	}
}

func TestFactsNameNoAddressesAndNoThreads(t *testing.T) {
	wave := &Thread{ID: "w0", IsWave: true, Crashed: true, Stop: "memory-fault"}
	for _, c := range []struct {
		want []string
		p    Process
	}{
		{nil, Process{}},
		{nil, Process{Crash: Crash{Name: "SIGTRAP", IsRequest: true}, Fact: "trap at 0x10"}},
		{[]string{"SIGSEGV / SEGV_MAPERR"}, Process{Crash: Crash{Name: "SIGSEGV / SEGV_MAPERR"}, Signal: "SIGSEGV", Fact: "read of 0x10"}},
		{[]string{"SIGABRT / SI_TKILL", "assertion `n == #' failed at #, in pool4"}, Process{Crash: Crash{Name: "SIGABRT / SI_TKILL"}, Fact: "assertion `n == 12' failed at 0xfe12, in pool4"}},
		{[]string{"SIGABRT", "assertion: n > #"}, Process{Crash: Crash{Name: "SIGABRT", Assertion: "n > 10"}}},
		{[]string{"SIGABRT", "a handler caught SIGSEGV"}, Process{Crash: Crash{Name: "SIGABRT"}, First: "SIGSEGV", Fact: "read of 0x10"}},
		{[]string{"SIGABRT", "exception ValueError"}, Process{Signal: "SIGABRT", Threads: []*Thread{{ID: "1", Crashed: true, Raised: "ValueError"}}}},
		{[]string{"a wave stopped: memory-fault"}, Process{Fact: "a wave read 0x10", Threads: []*Thread{wave}}},
		{[]string{"deadlock: 2 threads wait for each other (a, b)", "deadlock: a thread waits for itself (c)"}, Process{
			Deadlocks: [][]string{{"3"}, {"2", "1"}, {"1", "2"}}, Threads: []*Thread{{ID: "1"}, {ID: "2"}, {ID: "3"}},
		}},
	} {
		slices.Sort(c.want)
		if diff := cmp.Diff(c.want, c.p.facts([]string{"a", "b", "c"})); diff != "" {
			t.Error(diff)
		}
	}
}

func TestSignalsOfOddMachinesStayNumbers(t *testing.T) {
	for arch, want := range map[string]string{"x86_64": "SIGUSR1", "mips64": "signal 10", "": "SIGUSR1"} {
		p := Process{Threads: []*Thread{{Arch: arch}}}
		if p.SetSignal(10); p.Signal != want {
			t.Errorf("%q: %s, expected %s", arch, p.Signal, want)
		}
	}
}

// TestGoroutinesStandForTheThreadsOfGo leaves the threads that execute goroutines, or none, out, and keeps one that is
// in C.
func TestGoroutinesStandForTheThreadsOfGo(t *testing.T) {
	goFrame := trace.ComparedFrame{Function: "main.serve", File: "/src/serve.go"}
	p := &Process{Threads: []*Thread{
		{ID: "1", Frames: stack("runtime.mstart", "runtime.schedule", "runtime.futex")},
		{ID: "2", Executes: true, Frames: []trace.ComparedFrame{{Function: "runtime.futex"}, goFrame}},
		{ID: "3", Executes: true, Frames: []trace.ComparedFrame{{Function: "read", Module: "libc.so.6", File: "read.c"}, goFrame}},
		{ID: "4", Frames: stack("clone3", "start_thread", "worker")},
		{ID: "5", Crashed: true, Frames: stack("runtime.mstart", "runtime.schedule")},
		{ID: "goroutine 1", Word: "goroutine", Frames: []trace.ComparedFrame{goFrame}},
	}}
	p.leaveOutSchedulers()
	var ids []string
	for _, th := range p.Threads {
		ids = append(ids, th.ID)
	}
	if want := []string{"3", "4", "5", "goroutine 1"}; !slices.Equal(ids, want) {
		t.Errorf("the threads are %q, expected %q", ids, want)
	}
	p.Threads = p.Threads[:0:0]
	p.Threads = append(p.Threads, &Thread{ID: "1", Frames: stack("runtime.mstart", "runtime.futex")})
	if p.leaveOutSchedulers(); len(p.Threads) != 1 {
		t.Error("a thread is left out, and no goroutine is known")
	}
}

func TestNamesOfModules(t *testing.T) {
	for path, want := range map[string]string{
		"": "", "/usr/lib/libc.so.6": "libc.so.6", `C:\Windows\ntdll.dll`: "ntdll.dll", "/tmp/a b (deleted)": "a b", "[vdso]": "[vdso]", "[anon:x]": "",
		"/memfd:jit (deleted)": "", "file:///opt/kernels.o#offset=64&size=512": "kernels.o", "memory://123#offset=0x7f12&size=8": "",
	} {
		if got := ModuleName(path); got != want {
			t.Errorf("%q: %q, expected %q", path, got, want)
		}
	}
}

// TestFramesWithoutNameStandForTheirFunction is about the offsets of functions in stripped modules.
func TestFramesWithoutNameStandForTheirFunction(t *testing.T) {
	stripped, jit := &trace.Module{Path: "/lib/libwork.so"}, &trace.Module{Path: "/memfd:jit"}
	s := &trace.Stack{Thread: &trace.Thread{ID: "1"}, Frames: []trace.Frame{
		{Module: stripped, ModuleOffset: 0x1234}, {Module: stripped, ModuleOffset: 0x5678}, {Module: jit, ModuleOffset: 0x9abc}, {PC: 0xdef0},
	}, Stopped: trace.Stopped{Reason: trace.StopOutermost}}
	th := (&Reader{}).Thread(s, func(f *trace.Frame) (uint64, bool) { return 0x1200, f.ModuleOffset == 0x1234 })
	want := []trace.ComparedFrame{{Module: "libwork.so", Offset: 0x1200}, {Module: "libwork.so", Offset: 0x5678}, {}, {}}
	if diff := cmp.Diff(want, th.Frames); diff != "" {
		t.Error(diff)
	}
}

// reportText is a report with all members that are read.
const reportText = `{"version": 1, "target": {"kind": "elf-core", "signal": 6, "fact": "abort", "problems": ["a"], "labels": {"rank": "3"},
 "crash": {"name": "SIGABRT", "assertion": "x", "requested": false}, "first_crash": {"name": "SIGSEGV"}, "deadlocks": [["1", "2"]],
 "process": {"pid": 1, "command": "a b", "executable": "/a", "host": "h", "time": "2026-01-02T03:04:05Z", "taken": "2026-01-02T03:04:05.5Z", "started": "2026-01-02T03:04:04Z"}},
 "modules": [{"id": 0, "path": "/a", "build_id": "ab", "segments": []}],
 "threads": [{"id": "1", "name": "n", "arch": "x86_64", "crashed": true, "stop": {"reason": "s"}, "runtimes": [{"runtime": "r", "name": "T", "exception": {"type": "E", "traceback": []}}],
  "frames": [{"index": 0, "thread": "1", "pc": "0x1", "found_by": "scan", "module": 0, "module_offset": "0x12", "function_offset": "0x2", "inlined": false, "signal_frame": false, "lanes": []},
   {"index": 9, "thread": "1", "pc": "0x1", "found_by": "cfi", "function": "f", "short_name": "s", "file": "c", "line": 3, "column": 4, "inlined": true, "rests_on_guess": true}],
  "left_out": [{"index": 1, "frames": 8}], "stopped": {"reason": "no-row", "detail": "d"}},
  {"id": "g", "crashed": false, "wave": {"kernel": "k"}, "executes": "goroutine 1", "frames": [{"index": 0, "thread": "g", "behind_managed": true, "managed": {"runtime": "r", "native": true}, "scope_from": "source-module"}], "stopped": {"reason": "outermost"}},
  {"id": "goroutine 1", "goroutine": {"id": 1, "started_at": {"pc": "0x1", "function": "e"}}, "frames": [], "stopped": {"reason": "outermost"}}]}`

func TestMembersOfAReportAreRead(t *testing.T) {
	p, err := ReadReport(&jsontext.Reader{Data: []byte(reportText)})
	if err != nil {
		t.Fatal(err)
	}
	if p.PID != 1 || p.Host != "h" || p.Labels["rank"] != "3" || p.Taken.Nanosecond() != 5e8 || p.Started.IsZero() || p.First != "SIGSEGV" || p.Signal != "SIGABRT" {
		t.Errorf("%+v", p)
	}
	want := []trace.ComparedFrame{
		{Module: "a", Offset: 0x10, IsGuess: true}, leftOut,
		{Function: "f", Short: "s", File: "c", Line: 3, Column: 4, IsInlined: true, IsGuess: true},
	}
	th := p.Threads[0]
	if diff := cmp.Diff(want, th.Frames); diff != "" {
		t.Error(diff)
	}
	if th.Ends != "no-row" || th.Raised != "E" || !slices.Equal(th.Named, []string{"T"}) || !th.Crashed || th.Stop != "s" {
		t.Errorf("%+v", th)
	}
	if w := p.Threads[1]; !w.IsWave || w.Kernel != "k" || !w.Executes || len(w.Frames) != 0 || w.Ends != "" {
		t.Errorf("%+v", w)
	}
	if g := p.Threads[2]; g.Word != "goroutine" || g.Entry != "e" {
		t.Errorf("%+v", g)
	}
}

// TestNestedVariablesArePassedOver is about reports with --locals, whose variables nest in objects and lists.
func TestNestedVariablesArePassedOver(t *testing.T) {
	nested := strings.Repeat(`{"children": [`, value.MaxNesting) + strings.Repeat("]}", value.MaxNesting)
	text := `{"version": 1, "target": {}, "threads": [{"id": "1", "frames": [{"index": 0, "thread": "1", "locals": [` + nested + `]}], "stopped": {"reason": "outermost"}}]}`
	for _, r := range []*jsontext.Reader{{Data: []byte(text)}, jsontext.NewStream(strings.NewReader(text), MaxValue)} {
		if p, err := ReadReport(r); err != nil || len(p.Threads) != 1 {
			t.Error(err)
		}
	}
}

func TestDamagedReportsAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"": "expected an object", `{}`: "not a report", `{"version": 2, "target": {}, "threads": []}`: "version 2, expected 1",
		`{"version": 1, "target": {"process": {"time": "noon"}}, "threads": []}`: "RFC 3339", `{"version": 1, "target": {}, "threads": []} x`: "the end of the text",
		`{"version": 1, "target": {}, "threads": [{"frames": [{"function_offset": "12"}]}]}`: "threads[0].frames[0].function_offset",
	} {
		if _, err := ReadReport(&jsontext.Reader{Data: []byte(text)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected an error with %q", text, err, want)
		}
	}
}

// FuzzReport reads reports from memory and as a stream, with one result.
func FuzzReport(f *testing.F) {
	f.Add([]byte(reportText))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ReadReport(&jsontext.Reader{Data: data})
		q, streamed := ReadReport(jsontext.NewStream(bytes.NewReader(data), MaxValue))
		if (err == nil) != (streamed == nil) {
			t.Fatalf("from memory %v, as a stream %v", err, streamed)
		}
		if err != nil {
			return
		}
		r := &Reader{}
		if diff := cmp.Diff(r.Target(p), r.Target(q)); diff != "" {
			t.Error(diff)
		}
	})
}

// TestEqualStacksAreKeptOnce has the frames of threads with one stack once, and each outermost first.
func TestEqualStacksAreKeptOnce(t *testing.T) {
	frames := func(names ...string) *trace.Stack {
		s := &trace.Stack{Thread: &trace.Thread{}}
		for _, name := range names {
			s.Frames = append(s.Frames, trace.Frame{Symbols: []trace.Symbol{{Function: name}}})
		}
		return s
	}
	var r Reader
	p := &Process{}
	for _, s := range []*trace.Stack{frames("inner", "outer"), frames("other", "outer"), frames("inner", "outer"), frames()} {
		p.Threads = append(p.Threads, r.Thread(s, func(*trace.Frame) (uint64, bool) { return 0, false }))
	}
	list := r.Target(p).Threads
	if &list[0].Frames[0] != &list[2].Frames[0] {
		t.Error("equal stacks are kept twice")
	}
	for i, want := range [][]string{{"outer", "inner"}, {"outer", "other"}, {"outer", "inner"}, {}} {
		var got []string
		for _, f := range list[i].Frames {
			got = append(got, f.Function)
		}
		if !slices.Equal(got, want) {
			t.Errorf("thread %d is %q, expected %q", i, got, want)
		}
	}
}
