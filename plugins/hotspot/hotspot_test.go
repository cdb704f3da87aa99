// SPDX-License-Identifier: Apache-2.0

package hotspot

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/gob"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/sdk"
)

var update = flag.Bool("update", false, "write the expected answers anew")

// recording is what the plugin was asked about a core, and the memory that it read
// (testdata/make.sh).
type recording struct {
	Open      sdk.OpenRuntimeRequest
	PCs       []uint64
	Stacks    []sdk.NativeStack
	Registers map[uint64]sdk.Registers // by thread
	Memory    map[uint64][]byte        // by address
}

func readRecording(t testing.TB, name string) *recording {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	r := &recording{}
	if err := gob.NewDecoder(z).Decode(r); err != nil {
		t.Fatal(err)
	}
	return r
}

// recorded is the engine of a recording. It may change what is read.
type recorded struct {
	sdk.RuntimeEngine
	*recording
	change func(address uint64, buf []byte)
	reads  int
}

var errMissing = errors.New("it was not recorded")

func (r *recorded) ReadMemory(_ context.Context, m sdk.MemoryRange, buf []byte) (int, error) {
	r.reads++
	n := copy(buf, r.Memory[m.Address])
	if n == 0 { // a part of a page
		page := m.Address &^ 4095
		if data := r.Memory[page]; uint64(len(data)) > m.Address-page {
			n = copy(buf, data[m.Address-page:])
		}
	}
	if r.change != nil {
		r.change(m.Address, buf[:n])
	}
	if n < len(buf) {
		return n, errMissing
	}
	return n, nil
}

func (r *recorded) ReadRegisters(_ context.Context, thread uint64, _ []uint32) (sdk.Registers, error) {
	list, ok := r.Registers[thread]
	if !ok {
		return list, errMissing
	}
	return list, nil
}

