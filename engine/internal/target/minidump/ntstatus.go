// SPDX-License-Identifier: Apache-2.0

package minidump

import (
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
	"strings"
	"sync"
)

// ntstatus returns a line for each NTSTATUS: eight digits and its name, by number. It
// was generated from the ntstatus.h of mingw-w64, which is in the public domain:
//
//	awk '/^#define (STATUS|DBG|RPC|EXCEPTION)_[A-Z0-9_]+ +\(\(NTSTATUS\)0x/ {
//		v = $3; sub(/.*0x/, "", v); gsub(/[^0-9A-Fa-f]/, "", v); print toupper(v), $2 }' ntstatus.h |
//	awk 'length($1) == 8 && !seen[$1]++' | sort | gzip -9n >ntstatus.txt.gz
var ntstatus = sync.OnceValue(func() string { return unpacked(ntstatusGz) })

//go:embed ntstatus.txt.gz
var ntstatusGz string

// unpacked returns the text of an embedded list: executables have them packed, since few
// processes read one.
func unpacked(gz string) string {
	r, err := gzip.NewReader(strings.NewReader(gz))
	if err != nil {
		panic(err) // it is part of the executable
	}
	text, err := io.ReadAll(r)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// The codes whose parameters are read.
const (
	statusBreakpoint            = 0x80000003
	statusSingleStep            = 0x80000004
	statusAccessViolation       = 0xc0000005
	statusInPageError           = 0xc0000006
	statusIllegalInstruction    = 0xc000001d
	statusIntegerDivide         = 0xc0000094
	statusIntegerOverflow       = 0xc0000095
	statusPrivilegedInstruction = 0xc0000096
	statusStackBufferOverrun    = 0xc0000409
	crashpadSimulated           = 0x0517a7ed // Crashpad: DumpWithoutCrash
)

// raised are the codes that run-time libraries raise, which are no NTSTATUS.
var raised = map[uint32]string{
	crashpadSimulated: "Crashpad's simulated exception",
	0x0eedfade:        "Delphi exception",
	0x20474343:        "GCC exception",
	0x406d1388:        "MS_VC_EXCEPTION (a thread's name)",
	0xe0000008:        "Chromium's out of memory",
	0xe0434352:        "CLR exception",
	0xe0434f4d:        "CLR exception",
	0xe06d7363:        "C++ exception",
	0xc06d007e:        "delay load: module not found",
	0xc06d007f:        "delay load: procedure not found",
}

// laterStatuses are statuses of Windows 8 and later with which programs end, and which
// ntstatus does not have.
var laterStatuses = map[uint32]string{
	0xc00001a5: "STATUS_INVALID_EXCEPTION_HANDLER",
	0xc00001ad: "STATUS_FATAL_MEMORY_EXHAUSTION",
	0xc00001b2: "STATUS_CONTROL_STACK_VIOLATION",
	0xc000027b: "STATUS_STOWED_EXCEPTION",
	0xc00004a2: "STATUS_ENCLAVE_VIOLATION",
	0xcfffffff: "STATUS_APPLICATION_HANG",
}

// StatusName returns the name of an exception code of Windows, or its number where it
// has none.
func StatusName(code uint32) string {
	if name, ok := raised[code]; ok {
		return name
	}
	if name, ok := statusOf(code); ok {
		return name
	}
	return fmt.Sprintf("%#08x", code)
}

// statusOf returns the name of an NTSTATUS.
func statusOf(code uint32) (name string, ok bool) {
	if name, ok := laterStatuses[code]; ok {
		return name, true
	}
	digits := fmt.Sprintf("%08X ", code)
	start := 0
	if !strings.HasPrefix(ntstatus(), digits) {
		if start = strings.Index(ntstatus(), "\n"+digits); start < 0 {
			return "", false
		}
		start++
	}
	name, _, _ = strings.Cut(ntstatus()[start+len(digits):], "\n")
	return name, true
}

// fastFails are the codes of __fastfail (winnt.h), by number.
var fastFails = strings.Fields(`LEGACY_GS_VIOLATION VTGUARD_CHECK_FAILURE STACK_COOKIE_CHECK_FAILURE CORRUPT_LIST_ENTRY
	INCORRECT_STACK INVALID_ARG GS_COOKIE_INIT FATAL_APP_EXIT RANGE_CHECK_FAILURE UNSAFE_REGISTRY_ACCESS
	GUARD_ICALL_CHECK_FAILURE GUARD_WRITE_CHECK_FAILURE INVALID_FIBER_SWITCH INVALID_SET_OF_CONTEXT INVALID_REFERENCE_COUNT
	- - - INVALID_JUMP_BUFFER MRDATA_MODIFIED CERTIFICATION_FAILURE INVALID_EXCEPTION_CHAIN CRYPTO_LIBRARY
	INVALID_CALL_IN_DLL_CALLOUT INVALID_IMAGE_BASE DLOAD_PROTECTION_FAILURE UNSAFE_EXTENSION_CALL
	DEPRECATED_SERVICE_INVOKED INVALID_BUFFER_ACCESS INVALID_BALANCED_TREE INVALID_NEXT_THREAD
	GUARD_ICALL_CHECK_SUPPRESSED APCS_DISABLED INVALID_IDLE_STATE MRDATA_PROTECTION_FAILURE UNEXPECTED_HEAP_EXCEPTION
	INVALID_LOCK_STATE GUARD_JUMPTABLE INVALID_LONGJUMP_TARGET INVALID_DISPATCH_CONTEXT INVALID_THREAD
	INVALID_SYSCALL_NUMBER INVALID_FILE_OPERATION LPAC_ACCESS_DENIED GUARD_SS_FAILURE LOADER_CONTINUITY_FAILURE
	GUARD_EXPORT_SUPPRESSION_FAILURE INVALID_CONTROL_STACK SET_CONTEXT_DENIED INVALID_IAT HEAP_METADATA_CORRUPTION
	PAYLOAD_RESTRICTION_VIOLATION LOW_LABEL_ACCESS_DENIED ENCLAVE_CALL_FAILURE UNHANDLED_LSS_EXCEPTON
	ADMINLESS_ACCESS_DENIED UNEXPECTED_CALL CONTROL_INVALID_RETURN_ADDRESS UNEXPECTED_HOST_BEHAVIOR FLAGS_CORRUPTION
	VEH_CORRUPTION ETW_CORRUPTION RIO_ABORT INVALID_PFN GUARD_ICALL_CHECK_FAILURE_XFG CAST_GUARD HOST_VISIBILITY_CHANGE
	KERNEL_CET_SHADOW_STACK_ASSIST PATCH_CALLBACK_FAILED NTDLL_PATCH_FAILED INVALID_FLS_DATA ASAN_ERROR
	CLR_EXCEPTION_AOT POINTER_AUTH_INVALID_RETURN_ADDRESS INVALID_THREAD_STATE CORRUPT_WOW64_STATE INVALID_EXTENDED_STATE`)

func fastFailName(code uint64) string {
	if code < uint64(len(fastFails)) && fastFails[code] != "-" {
		return "FAST_FAIL_" + fastFails[code]
	}
	return fmt.Sprintf("fast fail %#x", code)
}
