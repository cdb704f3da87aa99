// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/proof"
)

func mustHaveProblem(t *testing.T, problems []string, words ...string) {
	t.Helper()
	for _, p := range problems {
		all := true
		for _, w := range words {
			all = all && strings.Contains(p, w)
		}
		if all {
			return
		}
	}
	t.Errorf("problems %q, expected one with %q", problems, words)
}

// everything is an event with all fields before those that nobody reads.
func everything() Attr {
	return Attr{
		Type: 1, SamplePeriod: 99, Flags: FlagFreq | FlagSampleIDAll | FlagUseClockID | 2<<15, ClockID: 4,
		SampleType:       SampleWeightStruct - 1,
		ReadFormat:       formatGroup | formatID | formatLost | formatTotalTimeEnabled | formatTotalTimeRunning,
		BranchSampleType: branchCallStack | branchHWIndex | branchCounters, SampleRegsUser: 0b1001, SampleRegsIntr: 0b11, SampleStackUser: 16,
	}
}

func everythingSample(b *builder) *builder {
	return b.add(recordSample, uint16(ModeUser),
		uint64(200), uint64(0x401000), uint32(10), uint32(11), uint64(5000), uint64(0xadd), uint64(200), uint64(1), uint32(3), uint32(0), uint64(77),
		[]uint64{2, 8, 9, 1, 200, 0, 2, 201, 0}, // read: number, times, then value, id, lost
		[]uint64{5, contextMarker(128), 0xffff0000, contextMarker(512), 0x401000, 0x402000},
		uint32(4), []byte("raw!"),
		[]uint64{2, 0, 0x402004, 0x401000, 0, 0x403004, 0x402000, 0, 5, 6}, // branches: number, index, from, to, flags of each, counters of each
		[]uint64{2, 0x1111, 0x2222},
		uint64(16), []byte("0123456789abcdef"), uint64(10),
		[]uint64{1, 2, 3}, // weight, data source, transaction
		[]uint64{2, 6, 7}, []uint64{1, 2, 3, 4}, uint64(8), uint64(0))
}

// A file of the other byte order gives the same samples, with all fields, and
// flags that are bit-fields.
func TestByteOrders(t *testing.T) {
	for _, big := range []bool{false, true} {
		for _, pipe := range []bool{false, true} {
			b := newBuilder(big, everything())
			b.pipe = pipe
			b.feature[featureCPUs] = b.pack(uint32(4), uint32(3))
			b.feature[featureEventDesc] = b.pack(uint32(1), uint32(128), b.attr(&b.attrs[0]), uint32(0), uint32(16), []byte("an-event\x00\x00\x00\x00\x00\x00\x00\x00"))
			everythingSample(b)
			attr := everything()
			f, samples, r := collect(t, b.bytes())
			if p := append(f.Problems(), r.Problems()...); len(p) > 0 || bool(f.order) != big {
				t.Fatalf("big endian %v: %q", big, p)
			}
			a := f.Attrs()[0]
			a.layout = layout{}
			attr.Name = "an-event"
			if a != attr {
				t.Errorf("attribute %+v, expected %+v", a, attr)
			}
			if x := f.Features(); x.Hostname != "machine" || x.CPUsAvailable != 4 || x.CPUsOnline != 3 {
				t.Errorf("features %+v", x)
			}
			if len(samples) != 1 || samples[0].Problem != "" {
				t.Fatalf("samples %+v", samples)
			}
			s := samples[0]
			if s.Event != 0 || s.PID != 10 || s.TID != 11 || s.CPU != 3 || s.Time != 5000 || s.IP != 0x401000 || s.Address != 0xadd || s.Period != 77 ||
				s.Mode != ModeUser || string(s.Stack) != "0123456789" {
				t.Errorf("big endian %v: sample %+v", big, s)
			}
			if c := s.Calls; c.Len() != 2 || c.From(0) != 0x402004 || c.To(0) != 0x401000 || c.From(1) != 0x403004 || c.To(1) != 0x402000 {
				t.Errorf("calls %+v", c)
			}
			if s.Registers.ABI != Registers64 || s.Registers.Mask != 0b1001 || !bytes.Equal(s.Registers.Values, b.pack([]uint64{0x1111, 0x2222})) {
				t.Errorf("registers %+v", s.Registers)
			}
			if k, u := addressesOf(s.Chain, ContextKernel), addressesOf(s.Chain, ContextUser); !slices.Equal(k, []uint64{0xffff0000}) || !slices.Equal(u, []uint64{0x401000, 0x402000}) {
				t.Errorf("chains %x and %x", k, u)
			}
		}
	}
}

