// SPDX-License-Identifier: Apache-2.0

package minidump

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine/internal/target/minidump/minidumptest"
	"github.com/unwindd/unwindd/engine/object"
)

// use reads all that a dump has.
func use(d *Dump) {
	for i := range d.Threads {
		c := &d.Threads[i].Context
		_, _ = c.Registers()
		c.PC()
		c.SP()
	}
	for i := range d.Exceptions {
		_ = d.Reason(&d.Exceptions[i]).String()
		_, _ = d.Exceptions[i].Context.Registers()
	}
	for i := range d.Modules {
		m := &d.Modules[i]
		_ = m.Identity.DebugID() + d.CodeID(m) + m.Version.String()
	}
	d.Auxv()
	d.Facts()
	buf := make([]byte, 64)
	last := uint64(0)
	for i, r := range d.Memory() {
		if i > 0 && r.Start < last || r.Size == 0 || r.Start+r.Size < r.Start {
			panic("memory is not in order")
		}
		last = r.Start + r.Size
		if i < 1000 {
			if n, _ := d.ReadMemory(r.Start, buf); n == 0 {
				panic("memory is not there")
			}
			_, _ = d.ReadMemory(last-1, buf)
		}
	}
}

func TestDumpsThatAreCutAreReadAsFarAsTheyGo(t *testing.T) {
	for _, order := range orders {
		for _, b := range []*minidumptest.Builder{everything(order), linux(order)} {
			whole := b.Bytes()
			// The directory first, so that it is there.
			directory := order.Uint32(whole[12:])
			moved := append([]byte(nil), whole...)
			for end := len(whole); end >= headerSize; end -= 7 {
				cut := append(append([]byte(nil), moved[:min(end, int(directory))]...), moved[directory:]...)
				order.PutUint32(cut[12:], uint32(min(end, int(directory))))
				d, err := Read("cut.dmp", cut)
				if err != nil {
					t.Fatal(err)
				}
				use(d)
				if len(cut) < int(directory)-8 && len(d.Problems()) == 0 {
					t.Errorf("cut at %d of %d: no problem", end, directory)
				}
				if d, err := Read("cut.dmp", whole[:end]); err == nil {
					use(d)
				}
			}
		}
	}
}

// TestHostileNumbers writes numbers that cannot be over every word of a dump.
func TestHostileNumbers(t *testing.T) {
	for _, b := range []*minidumptest.Builder{everything(binary.LittleEndian), linux(binary.LittleEndian), newXState()} {
		whole := b.Bytes()
		start := time.Now()
		for _, value := range []uint32{0, 1, 0x7fffffff, 0x80000000, 0xffffffff, uint32(len(whole)) - 3} {
			for at := 4; at+4 <= len(whole); at += 4 {
				bad := append([]byte(nil), whole...)
				binary.LittleEndian.PutUint32(bad[at:], value)
				if d, err := Read("bad.dmp", bad); err == nil {
					use(d)
				}
			}
		}
		if took := time.Since(start); took > time.Minute {
			t.Errorf("%v", took)
		}
	}
}

func newXState() *minidumptest.Builder {
	b := minidumptest.New(binary.LittleEndian)
	return withContext(b, 9, xstate(b, 0xa04, 1<<63|0xa04, [2]int{64, 2}))
}

