// SPDX-License-Identifier: Apache-2.0

package minidump

import (
	"bytes"

	"github.com/unwindd/unwindd/engine/trace"
)

// This file reads the streams of macOS that Mozilla added to Breakpad
// (minidump_format.h of Firefox: MozMacosCrashInfo and MozMacosBootargs).

// A MozMacosCrashInfo is its type, a count, the size of a record's fixed part, and the
// locations of 20 records.
const (
	macRecords    = 20
	macHeaderSize = 12
	// A record is two numbers of 64 bits, the second of which is its version, and
	// from these versions on further ones.
	macThreadVersion = 4 // thread, dialog_mode
	macAbortVersion  = 5 // abort_cause
)

// macMessages reads the messages that libraries of macOS left for a crash report.
func (d *Dump) macMessages() (list []trace.Message) {
	header := record{d.Data(StreamMozMacCrashInfo), d.Order}
	count, start := header.u32(4), header.u32(8)
	for i := range min(int(count), macRecords) {
		r, problem := d.bytesOf(header.location(macHeaderSize + 8*i))
		if problem != "" || len(r.b) == 0 || uint64(start) > uint64(len(r.b)) {
			continue
		}
		m := trace.Message{}
		version := r.u64(8)
		if m.HasThread = version >= macThreadVersion; m.HasThread {
			m.Thread, m.DialogMode = r.u64(16), r.u64(24)
		}
		if m.HasAbortCause = version >= macAbortVersion; m.HasAbortCause {
			m.AbortCause = r.u64(32)
		}
		if version >= macThreadVersion {
			rest := r.b[start:min(uint64(len(r.b)), uint64(start)+maxText)]
			for _, text := range []*string{&m.Module, &m.Text, &m.Signature, &m.Backtrace, &m.TextAgain} {
				*text = narrow(rest)
				if end := bytes.IndexByte(rest, 0); end >= 0 {
					rest = rest[end+1:]
				} else {
					rest = nil
				}
			}
		}
		list = append(list, m)
	}
	return list
}

// bootArguments returns the boot arguments of the kernel.
func (d *Dump) bootArguments() string {
	r := record{d.Data(StreamMozMacBootArgs), d.Order}
	offset := r.u64(4)
	header, problem := d.bytesOf(location{4, offset})
	if offset == 0 || problem != "" {
		return ""
	}
	text, _ := d.bytesOf(location{min(uint64(header.u32(0)), maxText), offset + 4})
	return text.wide()
}
