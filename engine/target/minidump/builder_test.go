package minidump

import (
	"encoding/binary"
	"fmt"
	"unicode/utf16"
)

// A builder makes dumps. Parts go behind one another, the directory comes last.
type builder struct {
	order   binary.AppendByteOrder
	data    []byte
	streams [][3]uint32
}

type byteOrder interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

func newBuilder(order byteOrder) *builder {
	return &builder{order: order, data: make([]byte, headerSize)}
}

// pack writes numbers with their own sizes, and bytes and texts as they are.
func (b *builder) pack(list ...any) []byte {
	var out []byte
	for _, v := range list {
		switch v := v.(type) {
		case uint8:
			out = append(out, v)
		case uint16:
			out = b.order.AppendUint16(out, v)
		case uint32:
			out = b.order.AppendUint32(out, v)
		case uint64:
			out = b.order.AppendUint64(out, v)
		case []uint64:
			for _, n := range v {
				out = b.order.AppendUint64(out, n)
			}
		case []byte:
			out = append(out, v...)
		case string:
			out = append(out, v...)
		default:
			panic(fmt.Sprintf("%T", v))
		}
	}
	return out
}

// put adds bytes and returns where they are.
func (b *builder) put(list ...any) uint32 {
	at := uint32(len(b.data))
	b.data = append(b.data, b.pack(list...)...)
	return at
}

// part adds bytes and returns their size and where they are, as a location has them.
func (b *builder) part(list ...any) []byte {
	p := b.pack(list...)
	return b.pack(uint32(len(p)), b.put(p))
}

func (b *builder) wide(s string) []byte {
	var out []byte
	for _, u := range utf16.Encode([]rune(s)) {
		out = b.order.AppendUint16(out, u)
	}
	return out
}

// text adds a MINIDUMP_STRING.
func (b *builder) text(s string) uint32 {
	w := b.wide(s)
	return b.put(uint32(len(w)), w, uint16(0))
}

// narrow adds a text of Crashpad.
func (b *builder) narrow(s string) uint32 { return b.put(uint32(len(s)), s, uint8(0)) }

func (b *builder) stream(t StreamType, list ...any) {
	p := b.pack(list...)
	b.streams = append(b.streams, [3]uint32{uint32(t), uint32(len(p)), b.put(p)})
}

func (b *builder) bytes() []byte {
	var list []byte
	for _, s := range b.streams {
		list = append(list, b.pack(s[0], s[1], s[2])...)
	}
	at := b.put(list)
	magic := b.pack(uint32(0x504d444d))
	copy(b.data, b.pack(magic, uint32(0x12a793), uint32(len(b.streams)), at, uint32(0), uint32(1700000000), uint64(2)))
	return b.data
}

// system adds the stream of a system.
func (b *builder) system(arch uint16, platform uint32) {
	b.stream(StreamSystemInfo, arch, uint16(6), uint16(0x3a09), uint8(8), uint8(1), uint32(10), uint32(0), uint32(19045), platform,
		b.text("Service Pack 9"), uint16(0x100), uint16(0), b.pack(uint32(0x756e6547), uint32(0x49656e69), uint32(0x6c65746e), uint32(1), uint32(2), uint32(3)))
}

// exception adds an exception without registers.
func (b *builder) exception(code, flags uint32, address uint64, parameters ...uint64) {
	all := make([]uint64, 15)
	copy(all, parameters)
	b.stream(StreamException, uint32(7), uint32(0), code, flags, uint64(0), address, uint32(len(parameters)), uint32(0), all, uint64(0))
}

// amd64Context is a context of x86-64 in which each register has its offset as value.
func (b *builder) amd64Context(flags uint32) []byte {
	c := make([]byte, 1232)
	for i := 0; i+8 <= len(c); i += 8 {
		copy(c[i:], b.pack(uint64(i)<<32|uint64(i)))
	}
	copy(c[48:], b.pack(flags))
	return c
}