func TestProblemsNameStreamOffsetAndWhatWasExpected(t *testing.T) {
	for _, c := range []struct {
		what  string
		build func(b *minidumptest.Builder)
		want  string
	}{
		{"more modules than there is room for", func(b *minidumptest.Builder) { b.Stream(uint32(StreamModuleList), uint32(5000), make([]byte, 216)) },
			"stream ModuleList, offset 0x20: it has 5000 entries of 108 bytes, but its 220 bytes have room for 2; those are read"},
		{"a stream beyond the file", func(b *minidumptest.Builder) {
			b.Streams = append(b.Streams, [3]uint32{uint32(StreamSystemInfo), 56, 0xfffffff0})
		},
			"stream SystemInfo, offset 0xfffffff0: 56 bytes at offset 0xfffffff0 are expected, the file ends at 0x2c"},
		{"a short stream", func(b *minidumptest.Builder) { b.Stream(uint32(StreamBreakpadInfo), uint32(1)) },
			"stream BreakpadInfo, offset 0x20: it has 4 bytes, expected 12 at least; it is not read"},
		{"entries that are too small", func(b *minidumptest.Builder) {
			b.Stream(uint32(StreamMemoryInfoList), uint32(16), uint32(8), uint64(1), make([]byte, 48))
		},
			"its entries have 8 bytes, expected 48 at least"},
		{"a header that is too small", func(b *minidumptest.Builder) {
			b.Stream(uint32(StreamHandleData), uint32(0), uint32(40), uint32(1), uint32(0))
		},
			"its header has 0 bytes, expected 16 at least"},
		{"two lists", func(b *minidumptest.Builder) {
			b.Stream(uint32(StreamThreadList), uint32(0))
			b.Stream(uint32(StreamThreadList), uint32(0))
		}, "there is one of its type before it"},
		{"overlapping streams", func(b *minidumptest.Builder) {
			b.Stream(uint32(StreamLinuxCPUInfo), "text")
			b.Streams = append(b.Streams, [3]uint32{uint32(StreamLinuxProcStatus), 4, 0x21})
		}, "stream LinuxProcStatus, offset 0x21: its 4 bytes overlap those of stream LinuxCPUInfo, which has 4 bytes at 0x20"},
		{"memory beyond the file", func(b *minidumptest.Builder) {
			b.Stream(uint32(StreamMemoryList), uint32(1), uint64(0x1000), uint32(0x1000), uint32(0x10))
		},
			"range 0 has 4096 bytes of memory at offset 0x10, the file ends at"},
		{"memory beyond the last address", func(b *minidumptest.Builder) {
			b.Stream(uint32(StreamMemoryList), uint32(1), ^uint64(0)-1, b.Part("abcdef"))
		},
			"range 0 has 6 bytes at 0xfffffffffffffffe, which is beyond the last address"},
		{"a name beyond the file", func(b *minidumptest.Builder) {
			b.Stream(uint32(StreamThreadNames), uint32(1), uint32(1), uint64(1)<<60)
		},
			"stream ThreadNames, offset 0x20: thread name 0: the length of a string: 4 bytes at offset 0x1000000000000000 are expected, the file ends at"},
		{"too many parameters", func(b *minidumptest.Builder) {
			b.Stream(uint32(StreamException), make([]byte, 32), uint32(99), make([]byte, 132))
		},
			"stream Exception, offset 0x40: it has 99 parameters, expected 15 at most"},
		{"a list that goes round", func(b *minidumptest.Builder) {
			at := uint32(len(b.Data))
			b.Put(at, uint32(1), uint32(0))
			b.Stream(uint32(StreamHandleData), uint32(16), uint32(40), uint32(1), uint32(0), make([]byte, 32), at, uint32(0))
		}, "handle 0 has more than 16 records"},
		{"annotations of a module that is not there", func(b *minidumptest.Builder) {
			links := b.Part(uint32(1), uint32(9), uint64(0))
			b.Stream(uint32(StreamCrashpadInfo), make([]byte, 44), links)
		}, "annotations of module 9, of which the dump has 0"},
		{"an identity of no form", func(b *minidumptest.Builder) {
			b.Stream(uint32(StreamModuleList), uint32(1), make([]byte, 76), b.Part("WHAT?"), make([]byte, 24))
		},
			"module 0: its CodeView record at 0x20 begins with 57 48 41 54, expected RSDS"},
	} {
		b := minidumptest.New(binary.LittleEndian)
		c.build(b)
		d, err := Read("bad.dmp", b.Bytes())
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		use(d)
		if got := strings.Join(d.Problems(), "\n"); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, expected %s", c.what, got, c.want)
		}
	}
}

