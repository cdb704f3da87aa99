// SPDX-License-Identifier: Apache-2.0

package minidump

import "github.com/unwindd/unwindd/engine/internal/target/minidump/minidumptest"

// everything is a dump with all streams, of Windows on x86-64 but for those of Linux.
func everything(order minidumptest.ByteOrder) *minidumptest.Builder {
	b := minidumptest.New(order)
	context := b.Part(b.AMD64Context(0x10001f))
	stack := b.Part("the bytes of a stack")
	b.Stream(uint32(StreamThreadList), uint32(2), uint32(0),
		uint32(7), uint32(1), uint32(0x20), uint32(5), uint64(0x7ffd000), uint64(0x1000), stack, context,
		uint32(8), uint32(0), uint32(0x20), uint32(6), uint64(0x7ffe000), uint64(0), uint64(0), context)
	b.System(9, 2)
	b.Exception(0xc0000005, 0, 0x401000, 1, 0x45)
	guid := b.Pack(uint32(0x5a9832e5), uint16(0x2872), uint16(0x41c1), []byte{0x83, 0x8e, 0xd9, 0x89, 0x14, 0xe9, 0xb7, 0xff})
	version := b.Pack(uint32(0xfeef04bd), uint32(0x10000), uint32(0x50001), uint32(0xa280884), uint32(0x50001), uint32(0xa280884),
		uint32(0x3f), uint32(0), uint32(0x40004), uint32(2), uint32(0), uint32(0), uint32(0))
	module := func(base uint64, name string, cv []byte) []byte {
		return b.Pack(base, uint32(0x2000), uint32(3), uint32(0x45d35f6c), b.Text(name), version, cv, uint64(0), uint64(0), uint64(0))
	}
	list := b.Pack(
		module(0x400000, `c:\app.exe`, b.Part(uint32(0x53445352), guid, uint32(1), "app.pdb\x00")),
		module(0x500000, "old.dll", b.Part(uint32(0x3031424e), uint32(0), uint32(0x3c4d5e6f), uint32(2), "old.pdb\x00")),
		module(0x600000, "libx.so", b.Part(uint32(0x4270454c), []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20})))
	b.Stream(uint32(StreamModuleList), uint32(3), list)
	b.Stream(uint32(StreamMemoryList), uint32(1), uint64(0x2000), b.Part("listed"))
	b.Stream(uint32(StreamUnloadedModuleList), uint32(12), uint32(24), uint32(1), uint64(0x700000), uint32(0x3000), uint32(4), uint32(5), b.Text("gone.dll"))
	b.Stream(uint32(StreamMemoryInfoList), uint32(16), uint32(48), uint64(1),
		uint64(0x400000), uint64(0x400000), uint32(0x80), uint32(0), uint64(0x1000), uint32(MemCommit), uint32(0x20), uint32(0x1000000), uint32(0))
	info := b.Put(uint32(0), uint32(2), uint32(4), "info")
	b.Stream(uint32(StreamHandleData), uint32(16), uint32(40), uint32(1), uint32(0),
		uint64(0x44), b.Text("File"), b.Text(`\Device\Null`), uint32(1), uint32(2), uint32(3), uint32(4), info, uint32(0))
	b.Stream(uint32(StreamThreadNames), uint32(1), uint32(8), uint64(b.Text("wörker \U0001f980")))
	b.Stream(uint32(StreamThreadInfoList), uint32(12), uint32(64), uint32(1), uint32(7), uint32(1), uint32(0), uint32(259), []uint64{11, 12, 13, 14, 15, 16})
	b.Stream(uint32(StreamMiscInfo), uint32(24), uint32(3), uint32(4242), uint32(1600000000), uint32(2), uint32(1))
	b.Stream(uint32(StreamBreakpadInfo), uint32(3), uint32(8), uint32(7))
	field := func(s string) []byte { return append(b.Wide(s), make([]byte, 256-2*len(s))...) }
	b.Stream(uint32(StreamAssertionInfo), field("p != NULL"), field("main"), field("main.c"), uint32(12), uint32(1))
	b.Stream(uint32(StreamCommentA), "a comment\x00")
	b.Stream(uint32(StreamCommentW), b.Wide("a wide comment"), uint16(0))
	simple := b.Part(uint32(1), b.Narrow("prod"), b.Narrow("Thing"))
	annotations := b.Part(uint32(1), b.Part(uint32(1), b.Narrow("said")), simple,
		b.Part(uint32(2), b.Narrow("why"), uint16(1), uint16(0), b.Narrow("because"), b.Narrow("count"), uint16(0x8001), uint16(0), b.Put(uint32(2), []byte{5, 6})))
	links := b.Part(uint32(1), uint32(1), annotations)
	b.Stream(uint32(StreamCrashpadInfo), uint32(1), guid, guid, simple, links, uint32(0), uint64(0xffffff))
	return b
}

// linux is a dump of Linux on x86-64 with the streams of Breakpad.
func linux(order minidumptest.ByteOrder) *minidumptest.Builder {
	b := minidumptest.New(order)
	b.System(9, 0x8201)
	b.Exception(11, 1, 0x45)
	b.Stream(uint32(StreamLinuxCPUInfo), "processor : 0\n")
	b.Stream(uint32(StreamLinuxProcStatus), "Name:\tcrash\n")
	b.Stream(uint32(StreamLinuxLSBRelease), "DISTRIB_ID=x\n")
	b.Stream(uint32(StreamLinuxCommandLine), "crash\x00-v\x00")
	b.Stream(uint32(StreamLinuxEnviron), "A=1\x00B=2\x00")
	b.Stream(uint32(StreamLinuxAuxv), []uint64{6, 4096, 33, 0x7fff0000, 0, 0})
	b.Stream(uint32(StreamLinuxMaps), "00400000-0041a000 r-xp 00001000 08:01 86123         /a b\n7fff0000-7fff2000 rw-p 00000000 00:00 0 \n")
	list := b.Put(uint64(0x10000), b.Text("libm.so.6"), uint64(0x20000), uint64(0), b.Text("ld.so"), uint64(0x30000))
	b.Stream(uint32(StreamLinuxDSODebug), uint32(1), list, uint32(2), []uint64{1, 2, 3}, "dynamic")
	return b
}
