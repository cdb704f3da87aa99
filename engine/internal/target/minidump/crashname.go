// SPDX-License-Identifier: Apache-2.0

package minidump

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/unwindd/unwindd/engine/internal/target/mach"
	"github.com/unwindd/unwindd/engine/target"
)

// This file has minidump-stackwalk's names of crash reasons, by which crash statistics
// are compared.

// winerror returns a line for each error of Windows: its number and its name, by number.
// It was generated from the winerror.h of mingw-w64, which is in the public domain, and
// from its _wsa_errnos.h, whose numbers count from WSABASEERR, 10000:
//
//	awk '/^#define [A-Z][A-Za-z0-9_]+ +__MSABI_LONG\([0-9]+\)/ {
//		v = $3; gsub(/[^0-9]/, "", v); if ($2 !~ /_BASE$/ && !seen[v]++) print v, $2 }' winerror.h | sort -n | gzip -9n >winerror.txt.gz
var winerror = sync.OnceValue(func() string { return unpacked(winerrorGz) })

//go:embed winerror.txt.gz
var winerrorGz string

// errorName returns the name of a result of GetLastError: an error, or a status.
func errorName(code uint32) string {
	digits := strconv.FormatUint(uint64(code), 10) + " "
	list, start := winerror(), 0
	if !strings.HasPrefix(list, digits) {
		start = strings.Index(list, "\n"+digits) + 1
	}
	if start > 0 || code == 0 {
		name, _, _ := strings.Cut(list[start+len(digits):], "\n")
		return name
	}
	if name, ok := statusOf(code); ok {
		return name
	}
	return fmt.Sprintf("unknown %#08x", code)
}

// windowsExceptions are the names of exceptions (winbase.h, winnt.h), and the reports'
// names of exceptions that run-time libraries raise.
var windowsExceptions = map[uint32]string{
	0x80000001:                  "EXCEPTION_GUARD_PAGE",
	0x80000002:                  "EXCEPTION_DATATYPE_MISALIGNMENT",
	statusBreakpoint:            "EXCEPTION_BREAKPOINT",
	statusSingleStep:            "EXCEPTION_SINGLE_STEP",
	statusAccessViolation:       "EXCEPTION_ACCESS_VIOLATION",
	statusInPageError:           "EXCEPTION_IN_PAGE_ERROR",
	0xc0000008:                  "EXCEPTION_INVALID_HANDLE",
	statusIllegalInstruction:    "EXCEPTION_ILLEGAL_INSTRUCTION",
	0xc0000025:                  "EXCEPTION_NONCONTINUABLE_EXCEPTION",
	0xc0000026:                  "EXCEPTION_INVALID_DISPOSITION",
	0xc000008c:                  "EXCEPTION_BOUNDS_EXCEEDED",
	0xc000008d:                  "EXCEPTION_FLT_DENORMAL_OPERAND",
	0xc000008e:                  "EXCEPTION_FLT_DIVIDE_BY_ZERO",
	0xc000008f:                  "EXCEPTION_FLT_INEXACT_RESULT",
	0xc0000090:                  "EXCEPTION_FLT_INVALID_OPERATION",
	0xc0000091:                  "EXCEPTION_FLT_OVERFLOW",
	0xc0000092:                  "EXCEPTION_FLT_STACK_CHECK",
	0xc0000093:                  "EXCEPTION_FLT_UNDERFLOW",
	statusIntegerDivide:         "EXCEPTION_INT_DIVIDE_BY_ZERO",
	statusIntegerOverflow:       "EXCEPTION_INT_OVERFLOW",
	statusPrivilegedInstruction: "EXCEPTION_PRIV_INSTRUCTION",
	0xc00000fd:                  "EXCEPTION_STACK_OVERFLOW",
	0xc0000194:                  "EXCEPTION_POSSIBLE_DEADLOCK",
	statusStackBufferOverrun:    "EXCEPTION_STACK_BUFFER_OVERRUN",
	crashpadSimulated:           simulated,
	0xe0000008:                  "Out of Memory",
	0xe0434352:                  "MANAGED_EXCEPTION_CODE_V4",
	0xe06d7363:                  "Unhandled C++ Exception",
}

const simulated = "Simulated Exception"

// accessNames are the endings of exceptions' names for the kind of access to memory.
var accessNames = map[uint64]string{0: "_READ", 1: "_WRITE", 8: "_EXEC"}

// CrashName returns minidump-stackwalk's name of an exception:
// EXCEPTION_ACCESS_VIOLATION_READ, "SIGSEGV / SEGV_MAPERR".
func (d *Dump) CrashName(x *Exception) string {
	switch d.os() {
	case Windows:
		return windowsCrashName(x)
	case MacOS, IOS:
		if name := d.machCrashName(x); name != "" {
			return name
		}
	case LinuxOS, Android:
		if name := d.signalCrashName(x); name != "" {
			return name
		}
	}
	return fmt.Sprintf("unknown %#08x / %#08x", x.Code, x.Flags)
}

func windowsCrashName(x *Exception) string {
	name, ok := windowsExceptions[x.Code]
	if !ok {
		return errorName(x.Code)
	}
	p := x.Parameters
	switch x.Code {
	case statusAccessViolation:
		if len(p) > 0 {
			name += accessNames[p[0]]
		}
	case statusInPageError:
		if len(p) > 2 && accessNames[p[0]] != "" {
			name += accessNames[p[0]] + " / " + shortStatus(uint32(p[2]))
		}
	case statusStackBufferOverrun:
		if len(p) == 0 {
			return StatusName(x.Code)
		}
		code := uint64(uint32(p[0])) // the upper half may be anything
		if text := fastFailName(code); strings.HasPrefix(text, "FAST_FAIL_") {
			return name + " / " + text
		}
		return fmt.Sprintf("%s / %#08x", name, code)
	}
	return name
}

// shortStatus returns the name of a status, or its digits alone.
func shortStatus(code uint32) string {
	if name, ok := statusOf(code); ok {
		return name
	}
	return fmt.Sprintf("%#08x", code)
}

// signalCrashName names a signal, with its si_code where that adds something; "" for an
// unknown number.
func (d *Dump) signalCrashName(x *Exception) string {
	switch x.Code {
	case breakpadRequest:
		return "DUMP_REQUESTED"
	case crashpadRequest:
		return simulated
	}
	name := signalName(d.arch(), x.Code)
	if !strings.HasPrefix(name, "SIG") {
		return ""
	}
	if x.Flags == lldbFlags {
		return name
	}
	return target.SignalCrash(name, int32(x.Flags)) //nolint:gosec // si_code has a sign
}

// machCrashName names an exception of Mach with its code; "" for an unknown number.
func (d *Dump) machCrashName(x *Exception) string {
	e := mach.Exception(x.Code)
	switch {
	case e.Name() == "":
		return ""
	case e == mach.Simulated:
		return simulated
	case x.Flags == lldbFlags:
		return e.Name()
	}
	code := uint64(x.Flags)
	if e == mach.Resource || e == mach.Guard {
		code = machCode(x)
	}
	if name := e.CodeName(d.arch(), code); name != "" && e != mach.Crash {
		return e.Name() + " / " + name
	}
	return fmt.Sprintf("%s / %#08x", e.Name(), x.Flags)
}
