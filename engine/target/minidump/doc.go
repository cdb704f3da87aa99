// SPDX-License-Identifier: Apache-2.0

// Package minidump reads minidumps: the crash reports that Windows' dbghelp,
// Breakpad, Crashpad and LLDB write.
//
// Open maps a dump and reads all of its streams but the memory, which is read
// where it is asked for:
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
// OpenTarget makes a target of a dump, which stacks are walked in.
//
// # What is wrong
//
// Of a dump that was cut or damaged everything is read that can be. What cannot be
// is left out, and Dump.Problems says so, with the stream, the offset in the file
// and what was expected there. Only a file that has no header and no directory is
// an error.
//
// # Memory
//
// Byte slices of a Dump refer to the mapped file. They are valid until Close, and
// must be read inside object.Guard, for the file may be cut meanwhile. Strings and
// numbers are copies. Names of many records that lie at one place of the file are
// decoded once, and all text together is bounded.
//
// # The format
//
// The structures are those of Microsoft's minidumpapiset.h, with the extensions of
// Breakpad (google_breakpad/common/minidump_format.h: streams 0x4767xxxx) and
// Crashpad (minidump/minidump_extensions.h: stream 0x43500001). Breakpad wrote
// dumps in the byte order of the machine; both orders are read.
package minidump
