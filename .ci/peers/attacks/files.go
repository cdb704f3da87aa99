// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/hex"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/ulikunitz/xz"
)

// Files that cost the reader more than the sender.

// hostile is a file and where it is sent.
type hostile struct {
	path string
	body []byte
}

// upload is an attack that sends files again and again.
func upload(name, does string, callers int, files func() []hostile) *kind {
	list := sync.OnceValue(files)
	k := &kind{name: name, does: does, group: "files", prepare: func() { list() }}
	k.run = func(ctx context.Context, a *attacker) error {
		many(ctx, callers, func(ctx context.Context, i int) error {
			c := a.client(a.tokens[i%len(a.tokens)])
			defer c.CloseIdleConnections()
			for k := range list() {
				h := list()[(i+k)%len(list())]
				if status := a.ask(ctx, c, http.MethodPost, h.path, bytes.NewReader(h.body)); status == http.StatusTooManyRequests {
					pause(ctx, 50*time.Millisecond)
				}
			}
			return nil
		})
		return nil
	}
	return k
}

const mib = 1 << 20

// packed packs data by gzip.
func packed(data []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(data) // into memory
	_ = w.Close()
	return out.Bytes()
}

// letters are bytes that take room on disk; zeros can be holes.
func letters(n int) []byte { return bytes.Repeat([]byte("x"), n) }

// headOfCore begins a core, so that the reader goes on.
func headOfCore() []byte { return example("crash", "server.core")[:4096] }

// gzipBomb has members of one letter one after the other: 3 GiB in 3 MB.
func gzipBomb() []byte {
	return append(packed(headOfCore()), bytes.Repeat(packed(letters(16*mib)), 192)...)
}

// xzBomb has streams of one letter one after the other.
func xzBomb() []byte {
	pack := func(data []byte) []byte {
		var out bytes.Buffer
		w, err := xz.NewWriter(&out)
		if err != nil {
			panic(err) // there are no options
		}
		_, _ = w.Write(data)
		_ = w.Close()
		return out.Bytes()
	}
	return append(pack(headOfCore()), bytes.Repeat(pack(letters(16*mib)), 192)...)
}

// zstdBomb has a frame of blocks that say which byte is repeated, 4 bytes for 128 KiB: 3 GiB.
func zstdBomb() []byte {
	const block, blocks = 128 << 10, 24 << 10
	out := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x38} // no size, a window of 128 KiB
	head := headOfCore()
	raw := func(kind, size, last uint32) []byte {
		b := binary.LittleEndian.AppendUint32(nil, size<<3|kind<<1|last)
		return b[:3]
	}
	out = append(append(out, raw(0, uint32(len(head)), 0)...), head...) //nolint:gosec // small
	out = append(out, bytes.Repeat(append(raw(1, block, 0), 'x'), blocks)...)
	return append(append(out, raw(1, block, 1)...), 'x')
}

// zipBomb is a snapshot whose member is 3 GiB of one letter.
func zipBomb() []byte {
	var data bytes.Buffer
	w, _ := flate.NewWriter(&data, flate.BestCompression) // the level is right
	piece := letters(16 * mib)
	_, _ = w.Write(piece)
	_ = w.Flush()
	first := data.Len()
	_, _ = w.Write(piece)
	_ = w.Flush()
	again := bytes.Clone(data.Bytes()[first:])
	_ = w.Close()
	end := bytes.Clone(data.Bytes()[first+len(again):])
	body := append(append(bytes.Clone(data.Bytes()[:first]), bytes.Repeat(again, 191)...), end...)
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	m, _ := z.CreateRaw(&zip.FileHeader{Name: "snapshot.json", Method: zip.Deflate, CompressedSize64: uint64(len(body)), UncompressedSize64: 192 * 16 * mib})
	_, _ = m.Write(body)
	_ = z.Close()
	return out.Bytes()
}

// bombs are files that unpack to 3 GiB, once and in one another.
func bombs() []hostile {
	z := zstdBomb()
	list := []hostile{
		{"/v1/stack", z}, {"/v1/stack", packed(z)}, {"/v1/stack", gzipBomb()}, {"/v1/snapshot", xzBomb()}, {"/v1/stack", zipBomb()},
		{"/v1/profile", packed(packed(packed(z)))}, {"/v1/objects", gzipBomb()}, {"/v1/eval?expr=lit0", packed(z)}, {"/v1/otlp/symbolize", packed(z)}, {"/v1/pprof/symbolize", gzipBomb()},
	}
	nested := headOfCore()
	for range 64 {
		nested = packed(nested)
	}
	return append(list, hostile{"/v1/stack", nested})
}