// answers makes all calls, and describes the answers.
func answers(t testing.TB, e *recorded) string {
	t.Helper()
	p, ctx := New(), t.Context()
	open, err := p.OpenRuntime(ctx, e, &e.Open)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "version %s\n", open.Version)
	for _, problem := range open.Problems {
		fmt.Fprintf(&b, "problem %s\n", problem)
	}
	for _, l := range open.Locks {
		fmt.Fprintf(&b, "lock %#x %s, held %v by %d, %d wait\n", l.Address, l.Name, l.HasHolder, l.Holder, l.Waiters)
	}
	if err := open.Validate(Description(), &e.Open); err != nil {
		t.Errorf("OpenRuntime: %v", err)
	}
	if len(open.Code) == 0 {
		return b.String()
	}
	rules, err := p.CodeRules(ctx, e, &sdk.CodeRulesRequest{Runtime: e.Open.Runtime, PCs: e.PCs})
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range rules.Code {
		describeCode(&b, e.PCs[i], &c)
	}
	frames, err := p.ManagedFrames(ctx, e, &sdk.ManagedFramesRequest{Runtime: e.Open.Runtime, Threads: e.Stacks})
	if err != nil {
		t.Fatal(err)
	}
	if err := frames.Validate(Description(), &sdk.ManagedFramesRequest{Threads: e.Stacks}); err != nil {
		t.Errorf("ManagedFrames: %v", err)
	}
	for _, s := range frames.Stacks {
		fmt.Fprintf(&b, "thread %q %s %s\n", s.Name, s.State, s.Problem)
		for _, l := range s.Locks {
			fmt.Fprintf(&b, "  lock %#x %s, waited for %v\n", l.Address, l.Name, l.IsWaited)
		}
		for _, run := range s.Runs {
			describeFrames(&b, fmt.Sprintf("  %d+%d", run.First, run.Count), run.Frames)
		}
	}
	threads, err := p.ManagedThreads(ctx, e, &sdk.ManagedThreadsRequest{Runtime: e.Open.Runtime, Frames: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range threads.Problems {
		fmt.Fprintf(&b, "problem %s\n", problem)
	}
	slices.SortFunc(threads.Threads, func(a, b sdk.ManagedThread) int { return int(a.Number) - int(b.Number) }) //nolint:gosec // small
	for _, th := range threads.Threads {
		fmt.Fprintf(&b, "virtual thread %d %q %s %s %s\n", th.Number, th.Name, th.State, th.Carrier, th.Problem)
		describeFrames(&b, "  ", th.Frames)
	}
	return b.String()
}

func describeCode(b *strings.Builder, pc uint64, c *sdk.CodeRules) {
	fmt.Fprintf(b, "code %#x: %s", pc, c.Reason)
	for _, row := range c.Rows {
		if pc >= row.Start && pc < row.End {
			fmt.Fprintf(b, "CFA r%d+%d", row.CFA.Register, row.CFA.Offset)
		}
	}
	b.WriteString("\n")
	describeFrames(b, "  ", c.Frames)
}

func describeFrames(b *strings.Builder, prefix string, frames []sdk.ManagedFrame) {
	for _, f := range frames {
		fmt.Fprintf(b, "%s %d %s %s:%d\n", prefix, f.Kind, f.Function, f.File, f.Line)
	}
}

// recordings are the files of recordings.
func recordings(t testing.TB) []string {
	t.Helper()
	list, err := filepath.Glob("testdata/*.gz")
	if err != nil || len(list) < 2 {
		t.Fatalf("recordings %v: %v", list, err)
	}
	return list
}

func TestRecordings(t *testing.T) {
	for _, name := range recordings(t) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			got := answers(t, &recorded{recording: readRecording(t, name)})
			file := strings.TrimSuffix(name, ".gz") + ".txt"
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestRequests says how many parts of memory the calls read: none twice in a call.
func TestRequests(t *testing.T) {
	e := &recorded{recording: readRecording(t, recordings(t)[0])}
	answers(t, e)
	if most := 4 * len(e.Memory); e.reads > most {
		t.Errorf("%d parts were read, of %d that there are: expected at most %d", e.reads, len(e.Memory), most)
	}
}

// TestDamage changes memory at random: what the plugin answers is valid, and it ends.
func TestDamage(t *testing.T) {
	for _, name := range recordings(t) {
		base := readRecording(t, name)
		for seed := range uint64(60) {
			random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // not a secret
			e := &recorded{recording: base, change: func(_ uint64, buf []byte) {
				for range len(buf) * int(seed) >> 14 {
					buf[random.IntN(len(buf))] = byte(random.Uint32()) //nolint:gosec // a byte
				}
				if len(buf) > 8 && random.IntN(8) == 0 {
					buf[random.IntN(len(buf))] ^= 1 << random.IntN(8)
				}
			}}
			begin := time.Now()
			answers(t, e)
			if took := time.Since(begin); took > 20*time.Second {
				t.Errorf("%s, seed %d: %v", name, seed, took)
			}
		}
	}
}

func TestUnknownHandle(t *testing.T) {
	p := New()
	_, rules := p.CodeRules(t.Context(), nil, &sdk.CodeRulesRequest{Runtime: 7})
	_, frames := p.ManagedFrames(t.Context(), nil, &sdk.ManagedFramesRequest{Runtime: 7})
	_, threads := p.ManagedThreads(t.Context(), nil, &sdk.ManagedThreadsRequest{Runtime: 7})
	for _, err := range []error{rules, frames, threads} {
		if !errors.Is(err, sdk.ErrObjectNotOpen) {
			t.Error(err)
		}
	}
}

// unsigned5 writes a number as HotSpot compresses it.
func unsigned5(n uint32, excluded byte) (b []byte) {
	last := 192 - uint32(excluded)
	for range 4 {
		if n < last {
			break
		}
		n -= last
		b = append(b, byte(last+n%64)+excluded)
		n /= 64
	}
	return append(b, byte(n)+excluded)
}

func TestNumbers(t *testing.T) {
	for _, excluded := range []byte{0, 1} {
		for _, n := range []uint32{0, 1, 63, 64, 190, 191, 192, 193, 255, 256, 12480, 1 << 16, 1 << 24, 1<<31 - 1} {
			s := &numberStream{data: unsigned5(n, excluded), excluded: excluded}
			if got := s.int(); got != n || s.failed || s.next != len(s.data) {
				t.Errorf("%d with %d excluded: %d, %v", n, excluded, got, s.failed)
			}
		}
	}
	s := &numberStream{data: []byte{0}, excluded: 1}
	if s.int(); !s.failed {
		t.Error("the excluded byte is no number")
	}
}

func TestRowsOfFrames(t *testing.T) {
	const start = 0x1000
	code := []byte{
		0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff, // mov [rsp-0x14000], eax
		0x55,                   // push rbp
		0x48, 0x83, 0xec, 0x20, // sub rsp, 0x20
		0x90, 0x90,
		0x48, 0x83, 0xc4, 0x20, // add rsp, 0x20
		0x5d,                                     // pop rbp
		0x49, 0x3b, 0xa7, 0x00, 0x01, 0x00, 0x00, // cmp rsp, [r15+0x100]
		0x0f, 0x87, 0x00, 0x00, 0x00, 0x00, // ja
		0xc3, // ret
		0x90,
	}
	b := &blob{code: codeRange{start, start + uint64(len(code))}, frameSize: 0x30, complete: start + 12, isNmethod: true}
	var got []string
	for _, row := range frameRows(b, code) {
		got = append(got, fmt.Sprintf("%d-%d r%d+%d", row.Start-start, row.End-start, row.CFA.Register, row.CFA.Offset))
	}
	want := []string{"0-8 r7+8", "8-12 r7+16", "12-18 r7+48", "18-19 r7+16", "19-33 r7+8", "33-34 r7+48"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestNames(t *testing.T) {
	for text, want := range map[string]string{"main": "main", "gr\xc3\xbc\xc3\x9fe": "grüße", "\xed\xa0\xbd\xed\xb8\x80": "😀", "a\xff": "", "a\nb": "", "\xc0\x80": ""} {
		if got, err := javaText([]byte(text), 0); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

// FuzzLines reads tables of line numbers.
func FuzzLines(f *testing.F) {
	f.Add([]byte{0x0f, 0xff, 0xc0, 0x01, 0xc1, 0x02, 0}, int64(4))
	f.Fuzz(func(t *testing.T, data []byte, bci int64) {
		const address = 0x10000
		e := &recorded{recording: &recording{Memory: map[uint64][]byte{}}}
		for at := 0; at < len(data); at += 4096 {
			e.Memory[address+uint64(at)] = data[at:] //nolint:gosec // an index
		}
		for _, v := range versions {
			m := &machine{layout: &layout{}, request: &sdk.OpenRuntimeRequest{AddressBits: 64}, version: &v}
			r := m.newReader(t.Context(), e)
			r.lineAt(&method{code: address, hasLines: true, constEnd: address + uint64(len(data))}, bci)
		}
	})
}

// FuzzFields reads the fields of a class of Java 21 and later, and scopes of compiled code.
func FuzzFields(f *testing.F) {
	f.Add([]byte{9, 0, 0, 0, 2, 1, 3, 4, 13, 2, 1, 0, 0}, uint64(4))
	f.Fuzz(func(t *testing.T, data []byte, offset uint64) {
		const address = 0x10000
		e := &recorded{recording: &recording{Memory: map[uint64][]byte{address: append(make([]byte, 64), data...)}}}
		m := &machine{layout: &layout{}, request: &sdk.OpenRuntimeRequest{AddressBits: 64}, version: &versions[len(versions)-1]}
		m.fieldInfo = field{offset: 8, size: 8, isKnown: true}
		e.Memory[address][8], e.Memory[address][9], e.Memory[address][10] = 64, 0, 1
		r := m.newReader(t.Context(), e)
		_ = r.readFieldStream(address, address, map[string]objectField{})
		_, _ = r.scopesAt(debugInfo{scopes: address, scopesEnd: address + 64 + uint64(len(data)), metadata: address, metadataEnd: address + 64}, offset)
	})
}