// TestManyRecordsOfOneTextTakeLittleMemory has a million bytes of text that each of
// a hundred thousand records names.
func TestManyRecordsOfOneTextTakeLittleMemory(t *testing.T) {
	b := minidumptest.New(binary.LittleEndian)
	name := b.Text(strings.Repeat("x", 500_000))
	shifted := make([]byte, 0, 24*100_000)
	for i := range uint32(100_000) {
		at := name
		if i%2 == 1 {
			at = name + 4 + 2*(i%400_000) // which begins with a length of 0x780078
		}
		shifted = append(shifted, b.Pack(uint64(i), uint32(1), uint32(0), uint32(0), at)...)
	}
	b.Stream(uint32(StreamUnloadedModuleList), uint32(12), uint32(24), uint32(100_000), shifted)
	links := b.Pack()
	list := b.Part(uint32(1000), make([]byte, 8000))
	all := b.Part(uint32(1), uint64(0), list, uint64(0))
	for range 10_000 {
		links = append(links, b.Pack(uint32(0), all)...)
	}
	b.Stream(uint32(StreamModuleList), uint32(1), make([]byte, 108))
	b.Stream(uint32(StreamCrashpadInfo), make([]byte, 44), b.Part(uint32(10_000), links))
	data := b.Bytes()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	d, err := Read("many.dmp", data)
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	used := after.TotalAlloc - before.TotalAlloc
	t.Logf("%d unloaded modules of %d bytes in %v, %d bytes allocated", len(d.UnloadedModules), len(data), took, used)
	if used > 256<<20 || took > 20*time.Second {
		t.Errorf("%v, %d bytes allocated", took, used)
	}
	if p := d.Problems(); len(p) > maxProblems+1 {
		t.Errorf("%d problems", len(p))
	}
}

// TestAFileThatIsCutUnderIt cuts a dump that is open.
func TestAFileThatIsCutUnderIt(t *testing.T) {
	b := minidumptest.New(binary.LittleEndian)
	b.Put(make([]byte, 3*os.Getpagesize()))
	b.Stream(uint32(StreamMemoryList), uint32(1), uint64(0x1000), b.Part(make([]byte, 3*os.Getpagesize())))
	withContext(b, 9, b.AMD64Context(0x10001f))
	path := filepath.Join(t.TempDir(), "cut.dmp")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := os.Truncate(path, 100); err != nil {
		t.Fatal(err)
	}
	if _, err := d.ReadMemory(0x1000, make([]byte, 100)); !isShrunk(err) {
		t.Errorf("memory: %v", err)
	}
	if _, err := d.Threads[0].Context.Registers(); !isShrunk(err) {
		t.Errorf("registers: %v", err)
	}
}

func isShrunk(err error) bool {
	return err != nil && strings.Contains(err.Error(), object.ErrFileShrank.Error())
}

// FuzzDump reads any bytes as a dump, and all that it then has.
func FuzzDump(f *testing.F) {
	for _, order := range orders {
		f.Add(everything(order).Bytes())
		f.Add(linux(order).Bytes())
	}
	f.Add(newXState().Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := Read("fuzz.dmp", data)
		if err != nil {
			return
		}
		use(d)
		if len(d.Problems()) > maxProblems+1 {
			t.Errorf("%d problems", len(d.Problems()))
		}
	})
}

// TestNamesThatRecordsShareCostAsMuchAsTheFile: any number of modules and threads can name one string.
func TestNamesThatRecordsShareCostAsMuchAsTheFile(t *testing.T) {
	const n = 2000
	b := minidumptest.New(binary.LittleEndian)
	long, name := b.Text(strings.Repeat("é/", 10_000)), b.Text(strings.Repeat("n", 4000))
	modules := make([]any, 0, n)
	for i := range uint64(n) {
		at := name
		if i == 0 {
			at = long
		}
		modules = append(modules, b.Pack(0x400000+i*0x1000, uint32(0x1000), uint32(0), uint32(0), at, make([]byte, 84)))
	}
	b.Stream(uint32(StreamModuleList), append([]any{uint32(n)}, modules...)...)
	file := b.Bytes()
	d, err := Read("shared.dmp", file)
	if err != nil {
		t.Fatal(err)
	}
	all := 0
	for i := range d.Modules {
		all += len(d.Modules[i].Name)
	}
	if len(d.Modules) != n || all > len(file) || all < len(file)/2 {
		t.Errorf("%d modules have names of %d bytes, of a file of %d", len(d.Modules), all, len(file))
	}
	if first := d.Modules[0].Name; len(first) != maxName-1 || !strings.HasSuffix(first, "é") && !strings.HasSuffix(first, "/") {
		t.Errorf("a name is cut to %d bytes, at %q", len(first), first[len(first)-4:])
	}
	problems := strings.Join(d.Problems(), "\n")
	for _, want := range []string{"module 0: the string at 0x20 has 30000 bytes as a name, 4096 are kept", "it has no name here: names that share strings have more bytes than the file"} {
		if !strings.Contains(problems, want) {
			t.Errorf("no problem %q", want)
		}
	}
}