// sharedNames is a minidump of modules that share one name.
func sharedNames(modules, letters int) []byte {
	const context, contextSize = 0xb0, 1232
	u32 := binary.LittleEndian.AppendUint32
	b := []byte("MDMP\x93\xa7\x00\x00")
	b = u32(u32(u32(b, 3), 32), 0)
	b = append(b, make([]byte, 12)...)
	list := context + contextSize
	name := list + 4 + 108*modules
	b = u32(u32(u32(b, 7), 56), 68)
	b = u32(u32(u32(b, 3), 4+48), 124)
	b = u32(u32(u32(b, 4), uint32(4+108*modules)), uint32(list)) //nolint:gosec // small
	system := make([]byte, 56)
	binary.LittleEndian.PutUint16(system, 9) // x86-64
	system[6], system[7] = 1, 1
	binary.LittleEndian.PutUint32(system[20:], 0x8201) // Linux
	b = append(b, system...)
	thread := make([]byte, 4+48)
	binary.LittleEndian.PutUint32(thread, 1)
	binary.LittleEndian.PutUint32(thread[4:], 1)
	binary.LittleEndian.PutUint32(thread[44:], contextSize)
	binary.LittleEndian.PutUint32(thread[48:], context)
	b = append(b, thread...)
	state := make([]byte, contextSize)
	binary.LittleEndian.PutUint32(state[0x30:], 0x10001f)
	binary.LittleEndian.PutUint64(state[0x98:], 0x7000)
	binary.LittleEndian.PutUint64(state[0xf8:], 0x400100)
	b = append(b, state...)
	b = u32(b, uint32(modules)) //nolint:gosec // small
	for i := range modules {
		m := make([]byte, 108)
		binary.LittleEndian.PutUint64(m, 0x400000+uint64(i)<<16) //nolint:gosec // small
		binary.LittleEndian.PutUint32(m[8:], 0x10000)
		binary.LittleEndian.PutUint32(m[20:], uint32(name)) //nolint:gosec // small
		b = append(b, m...)
	}
	b = u32(b, uint32(2*letters)) //nolint:gosec // small
	return append(b, strings.Repeat("/\x00a\x00", letters/2)...)
}

// core is one of x86-64 with threads at a PC that is in memory and in no module. Where apart is
// set each thread has another PC.
func core(threads int, apart bool) []byte {
	const memory, size, note = 0xb0, 0x1000, 12 + 8 + 336
	u16, u32, u64 := binary.LittleEndian.PutUint16, binary.LittleEndian.PutUint32, binary.LittleEndian.PutUint64
	b := make([]byte, memory, memory+threads*note+size)
	copy(b, "\x7fELF\x02\x01\x01")
	u16(b[16:], 4)
	u16(b[18:], 62)
	u32(b[20:], 1)
	u64(b[32:], 64)
	for i, n := range []uint16{64, 56, 2, 64} {
		u16(b[52+2*i:], n)
	}
	segment := func(place int, kind, flags uint32, offset, address, size uint64) {
		u32(b[place:], kind)
		u32(b[place+4:], flags)
		u64(b[place+8:], offset)
		u64(b[place+16:], address)
		u64(b[place+32:], size)
		u64(b[place+40:], size)
	}
	segment(64, 4, 4, memory, 0, uint64(threads*note))              //nolint:gosec // small
	segment(120, 1, 5, uint64(memory+threads*note), 0x400000, size) //nolint:gosec // likewise
	for i := range threads {
		n := make([]byte, note)
		u32(n, 5)
		u32(n[4:], 336)
		u32(n[8:], 1)
		copy(n[12:], "CORE")
		status := n[20:]
		u32(status[32:], uint32(i+1)) //nolint:gosec // small
		pc := uint64(0x400100)
		if apart {
			pc += uint64(i % 0x600) //nolint:gosec // likewise
		}
		u64(status[112+16*8:], pc)
		u64(status[112+19*8:], 0x400800)
		b = append(b, n...)
	}
	return append(b, make([]byte, size)...)
}

// longest are files that take the longest: of threads, names and rows.
func longest() []hostile {
	return []hostile{
		{"/v1/stack", packed(core(40_000, true))}, {"/v1/stack?format=html", packed(core(40_000, false))}, {"/v1/snapshot", packed(core(40_000, true))},
		{"/v1/stack", packed(example("mixed", "mixed.snapshot"))},
	}
}

