// SPDX-License-Identifier: Apache-2.0

package minidump

// Exception is MINIDUMP_EXCEPTION_STREAM: why a thread stopped. Dump.Reason interprets
// it.
type Exception struct {
	ThreadID   uint32
	Code       uint32 // STATUS_* on Windows, a signal on Linux, a Mach exception on macOS
	Flags      uint32 // si_code on Linux, the exception's code on macOS
	Record     uint64 // the address of a further EXCEPTION_RECORD; 0: none
	Address    uint64 // of the instruction on Windows, of the access on Linux and macOS
	Parameters []uint64
	// Description is LLDB's text, which it writes instead of parameters. Address is then
	// the address of the instruction.
	Description string
	// Context has the registers at the exception. In the list of threads the thread may
	// have the registers of the function that wrote the dump.
	Context Context
}

const (
	exceptionSize      = 168
	exceptionMinSize   = 40 // without parameters and context
	maxParameters      = 15 // EXCEPTION_MAXIMUM_PARAMETERS
	exceptionParameter = 40
	exceptionContext   = 160
	lldbFlags          = 0x4c4c4442 // the flags of exceptions that LLDB writes
)

func (d *Dump) readException(s *Stream) {
	r, ok := d.fixed(s, exceptionMinSize)
	if !ok {
		return
	}
	if len(r.b) < exceptionSize {
		d.problem(s, 0, "it has %d bytes, expected %d; its registers are not read", len(r.b), exceptionSize)
	}
	x := Exception{ThreadID: r.u32(0), Code: r.u32(8), Flags: r.u32(12), Record: r.u64(16), Address: r.u64(24)}
	count := r.u32(32)
	if x.Flags == lldbFlags {
		text := r.skip(exceptionParameter).b
		x.Description = narrow(text[:min(len(text), exceptionContext-exceptionParameter)])
		count = 0
	}
	if count > maxParameters {
		d.problem(s, s.Offset+32, "it has %d parameters, expected %d at most; those are read", count, maxParameters)
		count = maxParameters
	}
	for i := range int(count) {
		x.Parameters = append(x.Parameters, r.u64(exceptionParameter+8*i))
	}
	if l := r.location(exceptionContext); l.size > 0 {
		x.Context = d.context(s, s.Offset+exceptionContext, l, "exception", len(d.Exceptions))
	}
	d.Exceptions = append(d.Exceptions, x)
}