// A sample is delivered with what it has wherever its record ends.
func TestSampleCutAtEveryFieldIsDeliveredWithTheReason(t *testing.T) {
	b := newBuilder(false, everything())
	whole := everythingSample(b).records.Bytes()
	for size := 8; size < len(whole); size += 4 {
		c := newBuilder(false, everything())
		c.records.Write(b.pack(uint32(recordSample), uint16(ModeUser), uint16(size)))
		c.records.Write(whole[8:size])
		_, samples, _ := collect(t, c.bytes())
		if len(samples) != 1 || samples[0].Problem == "" {
			t.Fatalf("of %d bytes: %+v", size, samples)
		}
		if s := &samples[0]; size >= 32 && (s.PID != 10 || s.TID != 11 || s.IP != 0x401000) || size >= 40 && s.Time != 5000 {
			t.Fatalf("of %d bytes: %+v", size, s)
		}
	}
}

// story is a recording with all that changes a process.
func story(b *builder) *builder {
	return b.
		add(recordMmap, uint16(ModeKernel), append([]any{^uint32(0), uint32(0), uint64(0xffff0000), uint64(0x1000), uint64(0xffff0000), "[kernel.kallsyms]_text"}, tail(0, 0, 0)...)...).
		comm(10, 10, 0, "shell", 0).
		mmap2(10, 0, 0x1000, 0x2000, 0, 5, "/bin/shell", 0).
		sample(10, 10, 10).
		fork(20, 10, 20, 10, 20, 0).
		sample(20, 20, 21).
		comm(20, 20, 30, "tool", miscCommExec).
		sample(20, 20, 31).
		mmap2(20, 40, 0x1000, 0x3000, 0, 5, "/bin/tool", 0).
		sample(20, 20, 41).
		mmap2(20, 50, 0x1000, 0x1000, 0, 3, "//anon", 0).
		sample(20, 20, 51).
		mmap2(20, 60, 0x2800, 0x400, 0x100, 5, "/lib/plugin", 0).
		sample(20, 20, 61).
		fork(20, 20, 21, 20, 70, 0).
		comm(20, 21, 71, "worker", 0).
		sample(20, 21, 72).
		sample(20, 20, 73).
		exit(20, 21, 80).
		exit(20, 20, 81).
		sample(20, 20, 82).
		fork(20, 10, 20, 10, 90, 0).
		sample(20, 20, 91).
		sample(10, 10, 92).
		sample(77, 77, 93)
}

func listed(s *Space) (text string) {
	for m := range s.All() {
		text += fmt.Sprintf("%x-%x@%x %s; ", m.Start, m.End, m.Offset, m.Path)
	}
	return text
}

var told = map[uint64][2]string{
	10: {"shell", "1000-3000@0 /bin/shell; "},
	21: {"shell", "1000-3000@0 /bin/shell; "},
	31: {"tool", ""},
	41: {"tool", "1000-4000@0 /bin/tool; "},
	51: {"tool", "1000-2000@0 //anon; 2000-4000@1000 /bin/tool; "},
	61: {"tool", "1000-2000@0 //anon; 2000-2800@1000 /bin/tool; 2800-2c00@100 /lib/plugin; 2c00-4000@1c00 /bin/tool; "},
	72: {"worker", "1000-2000@0 //anon; 2000-2800@1000 /bin/tool; 2800-2c00@100 /lib/plugin; 2c00-4000@1c00 /bin/tool; "},
	73: {"tool", "1000-2000@0 //anon; 2000-2800@1000 /bin/tool; 2800-2c00@100 /lib/plugin; 2c00-4000@1c00 /bin/tool; "},
	82: {"tool", "1000-2000@0 //anon; 2000-2800@1000 /bin/tool; 2800-2c00@100 /lib/plugin; 2c00-4000@1c00 /bin/tool; "},
	91: {"shell", "1000-3000@0 /bin/shell; "},
	92: {"shell", "1000-3000@0 /bin/shell; "},
	93: {"", ""},
}

func checkStory(t *testing.T, samples []Sample) {
	t.Helper()
	if len(samples) != len(told) {
		t.Errorf("%d samples, expected %d", len(samples), len(told))
	}
	for i, s := range samples {
		if i > 0 && s.Time < samples[i-1].Time {
			t.Errorf("the sample at %d comes after that at %d", s.Time, samples[i-1].Time)
		}
		if want := told[s.Time]; s.Comm != want[0] || listed(s.Space) != want[1] || s.Problem != "" {
			t.Errorf("sample at %d: %q %q %q, expected %q", s.Time, s.Comm, listed(s.Space), s.Problem, want)
		}
	}
}

func TestProcessesChangeWithTime(t *testing.T) {
	for _, pipe := range []bool{false, true} {
		b := newBuilder(false, simple())
		b.pipe = pipe
		f, samples, r := collect(t, story(b).bytes())
		if p := append(f.Problems(), r.Problems()...); len(p) > 0 {
			t.Errorf("problems: %q", p)
		}
		checkStory(t, samples)
	}
}

// What perf makes up of processes that run already does not copy the mappings of
// the parent, which follow by themselves.
func TestForkThatPerfMadeUpCopiesNoMappings(t *testing.T) {
	b := newBuilder(false, simple()).comm(10, 10, 0, "parent", 0).mmap2(10, 0, 0x1000, 0x1000, 0, 5, "/bin/parent", 0).
		fork(20, 10, 20, 10, 0, miscForkExec).sample(20, 20, 5)
	_, samples, _ := collect(t, b.bytes())
	if s := samples[0]; count(s.Space) != 0 {
		t.Errorf("the child has %s", listed(s.Space))
	}
}