// everything is a dump with all streams, of Windows on x86-64 but for those of Linux.
func everything(order byteOrder) *builder {
	b := newBuilder(order)
	context := b.part(b.amd64Context(0x10001f))
	stack := b.part("the bytes of a stack")
	b.stream(StreamThreadList, uint32(2), uint32(0),
		uint32(7), uint32(1), uint32(0x20), uint32(5), uint64(0x7ffd000), uint64(0x1000), stack, context,
		uint32(8), uint32(0), uint32(0x20), uint32(6), uint64(0x7ffe000), uint64(0), uint64(0), context)
	b.system(9, 2)
	b.exception(0xc0000005, 0, 0x401000, 1, 0x45)
	guid := b.pack(uint32(0x5a9832e5), uint16(0x2872), uint16(0x41c1), []byte{0x83, 0x8e, 0xd9, 0x89, 0x14, 0xe9, 0xb7, 0xff})
	version := b.pack(uint32(0xfeef04bd), uint32(0x10000), uint32(0x50001), uint32(0xa280884), uint32(0x50001), uint32(0xa280884),
		uint32(0x3f), uint32(0), uint32(0x40004), uint32(2), uint32(0), uint32(0), uint32(0))
	module := func(base uint64, name string, cv []byte) []byte {
		return b.pack(base, uint32(0x2000), uint32(3), uint32(0x45d35f6c), b.text(name), version, cv, uint64(0), uint64(0), uint64(0))
	}
	list := b.pack(
		module(0x400000, `c:\app.exe`, b.part(uint32(0x53445352), guid, uint32(1), "app.pdb\x00")),
		module(0x500000, "old.dll", b.part(uint32(0x3031424e), uint32(0), uint32(0x3c4d5e6f), uint32(2), "old.pdb\x00")),
		module(0x600000, "libx.so", b.part(uint32(0x4270454c), []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20})))
	b.stream(StreamModuleList, uint32(3), list)
	b.stream(StreamMemoryList, uint32(1), uint64(0x2000), b.part("listed"))
	b.stream(StreamUnloadedModuleList, uint32(12), uint32(24), uint32(1), uint64(0x700000), uint32(0x3000), uint32(4), uint32(5), b.text("gone.dll"))
	b.stream(StreamMemoryInfoList, uint32(16), uint32(48), uint64(1),
		uint64(0x400000), uint64(0x400000), uint32(0x80), uint32(0), uint64(0x1000), uint32(MemCommit), uint32(0x20), uint32(0x1000000), uint32(0))
	info := b.put(uint32(0), uint32(2), uint32(4), "info")
	b.stream(StreamHandleData, uint32(16), uint32(40), uint32(1), uint32(0),
		uint64(0x44), b.text("File"), b.text(`\Device\Null`), uint32(1), uint32(2), uint32(3), uint32(4), info, uint32(0))
	b.stream(StreamThreadNames, uint32(1), uint32(8), uint64(b.text("wörker \U0001f980")))
	b.stream(StreamThreadInfoList, uint32(12), uint32(64), uint32(1), uint32(7), uint32(1), uint32(0), uint32(259), []uint64{11, 12, 13, 14, 15, 16})
	b.stream(StreamMiscInfo, uint32(24), uint32(3), uint32(4242), uint32(1600000000), uint32(2), uint32(1))
	b.stream(StreamBreakpadInfo, uint32(3), uint32(8), uint32(7))
	field := func(s string) []byte { return append(b.wide(s), make([]byte, 256-2*len(s))...) }
	b.stream(StreamAssertionInfo, field("p != NULL"), field("main"), field("main.c"), uint32(12), uint32(1))
	b.stream(StreamCommentA, "a comment\x00")
	b.stream(StreamCommentW, b.wide("a wide comment"), uint16(0))
	simple := b.part(uint32(1), b.narrow("prod"), b.narrow("Thing"))
	annotations := b.part(uint32(1), b.part(uint32(1), b.narrow("said")), simple,
		b.part(uint32(2), b.narrow("why"), uint16(1), uint16(0), b.narrow("because"), b.narrow("count"), uint16(0x8001), uint16(0), b.put(uint32(2), []byte{5, 6})))
	links := b.part(uint32(1), uint32(1), annotations)
	b.stream(StreamCrashpadInfo, uint32(1), guid, guid, simple, links, uint32(0), uint64(0xffffff))
	return b
}

// linux is a dump of Linux on x86-64 with the streams of Breakpad.
func linux(order byteOrder) *builder {
	b := newBuilder(order)
	b.system(9, 0x8201)
	b.exception(11, 1, 0x45)
	b.stream(StreamLinuxCPUInfo, "processor : 0\n")
	b.stream(StreamLinuxProcStatus, "Name:\tcrash\n")
	b.stream(StreamLinuxLSBRelease, "DISTRIB_ID=x\n")
	b.stream(StreamLinuxCommandLine, "crash\x00-v\x00")
	b.stream(StreamLinuxEnviron, "A=1\x00B=2\x00")
	b.stream(StreamLinuxAuxv, []uint64{6, 4096, 33, 0x7fff0000, 0, 0})
	b.stream(StreamLinuxMaps, "00400000-0041a000 r-xp 00001000 08:01 86123         /a b\n7fff0000-7fff2000 rw-p 00000000 00:00 0 \n")
	list := b.put(uint64(0x10000), b.text("libm.so.6"), uint64(0x20000), uint64(0), b.text("ld.so"), uint64(0x30000))
	b.stream(StreamLinuxDSODebug, uint32(1), list, uint32(2), []uint64{1, 2, 3}, "dynamic")
	return b
}
