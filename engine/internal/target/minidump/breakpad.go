// SPDX-License-Identifier: Apache-2.0

package minidump

// Breakpad is MDRawBreakpadInfo.
type Breakpad struct {
	// DumpThreadID is the thread that wrote the dump, and RequestingThreadID the one
	// that requested it; each only where Has... is true.
	DumpThreadID, RequestingThreadID       uint32
	HasDumpThreadID, HasRequestingThreadID bool
}

// Assertion is MDRawAssertionInfo: an assertion of the C library that failed.
type Assertion struct {
	Expression, Function, File string
	Line                       uint32
	Type                       uint32 // AssertInvalidParameter, AssertPureVirtualCall, or another
}

// The types of Assertion.
const (
	AssertInvalidParameter = 1
	AssertPureVirtualCall  = 2
)

const (
	breakpadSize        = 12
	assertionText       = 256 // bytes of each of three texts
	assertionSize       = 3*assertionText + 8
	hasDumpThread       = 1
	hasRequestingThread = 2
)

func (d *Dump) readBreakpad(s *Stream) {
	r, ok := d.fixed(s, breakpadSize)
	if !ok {
		return
	}
	d.Breakpad = &Breakpad{
		DumpThreadID: r.u32(4), RequestingThreadID: r.u32(8),
		HasDumpThreadID: r.u32(0)&hasDumpThread != 0, HasRequestingThreadID: r.u32(0)&hasRequestingThread != 0,
	}
}

func (d *Dump) readAssertion(s *Stream) {
	r, ok := d.fixed(s, assertionSize)
	if !ok {
		return
	}
	d.Assertion = &Assertion{
		Expression: r.fixedWide(0, assertionText),
		Function:   r.fixedWide(assertionText, assertionText),
		File:       r.fixedWide(2*assertionText, assertionText),
		Line:       r.u32(3 * assertionText),
		Type:       r.u32(3*assertionText + 4),
	}
}