// split cuts records into parts.
func split(b []byte) (records [][]byte) {
	for len(b) > 0 {
		size := int(b[6]) | int(b[7])<<8
		records = append(records, b[:size])
		b = b[size:]
	}
	return records
}

// However the records are spread over buffers that perf empties one after the
// other, they come out in the order of time.
func TestRecordsOfSeveralBuffersComeInTheOrderOfTime(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	records := split(story(newBuilder(false, simple())).records.Bytes())
	for range 200 {
		var buffers [4][][]byte
		for i, r := range records {
			to := random.IntN(4)
			if i < 4 {
				to = 0 // these have one time, and stay in order
			}
			buffers[to] = append(buffers[to], r)
		}
		b := newBuilder(false, simple())
		for _, buffer := range buffers {
			for _, r := range buffer {
				b.records.Write(r)
			}
			b.add(68, 0)
		}
		_, samples, _ := collect(t, b.bytes())
		checkStory(t, samples)
	}
}

// Random times are sorted as a stable sort does it.
func TestOrderIsThatOfAStableSort(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 30 {
		b := newBuilder(false, simple())
		type key struct{ time, tid uint64 }
		var want []key
		for i := range 2000 {
			k := key{uint64(random.IntN(500)), uint64(i)}
			want = append(want, k)
			b.sample(1, uint32(i), k.time)
		}
		slices.SortStableFunc(want, func(a, b key) int { return cmp.Compare(a.time, b.time) })
		_, samples, _ := collect(t, b.bytes())
		var got []key
		for _, s := range samples {
			got = append(got, key{s.Time, uint64(s.TID)})
		}
		if !slices.Equal(got, want) {
			t.Fatal("the order differs")
		}
	}
}

// Beyond the most runs all samples still come, and a problem says that their
// order is not known.
func TestTooManyRunsStayInTheOrderOfTheFile(t *testing.T) {
	b := newBuilder(false, simple())
	for i := range 100 {
		b.sample(1, 1, uint64(1000-i))
	}
	f := &File{path: "test", maxRuns: 10}
	if err := f.open(b.bytes()); err != nil {
		t.Fatal(err)
	}
	if n := len(drain(t, f.Reader())); n != 100 {
		t.Errorf("%d samples of 100", n)
	}
	mustHaveProblem(t, f.Problems(), "offset", "10 runs", "order of the file")
}

