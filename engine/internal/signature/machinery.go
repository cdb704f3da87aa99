// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"slices"
	"strings"
)

// kind is a style of failing of run-time libraries: a signature has its name in place of all
// functions from the program's failure to the signal. Of several kinds in one row the strongest
// counts, and of equally strong ones the innermost.
type kind struct {
	is       string
	strength int
}

// The kinds.
var (
	raised     = &kind{"[raise]", 1}
	aborted    = &kind{"[abort]", 2}
	allocated  = &kind{"[heap]", 3}
	thrown     = &kind{"[fatal error]", 3}
	asserted   = &kind{"[assertion]", 4}
	corrupted  = &kind{"[heap]", 4}
	smashed    = &kind{"[stack smashing]", 5}
	fortified  = &kind{"[buffer overflow]", 4}
	terminated = &kind{"[terminate]", 4}
	pure       = &kind{"[pure virtual]", 5}
	panicked   = &kind{"[panic]", 4}
	sanitized  = &kind{"[sanitizer]", 4}
	undefined  = &kind{"[undefined behavior]", 4}
	overflowed = &kind{"[stack overflow]", 5}
)

// machineryOf are the functions of a kind.
type machineryOf struct {
	kind  *kind
	names []string
}

// machinery are the functions of each kind; a name that ends in * matches all names with that
// beginning.
var machinery = []machineryOf{
	{raised, []string{
		"raise", "__raise", "gsignal", "pthread_kill", "__pthread_kill", "___pthread_kill", "__pthread_kill_implementation", "__pthread_kill_internal",
		"kill", "__kill", "tgkill", "tkill", "RaiseException", "RtlRaiseException", "KiUserExceptionDispatcher", "KiUserExceptionDispatch",
		"runtime.raise", "runtime.raiseproc", "runtime.dieFromSignal", "runtime.crash", "runtime.sigfwdgo", "runtime.tgkill",
		"_Unwind_Backtrace", "backtrace", "__backtrace", // glibc printed it before it aborted
		"runtime.sighandler", "runtime.sigtrampgo", "runtime.sigtramp", "runtime.sigreturn*", "runtime.sigsend",
	}},
	{aborted, []string{
		"abort", "__abort", "_abort", "__libc_abort", "abort_message", "__libc_message", "__libc_message_impl", "__libc_fatal", "android_set_abort_message", "a_crash",
		"std::process::abort", "std::sys::abort_internal", "std::sys::pal::unix::abort_internal", "std::sys::unix::abort_internal", "core::intrinsics::abort",
		"_invalid_parameter", "_invalid_parameter_noinfo", "_invalid_parameter_noinfo_noreturn", "_invoke_watson", "__fastfail", "NtTerminateProcess", "ZwTerminateProcess",
		"std::__glibcxx_assert_fail", "__glibcxx_assert_fail",
	}},
	{asserted, []string{
		"__assert_fail", "__assert_fail_base", "__assert_perror_fail", "__assert", "__assert2", "__assert_rtn", "_assert", "_wassert", "__libc_assert_fail",
		"g_assertion_message*", "qt_assert*",
	}},
	{corrupted, []string{"malloc_printerr", "malloc_printerr_tail", "RtlReportCriticalFailure", "RtlpReportHeapFailure", "RtlpHeapHandleError", "RtlpLogHeapFailure"}},
	{smashed, []string{"__stack_chk_fail", "__stack_chk_fail_local", "__report_gsfailure", "__GSHandlerCheck*", "__stack_smash_handler"}},
	{fortified, []string{"__chk_fail", "__fortify_fail", "__fortify_fail_abort", "__fortify_fatal", "__fortify_chk_fail", "__longjmp_chk", "____longjmp_chk", "__fdelt_chk", "__report_rangecheckfailure"}},
	{terminated, []string{
		"std::terminate", "std::unexpected", "__cxxabiv1::*", "__cxa_throw", "__cxa_rethrow", "__cxa_call_terminate", "__cxa_call_unexpected", "__cxa_bad_cast", "__cxa_bad_typeid",
		"__clang_call_terminate", "__gxx_personality_v0", "__gcc_personality_v0", "__gnu_cxx::__verbose_terminate_handler", "_Unwind_*", "std::__throw_*", "std::__terminate",
		"demangling_terminate_handler", "_objc_terminate", "objc_exception_throw", "_CxxThrowException", "__std_terminate", "__scrt_unhandled_exception_filter",
		"std::rethrow_exception",
	}},
	{pure, []string{"__cxa_pure_virtual", "__cxa_deleted_virtual", "_purecall"}},
	{panicked, []string{
		"core::panicking::*", "std::panicking::*", "std::sys::backtrace::__rust_end_short_backtrace", "std::sys_common::backtrace::__rust_end_short_backtrace",
		"rust_panic", "rust_begin_unwind", "__rust_start_panic", "__rust_abort", "__rustc::*", "panic_abort::*", "panic_unwind::*", "std::panic::panic_any", "std::panic::resume_unwind",
		"core::option::unwrap_failed", "core::option::expect_failed", "core::result::unwrap_failed", "core::cell::panic_*", "alloc::alloc::handle_alloc_error",
		"alloc::raw_vec::capacity_overflow", "alloc::raw_vec::handle_error", "core::str::slice_error_fail*", "core::slice::index::slice_*", "core::slice::copy_from_slice_impl::*",
		"runtime.gopanic", "runtime.fatalpanic*", "runtime.panic*", "runtime.goPanic*", "runtime.sigpanic", "runtime.preprintpanics", "runtime.deferCallSave",
	}},
	{thrown, []string{"runtime.throw*", "runtime.fatal", "runtime.fatalthrow*", "runtime.dopanic_m", "runtime.exit", "runtime.badsignal"}},
	{sanitized, []string{"__asan*", "__sanitizer::*", "__sanitizer_*", "__tsan*", "__msan*", "__hwasan*", "__lsan*", "scudo::*", "__scudo_*", "gwp_asan::*", "__interception::*"}},
	{undefined, []string{"__ubsan*"}},
	{overflowed, []string{
		"std::sys::pal::unix::stack_overflow::*", "std::sys::unix::stack_overflow::*", "std::sys::pal::windows::stack_overflow::*", "__chkstk", "_chkstk", "___chkstk_ms",
		"runtime.newstack", "runtime.morestack", "runtime.morestack_noctxt",
	}},
	// The allocator fails in any of its functions when it finds the heap damaged, or crashes
	// because of it: these count only at the innermost end of a stack.
	{allocated, []string{
		"malloc", "calloc", "realloc", "free", "cfree", "memalign", "posix_memalign", "aligned_alloc", "reallocarray", "__libc_malloc*", "__libc_calloc*", "__libc_realloc*", "__libc_free", "__libc_memalign",
		"_int_malloc", "_int_free*", "_int_realloc", "_int_memalign", "malloc_consolidate", "sysmalloc*", "unlink_chunk*", "munmap_chunk", "mremap_chunk", "tcache_*", "systrim*", "malloc_check",
		"arena_get2", "free_check", "malloc_hook_ini", "checked_request2size", "__malloc_*",
		"operator new", "operator new[]", "operator delete", "operator delete[]", "je_*", "tc_*", "mi_*", "tcmalloc::*", "std::allocator*", "std::__new_allocator*", "__gnu_cxx::new_allocator*",
		"__rust_alloc", "__rust_dealloc", "__rust_realloc", "__rdl_*", "alloc::alloc::*", "std::alloc::*",
		"RtlFreeHeap", "RtlAllocateHeap", "RtlReAllocateHeap", "RtlpFreeHeap*", "RtlpAllocateHeap*", "RtlpLowFragHeap*", "HeapFree", "HeapAlloc", "_free_base", "_malloc_base", "_free_dbg", "_malloc_dbg",
	}},
}

