// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"strings"

	"github.com/unwindd/unwindd/engine/trace"
)

// This file has the tables of functions of macOS and iOS. They are for the stacks of reports and cores of these, of
// which no version of signatures was published without them: minidumps have the signatures that they had.

// appleMachinery are the functions of each kind in images of macOS and iOS, beside the ones in machinery.
var appleMachinery = []machineryOf{
	{aborted, []string{
		"abort_with_payload*", "__abort_with_payload", "abort_with_reason", "std::__libcpp_verbose_abort", "_os_crash*", "__os_crash*", "os_crash*",
	}},
	{asserted, []string{"-[NSAssertionHandler handleFailureIn*"}},
	{fortified, []string{"__chk_fail_overflow", "__chk_fail_overlap"}},
	{corrupted, []string{"malloc_vreport", "malloc_report", "malloc_zone_error", "___BUG_IN_CLIENT_OF_LIBMALLOC_*"}},
	{terminated, []string{
		"__exceptionPreprocess", "objc_exception_rethrow", "objc_terminate", "__handleUncaughtException", "_CFThrowFormattedException",
		"-[NSException raise]", "+[NSException raise:*",
		"-[NSObject(NSObject) doesNotRecognizeSelector:]", "+[NSObject(NSObject) doesNotRecognizeSelector:]", "___forwarding___", "_CF_forwarding_prep_0", "__forwarding_prep_0___",
	}},
	{panicked, []string{
		"_assertionFailure", "_fatalErrorMessage", "_diagnoseUnexpectedEnumCase*", "_unimplementedInitializer", "_swift_stdlib_reportFatalError*", "Swift runtime failure*",
		"swift::fatalError*", "swift_fatalError*", "swift_unexpectedError", "swift_errorInMain", "swift_deletedMethodError", "swift_dynamicCastFailure", "swift::swift_dynamicCastFailure",
		"swift_reportError", "swift_runtime_on_report", "_swift_runtime_on_report", "swift_abort*", "swift::swift_abort*",
	}},
}

// appleStartup are the functions outside a program's own in libraries of the system.
var appleStartup = []string{"start", "_dyld_start", "dyldbootstrap::start", "start_wqthread", "_pthread_wqthread", "__NSThread__start__"}

// appleHeap is the library of the allocator: all functions of it are the allocator's.
const appleHeap = "libsystem_malloc.dylib"

// variant ends the names of functions that the system has for several processors.
const variant = "$VARIANT$"

var appleKinds, appleStartups = kindsOf(appleMachinery), tableOf(appleStartup)

// withoutRosetta returns calls without the code of no module that the innermost function of the C library seems to
// have called: of the translator of x86-64.
func withoutRosetta(calls []call) []call {
	if len(calls) > 1 && calls[0].shown == noCode && calls[1].kind != nil {
		return calls[1:]
	}
	return calls
}

// apple sets what a function is by the tables of macOS and iOS, in an image of these.
func (c *call) apple(m *trace.Module) {
	if m == nil || !m.IsMachO || !c.isNamed {
		return
	}
	if plain, _, ok := strings.Cut(c.plain, variant); ok {
		c.plain = plain
		c.shown, _, _ = strings.Cut(c.shown, variant)
	}
	if c.kind == nil {
		c.kind, _ = kinds.find(c.plain)
	}
	if c.kind == nil {
		c.kind, _ = appleKinds.find(c.plain)
	}
	if c.kind == nil && moduleName(m.Path) == appleHeap {
		c.kind = allocated
	}
	if is, _ := appleStartups.find(c.plain); is && IsWithMacOS(m.Path) {
		c.isStartup = true
	}
}
