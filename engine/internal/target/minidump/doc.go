// SPDX-License-Identifier: Apache-2.0

// Package minidump reads minidumps: the crash reports that Windows' dbghelp,
// Breakpad, Crashpad and LLDB write.
//
// Open maps a dump and reads all of its streams except the memory, which is read
// on request:
//
//	d, err := minidump.Open("crash.dmp")
//	if err != nil {
//		return err
//	}
//	defer d.Close()
//	for i := range d.Exceptions {
//		fmt.Println(d.Reason(&d.Exceptions[i]))
//	}
//	for i := range d.Threads {
//		c := &d.Threads[i].Context
//		registers, err := c.Registers()
//		if err != nil {
//			return err
//		}
//		sp, _ := c.SP()
//		stack := make([]byte, 64)
//		n, _ := d.ReadMemory(sp, stack)
//		fmt.Println(registers, stack[:n])
//	}
//
// OpenTarget opens a dump as a target, whose stacks can be walked.
//
// # Problems
//
// Of a truncated or damaged dump everything readable is read. Dump.Problems lists the
// rest, with the stream, the offset in the file and the expectation there. Only a file
// without a header and a directory is an error.
//
// # Memory
//
// Byte slices of a Dump refer to the mapped file. They are valid until Close, and
// must be read inside object.Guard, as the file may be truncated meanwhile. Strings and
// numbers are copies. A string that many records share is decoded once, and all text
// together is bounded.
//
// # The format
//
// The structures are described in Microsoft's minidumpapiset.h, with the extensions of
// Breakpad (google_breakpad/common/minidump_format.h: streams 0x4767xxxx) and
// Crashpad (minidump/minidump_extensions.h: stream 0x43500001). Breakpad wrote
// dumps in the byte order of the machine; both orders are read.
package minidump