// startup are the functions outside a program's own: the innermost one, and all its callers,
// are left out.
var startup = []string{
	"_start", "_dl_start_user", "__libc_start_main", "__libc_start_main_impl", "__libc_start_call_main", "_start_c", "libc_start_main_stage2",
	"start_thread", "__clone", "clone3", "__clone3", "__GI___clone", "thread_start", "_pthread_start", "__pthread_start", "_pthread_body", "execute_native_thread_routine",
	"std::__thread_proxy", "std::thread::_State_impl::_M_run", "__asan::AsanThread::ThreadStart",
	"std::rt::lang_start*", "std::sys::backtrace::__rust_begin_short_backtrace", "std::sys_common::backtrace::__rust_begin_short_backtrace",
	"std::sys::pal::unix::thread::*", "std::sys::thread::*", "std::sys::unix::thread::*", "std::thread::Builder*",
	"runtime.main", "runtime.goexit", "runtime.goexit0", "runtime.mstart", "runtime.mstart0", "runtime.mstart1", "runtime.rt0_go", "_rt0_amd64*", "_rt0_arm64*",
	"BaseThreadInitThunk", "RtlUserThreadStart", "__RtlUserThreadStart", "_RtlUserThreadStart", "__scrt_common_main*", "invoke_main", "__tmainCRTStartup", "mainCRTStartup", "wmainCRTStartup",
	"WinMainCRTStartup", "wWinMainCRTStartup",
}