// names are minidumps whose modules share a name.
func names() []hostile {
	return []hostile{{"/v1/stack", packed(sharedNames(60_000, 60_000))}, {"/v1/stack?format=text", packed(sharedNames(20_000, 4_000))}}
}

// counts are files that say that they have more than there is.
func counts() (list []hostile) {
	all := bytes.Repeat([]byte{0xff}, 4096)
	elf := example("crash", "server")
	changed := func(b []byte, changes ...int) []byte {
		b = bytes.Clone(b)
		for _, at := range changes {
			copy(b[at:], "\xff\xff\xff\x7f")
		}
		return b
	}
	dump, snapshot, recording := example("crash", "server.dmp"), example("mixed", "mixed.snapshot"), example("profile", "perf.data")
	for _, at := range []int{8, 12} {
		list = append(list, hostile{"/v1/stack", changed(dump, at)})
	}
	for i := range 24 {
		list = append(list, hostile{"/v1/stack", changed(dump, 32+12*(i%12)+4*(i/12))}, hostile{"/v1/profile", changed(recording, 8+4*i)}, hostile{"/v1/objects", changed(elf, 32+2*i)})
	}
	directory := bytes.Index(snapshot, []byte("PK\x01\x02"))
	for _, at := range []int{20, 24, 28, 42} {
		list = append(list, hostile{"/v1/stack", changed(snapshot, directory+at)})
	}
	return append(list,
		hostile{"/v1/stack", append([]byte("MDMP\x93\xa7\x00\x00\xff\xff\xff\xff\x20\x00\x00\x00"), all...)},
		hostile{"/v1/profile", append([]byte("PERFILE2\x68\x00\x00\x00\x00\x00\x00\x00"), all...)},
		hostile{"/v1/objects", append([]byte("\x7fELF\x02\x01\x01"), all...)},
		hostile{"/v1/stack", append([]byte("\x7fELF\x02\x01\x01"), all...)},
	)
}

// profiles are OTLP and pprof profiles that say more than they have: strings without end,
// messages in one another, indices to nothing.
func profiles() []hostile {
	field := func(number int, data []byte) []byte {
		return append(binary.AppendUvarint(binary.AppendUvarint(nil, uint64(number)<<3|2), uint64(len(data))), data...) //nolint:gosec // small
	}
	deep := []byte{}
	for range 200 {
		deep = field(1, append(deep, field(2, deep[:min(len(deep), 64)])...))
	}
	strings := field(2, bytes.Repeat(field(5, []byte("x")), 2*mib)) // ProfilesDictionary.string_table
	long := field(2, field(5, make([]byte, 12*mib)))
	indices := field(2, bytes.Repeat(field(2, []byte{0x08, 0xff, 0xff, 0xff, 0xff, 0x07, 0x18, 0xff, 0xff, 0xff, 0xff, 0x07}), mib/2))
	negative := field(1, field(2, field(2, bytes.Repeat(field(2, []byte{0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}), mib/4))))
	var list []hostile
	for _, b := range [][]byte{deep, strings, long, indices, negative, append(strings, negative...), {0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f}} {
		list = append(list, hostile{"/v1/otlp/symbolize", b}, hostile{"/v1/otlp/symbolize", packed(b)}, hostile{"/v1/pprof/symbolize", packed(b)})
	}
	return list
}

// exampleID is the build ID of the example's executable.
const exampleID = "01092ed6fbfc989c60cdda4dd2cc30a56e23db6d"

// withBuildID is an executable with a build ID of its own.
func withBuildID(exe []byte, n uint64) (file, id string) {
	old, err := hex.DecodeString(exampleID)
	if err != nil {
		panic(err)
	}
	own := binary.BigEndian.AppendUint64(bytes.Clone(old[:12]), n)
	return string(bytes.ReplaceAll(exe, old, own)), hex.EncodeToString(own)
}

// justInTime has the command ask for stacks through a link that sends each answer when the
// server has almost given up.
func justInTime(ctx context.Context, a *attacker) error {
	many(ctx, 8, func(ctx context.Context, _ int) error {
		address, end, err := a.slowLink(ctx, maxIdle*8/10)
		if err != nil {
			return err
		}
		defer end()
		return a.command(ctx, address, "stack", "../../examples/crash/server.core", "--exe", "../../examples/crash/server")
	})
	return nil
}
