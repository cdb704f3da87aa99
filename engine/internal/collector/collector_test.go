// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

const (
	codeStart, codeEnd   = 0x1000, 0x3000
	stackStart, stackEnd = 0x8000, 0x8010
)

// waves is a target in which each wave has memory of its own.
type waves struct{ target.Target }

func (*waves) ReadMemory(_ locexpr.AddressSpace, address uint64, buf []byte) (int, error) {
	for i := range buf {
		if a := address + uint64(i); (a < codeStart || a >= codeEnd) && (a < stackStart || a >= stackEnd) {
			return i, target.ErrNoMemory
		}
	}
	return len(buf), nil
}

func (s *waves) ReadScoped(space locexpr.AddressSpace, th *trace.Thread, address uint64, buf []byte) (int, error) {
	if space == locexpr.DefaultSpace {
		return s.ReadMemory(space, address, buf)
	}
	for i := range buf {
		if address+uint64(i) >= 0x100 {
			return i, target.ErrNoMemory
		}
		buf[i] = byte(address) + byte(i) + byte(th.Handle)
	}
	return len(buf), nil
}

func TestRecordersKeepWhatIsReadOfWhom(t *testing.T) {
	s := &waves{}
	r := &scopedRecorder{&recorder{Target: s, instances: map[instance]*pages{}}, s}
	for _, c := range []struct {
		space   locexpr.AddressSpace
		thread  uint64
		address uint64
		n       int
	}{{0, 0, 0x1ffe, 4}, {0, 1, 0x2002, 2}, {6, 0, 0xf8, 16}, {6, 1, 0x10, 1}, {0, 0, stackStart + 12, 16}, {6, 0, 0xf8, 2}} {
		r.ReadScoped(c.space, &trace.Thread{Handle: c.thread}, c.address, make([]byte, c.n))
	}
	r.ReadMemory(0, 0x1000, make([]byte, 1))
	var got []string
	for _, k := range []instance{{}, {6, 0, 0}, {6, 1, 0}} {
		for address, data := range r.instances[k].runs() {
			got = append(got, fmt.Sprintf("%d %d %#x+%d", k.space, k.thread, address, len(data)))
		}
	}
	want := []string{"0 0 0x1000+1", "0 0 0x1ffe+6", "0 0 0x800c+4", "6 0 0xf8+8", "6 1 0x10+1"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestPagesKeepWhatTheyHaveAndNoMoreThanTheyMay(t *testing.T) {
	p := &pages{all: map[uint64]*page{}}
	if n := p.keep(0xffe, []byte{1, 2, 3, 4}, 9); n != 2 {
		t.Errorf("%d pages are new, expected 2", n)
	}
	if n := p.keep(0xfff, []byte{9, 9, 9, 5}, 9); n != 0 {
		t.Errorf("%d pages are new, expected none", n)
	}
	if n := p.keep(0x1fff, make([]byte, 2*pageSize), 1); n != 1 {
		t.Errorf("%d pages are new, expected the one that may be", n)
	}
	var got []string
	for address, data := range p.runs() {
		got = append(got, fmt.Sprintf("%#x+%d %x", address, len(data), data[:min(5, len(data))]))
	}
	if d := cmp.Diff([]string{"0xffe+5 0102030405", "0x1fff+4097 0000000000"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestPagesKeepPartsOfWords: what is there already stays, in whatever pieces the rest comes.
func TestPagesKeepPartsOfWords(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		p, want := &pages{all: map[uint64]*page{}}, map[uint64]byte{}
		for value := range byte(40) {
			address, data := r.Uint64N(2*pageSize), bytes.Repeat([]byte{value}, 1+r.IntN(300))
			p.keep(address, data, 9)
			for i := range uint64(len(data)) {
				if _, isThere := want[address+i]; !isThere {
					want[address+i] = value
				}
			}
		}
		for address, data := range p.runs() {
			for i, b := range data {
				if value, isThere := want[address+uint64(i)]; !isThere || value != b {
					t.Fatalf("%#x: %d, expected %d, %t", address+uint64(i), b, value, isThere)
				}
				delete(want, address+uint64(i))
			}
		}
		if len(want) > 0 {
			t.Fatalf("%d bytes are lost", len(want))
		}
	}
}

// unknown is a target of which all is read, and no module's file has any of it.
type unknown struct{ waves }

func (*unknown) ReadMemory(_ locexpr.AddressSpace, _ uint64, buf []byte) (int, error) {
	return len(buf), nil
}

func (*unknown) FromFile(address uint64) (*target.Module, uint64) { return nil, max(-address, 1) }

// BenchmarkRecorder reads pages again and again, as language runtimes do that begin each call with the pages of
// the last one.
func BenchmarkRecorder(b *testing.B) {
	const count = 1 << 8
	s := &unknown{}
	buf := make([]byte, pageSize)
	b.SetBytes(16 * count * pageSize)
	for b.Loop() {
		r := &recorder{Target: s, files: s, instances: map[instance]*pages{}, withheld: map[*target.Module]bool{}}
		for range 16 {
			for i := range uint64(count) {
				if _, err := r.ReadMemory(locexpr.DefaultSpace, i*pageSize, buf); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
}

// A stack whose memory begins or ends within what is read at once is kept whole.
func TestMemoryThatBeginsAtTheStackPointerIsKept(t *testing.T) {
	plugins, err := plugin.NewManager(plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}})
	if err != nil {
		t.Fatal(err)
	}
	defer plugins.Close()
	library := code.NewLibrary(plugins, 0)
	defer library.Close()
	state := &walk.Synthetic{Arch: "x86_64", Memory: []walk.Piece{{Address: 0x1018, Bytes: make([]byte, 0x240)}}}
	process := walk.NewShared(library, walk.Options{}).NewProcess(state, object.Finder{})
	defer process.Close()
	view, ok := process.View(t.Context(), state.Thread())
	if !ok {
		t.Fatal("no view")
	}
	if n := touch(t.Context(), view, locexpr.DefaultSpace, 0x1018-keptBeyond, 0x1018+0x240+keptBeyond); n != 0x240 {
		t.Errorf("%#x bytes were read, expected 0x240", n)
	}
}