// newStartup are the functions of D that the second version of signatures adds.
var newStartup = []string{"_d_run_main", "_d_run_main2", "rt.dmain2.*"}

// plumbing are functions between two of the program's own that differ between versions of a
// library, or of a compiler.
var plumbing = []string{
	"core::ops::function::*", "core::ptr::drop_in_place", "std::panicking::try*", "std::panic::catch_unwind", "__rust_try",
	"std::allocator*", "std::invoke", "__gnu_cxx::new_allocator*", "__gnu_cxx::__*", "std::sys::backtrace::*",
	"runtime.systemstack", "runtime.systemstack_switch", "runtime.mcall", "runtime.asmcgocall", "runtime.call*", "runtime.debugCall*",
	"__restore_rt", "__kernel_rt_sigreturn", "__kernel_sigreturn",
}

// rustLibrary begins the names of functions of Rust's own libraries.
var rustLibrary = []string{"core::", "alloc::", "std::", "<core::", "<alloc::", "<std::"}

// nameTable maps names to values.
type nameTable[T any] struct {
	exact  map[string]T
	begins []beginning[T]
}

type beginning[T any] struct {
	with string
	is   T
}

func (t *nameTable[T]) add(pattern string, is T) {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		t.begins = append(t.begins, beginning[T]{prefix, is})
		return
	}
	if t.exact == nil {
		t.exact = map[string]T{}
	}
	t.exact[pattern] = is
}

// find returns the value of a name: of the name itself, or else of its beginning.
func (t *nameTable[T]) find(n string) (is T, ok bool) {
	if is, ok := t.exact[n]; ok {
		return is, true
	}
	for _, b := range t.begins {
		if strings.HasPrefix(n, b.with) {
			return b.is, true
		}
	}
	return is, false
}

var kinds = kindsOf(machinery)

func kindsOf(list []machineryOf) (t nameTable[*kind]) {
	for _, m := range list {
		for _, n := range m.names {
			t.add(n, m.kind)
		}
	}
	return t
}

func tableOf(patterns []string) (t nameTable[bool]) {
	for _, p := range patterns {
		t.add(p, true)
	}
	return t
}

var (
	startups, plumbings = tableOf(startup), tableOf(plumbing)
	newStartups         = tableOf(slices.Concat(startup, newStartup))
)

// isRustLibrary reports whether a function belongs to Rust's own libraries, or to a trait that
// these implement for a type of the language.
func isRustLibrary(n string) bool {
	for _, l := range rustLibrary {
		if strings.HasPrefix(n, l) {
			return true
		}
	}
	implementer, trait, isTrait := strings.Cut(strings.TrimPrefix(n, "<"), " as ")
	return isTrait && !strings.Contains(implementer, "::") && isRustLibrary(trait)
}

// isPlumbing reports whether a function only leads from one to another: functions of std with
// reserved names are among them.
func isPlumbing(n string) bool {
	if is, _ := plumbings.find(n); is {
		return true
	}
	if strings.HasPrefix(n, "<") {
		return strings.Contains(n, " as core::ops::function::Fn") && strings.Contains(n, ">::call")
	}
	rest, isStd := strings.CutPrefix(n, "std::")
	if !isStd {
		return false
	}
	for part := range strings.SplitSeq(rest, "::") {
		if len(part) > 1 && part[0] == '_' && (part[1] == '_' || part[1] >= 'A' && part[1] <= 'Z') {
			return true
		}
	}
	return false
}