// compress packs records in COMPRESSED records of a few bytes, without regard to
// where records end, and does not end the stream, as perf does.
func compress(t testing.TB, to *builder, data []byte, kind RecordType, piece int) {
	t.Helper()
	var packed bytes.Buffer
	w, err := zstd.NewWriter(&packed, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	for part := range slices.Chunk(data, 100) {
		w.Write(part)
		w.Flush()
	}
	for part := range slices.Chunk(packed.Bytes(), piece) {
		if kind == recordCompressed2 {
			to.add(kind, 0, uint64(len(part)), part, make([]byte, 7))
		} else {
			to.add(kind, 0, part)
		}
	}
}

func TestCompressedRecordsThatStraddle(t *testing.T) {
	for _, kind := range []RecordType{recordCompressed, recordCompressed2} {
		for _, piece := range []int{1, 7, 64, 5000} {
			b := newBuilder(false, simple())
			compress(t, b, story(newBuilder(false, simple())).records.Bytes(), kind, piece)
			f, samples, _ := collect(t, b.bytes())
			checkStory(t, samples)
			if p := f.Problems(); len(p) > 0 || !samples[0].IsCompressed {
				t.Errorf("pieces of %d: %q", piece, p)
			}
		}
	}
}

func TestDamagedCompressionGivesWhatCameBefore(t *testing.T) {
	b := newBuilder(false, simple())
	compress(t, b, story(newBuilder(false, simple())).records.Bytes(), recordCompressed, 20)
	data := b.bytes()
	for at := len(data) / 2; at < len(data)/2+60; at++ {
		data[at] ^= 0x55
	}
	f, samples, _ := collect(t, data)
	if len(f.Problems()) == 0 || len(samples) >= len(told) {
		t.Errorf("%d samples, problems %q", len(samples), f.Problems())
	}
}

func TestUnpackingIsBounded(t *testing.T) {
	var packed bytes.Buffer
	w, _ := zstd.NewWriter(&packed)
	w.Write(make([]byte, 64<<20))
	w.Close()
	b := newBuilder(false, simple())
	for part := range slices.Chunk(packed.Bytes(), 60000) {
		b.add(recordCompressed, 0, part)
	}
	f := parse(t, b.bytes())
	mustHaveProblem(t, f.Problems(), object.ErrTooLarge.Error())
}

func TestOtherRecordsAreCountedAndSkipped(t *testing.T) {
	b := newBuilder(false, simple())
	b.add(recordAuxtrace, 0, uint64(24), uint64(0), uint64(0), uint32(0), uint32(0), uint32(0), uint32(0)).records.Write(make([]byte, 24))
	b.sample(1, 1, 5)
	b.add(recordLost, 0, append([]any{uint64(100), uint64(7)}, tail(1, 1, 6)...)...)
	b.add(recordLostSamples, 0, append([]any{uint64(4)}, tail(1, 1, 7)...)...)
	b.add(5, 0, append([]any{uint64(1), uint64(2), uint64(3)}, tail(1, 1, 8)...)...)
	b.add(68, 0)
	b.add(recordTracingData, 0, uint32(16)) // its data is in the header of a file
	b.add(4000, 0, uint64(1))
	b.sample(1, 1, 9)
	f, samples, r := collect(t, b.bytes())
	if p := append(f.Problems(), r.Problems()...); len(p) != 1 || !strings.HasPrefix(p[0], "test: 24 bytes that processors traced") {
		t.Errorf("problems: %q", p)
	}
	got := fmt.Sprint(f.Counts())
	lost, dropped := f.Lost()
	if len(samples) != 2 || lost != 7 || dropped != 4 || !strings.Contains(got, "AUXTRACE:1") || !strings.Contains(got, "THROTTLE:1") || !strings.Contains(got, "type 4000:1") {
		t.Errorf("%d samples, %d and %d lost, %s", len(samples), lost, dropped, got)
	}
}

func TestTracingDataOfAPipe(t *testing.T) {
	b := newBuilder(false, simple())
	b.pipe = true
	data := b.tracing(switchFormat)
	b.add(recordTracingData, 0, uint32(len(data))).records.Write(data)
	b.sample(1, 1, 5)
	if f, samples, _ := collect(t, b.bytes()); len(samples) != 1 || len(f.Problems()) > 0 || f.Tracepoint("sched", "sched_switch") == nil {
		t.Errorf("%d samples, problems %q", len(samples), f.Problems())
	}
}

// Records that cannot be do nothing, and are told.
func TestRecordsThatCannotBe(t *testing.T) {
	b := newBuilder(false, simple()).
		mmap2(10, 1, ^uint64(0)-10, 100, 0, 5, "/wraps", 0).
		mmap2(10, 2, 0x1000, 0, 0, 5, "/empty", 0).
		mmap2(10, 3, 0x5000, 0x1000, 0, 5, "/"+strings.Repeat("x", 5000), 0).
		add(recordKsymbol, 0, append([]any{^uint64(0), uint32(0x100), uint16(1), uint16(0), "wraps"}, tail(0, 0, 4)...)...).
		add(recordFork, 0, append([]any{uint32(1)}, tail(0, 0, 5)...)...).
		add(recordMmap, 0, append([]any{uint32(1), uint32(1), uint64(1)}, tail(0, 0, 6)...)...).
		add(recordComm, 0, uint32(1)).
		sample(10, 10, 20)
	_, samples, r := collect(t, b.bytes())
	for _, words := range [][]string{{"MMAP2", "last address"}, {"MMAP2", "path of 5001 bytes"}, {"KSYMBOL"}, {"FORK", "too few"}, {"MMAP", "too few"}, {"COMM", "too few"}} {
		mustHaveProblem(t, r.Problems(), append(words, "offset")...)
	}
	if len(samples) != 1 || count(samples[0].Space) != 1 {
		t.Errorf("samples %+v: %s", samples, listed(samples[0].Space))
	}
}

// A number that is used again is another process, with nothing of the first.
func TestProcessNumbersAreUsedAgain(t *testing.T) {
	b := newBuilder(false, simple()).
		comm(1, 1, 0, "init", 0).
		comm(10, 10, 1, "first", 0).mmap2(10, 1, 0x1000, 0x1000, 0, 5, "/bin/first", 0).
		fork(10, 10, 11, 10, 2, 0).
		fork(10, 99, 10, 99, 3, 0). // the end was lost, and the parent is not known
		sample(10, 10, 4).
		mmap2(10, 5, 0x2000, 0x1000, 0, 5, "/bin/second", 0).
		fork(11, 1, 11, 1, 6, 0). // the number of a thread
		sample(11, 11, 7).
		sample(10, 10, 8)
	// Threads that ended are remembered for a while, and then their process is gone.
	b.exit(10, 10, 9).sample(10, 10, 10)
	for i := range uint32(maxDead + 10) {
		b.fork(1, 1, 100+i, 1, 20, 0).exit(1, 100+i, 20)
	}
	b.sample(10, 10, 30)
	_, samples, r := collect(t, b.bytes())
	var got []string
	for _, s := range samples {
		got = append(got, fmt.Sprintf("%d %s %s", s.Time, s.Comm, listed(s.Space)))
	}
	want := []string{"4  ", "7 init ", "8  2000-3000@0 /bin/second; ", "10  2000-3000@0 /bin/second; ", "30  "}
	if !slices.Equal(got, want) {
		t.Errorf("samples %q, expected %q", got, want)
	}
	if n := len(r.state.threads); n > maxDead+10 || len(r.state.processes) != 2 {
		t.Errorf("%d threads, %d processes are kept", n, len(r.state.processes))
	}
}

// What is kept of a recording is bounded whatever it says.
func TestStateIsBounded(t *testing.T) {
	b := newBuilder(false, simple())
	r := parse(t, b.bytes()).Reader()
	s := &r.state
	m := &mappings{}
	for i := range uint64(100) {
		s.mapped = maxMappings - 50
		if i >= 50 {
			s.mapped = maxMappings
		}
		s.add(m, &Mapping{Start: 16 * i, End: 16*i + 8})
	}
	s.textBytes = maxText
	if name := s.text([]byte("more")); m.root.len() != 50 || name != "" {
		t.Errorf("%d mappings, name %q", m.root.len(), name)
	}
	mustHaveProblem(t, r.Problems(), "mappings", "left out")
	mustHaveProblem(t, r.Problems(), "names", "left out")
}

// A batch has one state of the kernel.
func TestKernelSymbolsComeAndGo(t *testing.T) {
	symbol := func(b *builder, time uint64, flags uint16) {
		b.add(recordKsymbol, 0, append([]any{uint64(0xffffc000), uint32(0x100), uint16(1), flags, "bpf_prog_1"}, tail(0, 0, time)...)...)
	}
	b := newBuilder(false, simple())
	b.sample(1, 1, 5)
	symbol(b, 10, 0)
	b.sample(1, 1, 15)
	b.sample(1, 1, 16)
	symbol(b, 20, 1)
	b.sample(1, 1, 25)
	r := parse(t, b.bytes()).Reader()
	var got []string
	for {
		batch, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		name := ""
		if m := batch.KernelSymbols.Find(0xffffc0ff); m != nil {
			name = m.Path
		}
		got = append(got, fmt.Sprintf("%d %s", len(batch.Samples), name))
	}
	if want := []string{"1 ", "2 bpf_prog_1", "1 "}; !slices.Equal(got, want) {
		t.Errorf("batches %q, expected %q", got, want)
	}
}

// Events with different fields are told apart by the identifier, and those whose
// identifier nobody has are delivered with the reason.
func TestEventsAreFoundByTheirIDs(t *testing.T) {
	second := simple()
	second.SampleType |= SampleCPU | SamplePeriod
	second.Config = 2
	b := newBuilder(true, simple(), second)
	b.sample(1, 1, 5)
	b.add(recordSample, 0, uint64(201), uint64(0x42), uint32(1), uint32(2), uint64(6), uint32(9), uint32(0), uint64(1000))
	b.add(recordSample, 0, uint64(999), uint64(0x42), uint32(1), uint32(2), uint64(7))
	b.add(recordComm, 0, uint32(1), uint32(2), "second", uint32(1), uint32(2), uint64(4), uint32(9), uint32(0), uint64(201))
	_, samples, _ := collect(t, b.bytes())
	slices.SortFunc(samples, func(a, b Sample) int { return cmp.Compare(a.Offset, b.Offset) })
	if len(samples) != 3 || samples[0].Event != 0 || samples[0].Period != 7 || samples[1].Event != 1 || samples[1].CPU != 9 || samples[1].Period != 1000 || samples[1].Comm != "second" ||
		samples[2].Event != -1 || samples[2].Problem != eventUnknownID {
		t.Errorf("samples %+v", samples)
	}
}

// Where no identifier is at a fixed place the id of the sample is found by the
// fields before it.
func TestEventsAreFoundByTheirSampleIDs(t *testing.T) {
	a := simple()
	a.SampleType = SampleIP | SampleTID | SampleTime | SampleAddr | SampleID | SampleCPU
	b := newBuilder(false, a, a)
	for i, id := range []uint64{101, 100, 201} {
		b.add(recordSample, 0, uint64(0x42), uint32(1), uint32(2), uint64(10*i), uint64(0xadd), id, uint32(i), uint32(0))
	}
	b.add(recordComm, 0, uint32(1), uint32(2), "name", uint32(1), uint32(2), uint64(15), uint64(101), uint32(0), uint32(0))
	_, samples, _ := collect(t, b.bytes())
	var got []string
	for _, s := range samples {
		got = append(got, fmt.Sprint(s.Event, s.CPU, s.Time, s.Address, s.Comm, s.Problem))
	}
	if want := []string{"1 0 0 2781", "0 1 10 2781", "1 2 20 2781name"}; !slices.EqualFunc(got, want, func(a, b string) bool { return strings.ReplaceAll(a, " ", "") == strings.ReplaceAll(b, " ", "") }) {
		t.Errorf("samples %q, expected %q", got, want)
	}
}

// A record that has no time has that of the record before it.
func TestRecordsWithoutTimeKeepTheirPlace(t *testing.T) {
	a := simple()
	a.Flags &^= FlagSampleIDAll
	b := newBuilder(false, a)
	b.add(recordComm, 0, uint32(1), uint32(1), "first").sample(1, 1, 5)
	b.add(recordComm, 0, uint32(1), uint32(1), "second").sample(1, 1, 6)
	c := newBuilder(false, simple()).
		comm(1, 1, ^uint64(0), "first", 0).sample(1, 1, 5).comm(1, 1, ^uint64(0), "second", 0).sample(1, 1, 6)
	for i, x := range []*builder{b, c} {
		_, samples, _ := collect(t, x.bytes())
		if len(samples) != 2 || samples[0].Comm != "first" || samples[1].Comm != "second" {
			t.Errorf("recording %d: %+v", i, samples)
		}
	}
}

// Of records of one time, those that were compressed are the last.
func TestCompressedRecordsComeAfterOthersOfTheirTime(t *testing.T) {
	b := newBuilder(false, simple())
	compress(t, b, newBuilder(false, simple()).sample(1, 1, 5).records.Bytes(), recordCompressed, 500)
	b.comm(1, 1, 5, "name", 0)
	if _, samples, _ := collect(t, b.bytes()); len(samples) != 1 || samples[0].Comm != "name" {
		t.Errorf("samples %+v", samples)
	}
}

// A kernel thread has no registers and no stack; a stack cannot have more than
// was copied; branches may come without an index.
func TestUserStateThatIsNotThere(t *testing.T) {
	a := simple()
	a.SampleType |= SampleBranchStack | SampleRegsUser | SampleStackUser | SampleWeight
	a.SampleRegsUser = 3
	b := newBuilder(false, a)
	id := func(time uint64) []any { return []any{uint64(100), uint64(0x1000), uint32(1), uint32(1), time} }
	b.add(recordSample, 1, append(id(1), []uint64{1, 7, 7, 7, 0, 0, 55})...)
	b.add(recordSample, 1, append(id(2), []uint64{0, 2, 8, 9, 16, 1, 2, 17, 55})...)
	b.add(recordSample, 1, append(id(3), []uint64{0, 2, 8, 9, 16, 1, 2, 16, 55})...)
	_, samples, _ := collect(t, b.bytes())
	if s := samples[0]; s.Problem != "" || s.Registers.Values != nil || s.Registers.Mask != 0 || s.Stack != nil {
		t.Errorf("kernel thread: %+v", s)
	}
	if s := samples[1]; !strings.Contains(s.Problem, "17 bytes") || len(s.Stack) != 0 || len(s.Registers.Values) != 16 {
		t.Errorf("more stack than there is: %+v", s)
	}
	if s := samples[2]; s.Problem != "" || len(s.Stack) != 16 {
		t.Errorf("a whole stack: %+v", s)
	}
}

func TestBuildIDsOfTheHeaderHaveTheirSizes(t *testing.T) {
	b := newBuilder(false, simple())
	id := bytes.Repeat([]byte{0xab}, 20)
	b.feature[featureBuildID] = append(b.record(0, miscBuildIDSize|uint16(ModeUser), int32(-1), id, []byte{8, 0, 0, 0}, "/bin/short"),
		b.record(0, uint16(ModeKernel), int32(-1), id, []byte{0, 0, 0, 0}, "[kernel.kallsyms]")...)
	b.mmap2(10, 1, 0x1000, 0x1000, 0, 5, "/bin/short", 0).sample(10, 10, 2)
	f, samples, _ := collect(t, b.bytes())
	x := f.Features().BuildIDs
	if len(x) != 2 || len(x[0].ID) != 8 || x[0].Path != "/bin/short" || x[0].PID != -1 || len(x[1].ID) != 20 || x[1].Mode != ModeKernel {
		t.Errorf("build IDs %+v, problems %q", x, f.Problems())
	}
	if m := samples[0].Space.Find(0x1000); m == nil || len(m.BuildID) != 8 {
		t.Errorf("mapping %+v", m)
	}
}

// A version of the mappings tells whether code changed since another.
func TestSpacesTellWhetherCodeChanged(t *testing.T) {
	b := newBuilder(false, simple()).
		mmap2(10, 1, 0x1000, 0x1000, 0, 5, "/bin/a", 0).sample(10, 10, 2).sample(10, 10, 3).
		mmap2(10, 4, 0x8000, 0x1000, 0, 3, "//anon", 0).sample(10, 10, 5).
		mmap2(10, 6, 0x9000, 0x1000, 0, 5, "/lib/b", 0).sample(10, 10, 7).
		mmap2(10, 8, 0x1000, 0x800, 0, 3, "//over", 0).sample(10, 10, 9).
		mmap2(10, 10, 0x1400, 0x800, 0, 3, "//over", 0).sample(10, 10, 11)
	f := parse(t, b.bytes())
	batch, err := f.Reader().Next()
	if err != nil {
		t.Fatal(err)
	}
	s := batch.Samples
	if s[0].Space != s[1].Space || s[1].Space == s[2].Space || s[1].Space.Code != s[2].Space.Code || s[2].Space.Code == s[3].Space.Code || s[3].Space.Code != s[3].Space.ID {
		t.Errorf("spaces %+v %+v %+v %+v", s[0].Space, s[1].Space, s[2].Space, s[3].Space)
	}
	if s[4].Space.Code == s[3].Space.Code || s[5].Space.Code == s[4].Space.Code {
		t.Error("code that data took the place of is not told")
	}
}

// Cut anywhere, a file gives the samples that are before the cut, or says that it
// is none.
func TestFileCutAnywhere(t *testing.T) {
	for _, pipe := range []bool{false, true} {
		b := newBuilder(false, simple())
		b.pipe = pipe
		data := story(b).bytes()
		before, cut := 0, 0
		for size := range len(data) + 1 {
			f := &File{path: "test", maxRuns: MaxRuns}
			if err := f.open(data[:size]); err != nil {
				if !errors.Is(err, ErrNotPerfData) {
					t.Fatal(err)
				}
				continue
			}
			samples := drain(t, f.Reader())
			whole := 0
			for _, s := range samples {
				if s.Problem == "" {
					whole++
					continue
				}
				cut++
				if has := uint64(size) - s.Offset; has >= 32 && s.PID == -1 || !strings.Contains(s.Problem, "the file ends") {
					t.Fatalf("%d bytes: of the sample that is cut: %+v", size, s)
				}
			}
			if whole < before || len(samples) > whole+1 {
				t.Fatalf("%d bytes: %d samples, %d of them whole, %d before", size, len(samples), whole, before)
			}
			before = whole
			if len(samples) < len(told) && !pipe {
				mustHaveProblem(t, f.Problems(), "offset")
			}
		}
		if before != len(told) || cut != len(told)*32 { // a record of 40 bytes, 8 of them its header
			t.Errorf("%d samples at last, expected %d; %d were delivered that are cut", before, len(told), cut)
		}
	}
}

func TestWhatCannotBe(t *testing.T) {
	good := func() []byte { return story(newBuilder(false, simple())).bytes() }
	put := func(at int, v uint64) func([]byte) []byte {
		return func(b []byte) []byte {
			copy(b[at:], newBuilder(false).pack(v))
			return b
		}
	}
	for _, c := range []struct {
		name    string
		change  func([]byte) []byte
		samples int // -1: not a recording
		words   []string
	}{
		{"an ELF file", func([]byte) []byte { return []byte("\x7fELF............") }, -1, []string{"begins with"}},
		{"the first version", func(b []byte) []byte { copy(b, magicOld); return b }, -1, []string{"version 1"}},
		{"a header of no known size", put(8, 50), -1, []string{"header of 50 bytes"}},
		{"attributes of no size", put(16, 1), -1, []string{"attributes of 1 bytes"}},
		{"no data size", put(48, 0), len(told), []string{"offset 0x30", "not finished"}},
		{"data beyond the file", put(48, 1<<60), len(told), []string{"records are", "of which the file has"}},
		{"data behind the file", put(40, 1<<60), 0, []string{"records are"}},
		{"data that wraps", put(40, ^uint64(0)), 0, []string{"records are"}},
		{"attributes beyond the file", put(24, 1<<60), len(told), []string{"offset 0x18"}},
		{"a record of 3 bytes", put(264, 3<<48), 0, []string{"record", "3 bytes"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &File{path: "test", maxRuns: MaxRuns}
			err := f.open(c.change(good()))
			if c.samples < 0 {
				if !errors.Is(err, ErrNotPerfData) {
					t.Fatalf("error %v", err)
				}
				mustHaveProblem(t, []string{err.Error()}, c.words...)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			samples := drain(t, f.Reader())
			if len(samples) != c.samples {
				t.Errorf("%d samples, expected %d", len(samples), c.samples)
			}
			if c.name == "attributes beyond the file" {
				for _, s := range samples {
					if s.Problem != eventNone || s.Event != -1 {
						t.Errorf("sample without an event: %+v", s)
					}
				}
			}
			mustHaveProblem(t, f.Problems(), c.words...)
		})
	}
}

// The tree has what a list has in which each mapping is cut by what came after.
func TestSpaceIsThatOfEachAddress(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 50 {
		var root *node
		var pages [256]*Mapping
		var offsets [256]uint64
		type version struct {
			root  *node
			pages [256]*Mapping
		}
		var versions []version
		for i := range 100 {
			start := uint64(random.IntN(250))
			end := start + 1 + uint64(random.IntN(min(40, 256-int(start))))
			m := &Mapping{Start: start, End: end, Offset: 1000 * uint64(i), Inode: uint64(i)}
			root, _ = root.insert(m)
			for p := start; p < end; p++ {
				pages[p], offsets[p] = m, m.Offset+p-start
			}
			versions = append(versions, version{root, pages})
			s := &Space{root: root}
			for p := range uint64(256) {
				got := s.Find(p)
				if (got == nil) != (pages[p] == nil) || got != nil && (got.Inode != pages[p].Inode || got.Offset+p-got.Start != offsets[p]) {
					t.Fatalf("address %d: %+v, expected %+v at %d", p, got, pages[p], offsets[p])
				}
			}
			count, last := 0, uint64(0)
			for m := range s.All() {
				if m.Start < last {
					t.Fatalf("mappings overlap at %d", m.Start)
				}
				last = m.End
				count++
			}
			if count != s.root.len() {
				t.Fatalf("%d mappings, the tree says %d", count, s.root.len())
			}
		}
		for i, v := range versions { // the old ones are as they were
			for p := range uint64(256) {
				if got := (&Space{root: v.root}).Find(p); (got == nil) != (v.pages[p] == nil) || got != nil && got.Inode != v.pages[p].Inode {
					t.Fatalf("version %d changed at %d", i, p)
				}
			}
		}
	}
}

// A file that is cut while it is read ends the reading with an error.
func TestFileThatShrinksIsAnError(t *testing.T) {
	b := newBuilder(false, simple())
	for i := range 5000 {
		b.sample(1, 1, uint64(i))
	}
	path := filepath.Join(t.TempDir(), "perf.data")
	if err := os.WriteFile(path, b.bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	f := open(t, path)
	r := f.Reader()
	n := 0
	for {
		batch, err := r.Next()
		if err != nil {
			if !errors.Is(err, object.ErrFileShrank) || n < batchSize || n >= 5000 {
				t.Errorf("after %d samples: %v", n, err)
			}
			break
		}
		n += len(batch.Samples)
		if err := os.Truncate(path, 40000); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Next(); !errors.Is(err, object.ErrFileShrank) {
		t.Errorf("once more: %v", err)
	}
}

// stacks writes a recording with large stacks of zeros, which are holes in the
// file.
func stacks(t testing.TB, size int64) string {
	a := simple()
	a.SampleType |= SampleStackUser | SampleRegsUser
	a.SampleRegsUser, a.SampleStackUser = 0xff0fff, 16384
	b := newBuilder(false, a)
	b.comm(1, 1, 0, "large", 0)
	head := b.bytes()
	path := filepath.Join(t.TempDir(), "perf.data")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	at := int64(0)
	write := func(data []byte) {
		if _, err := file.WriteAt(data, at); err != nil {
			t.Fatal(err)
		}
		at += int64(len(data))
	}
	copy(head[48:], b.pack(uint64(0))) // no size: to the end
	head = head[:fileHeader+16+144+b.records.Len()]
	write(head)
	const record = 8 + 32 + 8 + 8*20 + 8 + 16384 + 8
	for i := uint64(0); at+record <= size; i++ {
		end := at + record
		time := i ^ 7 // runs of one to eight
		write(b.pack(uint32(recordSample), uint16(ModeUser), uint16(record), uint64(100), 0x1000+time, uint32(1), uint32(1), time, uint64(2), make([]byte, 160), uint64(16384)))
		at = end - 8
		write(b.pack(uint64(16384)))
	}
	return path
}

// Memory does not grow with the file, and reading a sample allocates nothing.
func TestMemoryIsBounded(t *testing.T) {
	size := int64(64 << 20)
	if proof.IsRequested() {
		size = 1 << 30
	}
	path := stacks(t, size)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f := open(t, path)
	r := f.Reader()
	n := 0
	var last uint64
	for {
		b, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		for i := range b.Samples {
			s := &b.Samples[i]
			if n++; len(s.Stack) != 16384 || s.Time < last || s.Comm != "large" || s.Problem != "" {
				t.Fatalf("sample %+v", s)
			}
			last = s.Time
		}
		b.Release()
	}
	runtime.ReadMemStats(&after)
	allocated := after.TotalAlloc - before.TotalAlloc
	t.Logf("%d samples, %d runs, %d bytes allocated in %d allocations", n, len(f.runs), allocated, after.Mallocs-before.Mallocs)
	if int64(n) < size/16700 || allocated > 1<<20+uint64(n)*200 {
		t.Errorf("%d samples, %d bytes allocated", n, allocated)
	}
	if m := after.Mallocs - before.Mallocs; m > 500+uint64(n)/50 {
		t.Errorf("%d allocations for %d samples", m, n)
	}
}

func BenchmarkRead(b *testing.B) {
	f := open(b, stacks(b, 256<<20))
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		r := f.Reader()
		for {
			batch, err := r.Next()
			if err != nil {
				break
			}
			n += len(batch.Samples)
			batch.Release()
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/sample")
	b.ReportMetric(float64(n)/float64(b.N), "samples/op")
}

// BenchmarkOpen is the pass over all records.
func BenchmarkOpen(b *testing.B) {
	path := stacks(b, 256<<20)
	for b.Loop() {
		f, err := Open(path)
		if err != nil {
			b.Fatal(err)
		}
		f.Close()
	}
}

// addressesOf are the addresses of a context.
func addressesOf(c Chain, context Context) (list []uint64) {
	for each, address := range c.All() {
		if each == context {
			list = append(list, address)
		}
	}
	return list
}

// count is the number of mappings.
func count(s *Space) (n int) {
	for range s.All() {
		n++
	}
	return n
}
