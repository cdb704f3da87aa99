// SPDX-License-Identifier: Apache-2.0

package v8_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/damage/managed"
	"github.com/unwindd/unwindd/plugins/v8"
	"github.com/unwindd/unwindd/sdk"
)

// recording has the calls about a process, and its memory and registers, as far as they were read.
type recording struct {
	Open   sdk.OpenRuntimeRequest
	Names  []string // of Open's symbols, when they were recorded
	Frames sdk.ManagedFramesRequest
	PCs    []uint64
	managed.Memory
	Registers map[uint64]sdk.Registers // by thread
	Sites     string                   // the frames that V8 wrote down, a line of JSON each
}

func read(t testing.TB, path string) *recording {
	t.Helper()
	r := &recording{}
	managed.Unpack(t, path, r)
	places := r.Open.Symbols
	r.Open.Symbols = nil
	for _, name := range v8.Description().Symbols {
		var place sdk.SymbolPlace // unknown, where it was not recorded
		if at := slices.Index(r.Names, name); at >= 0 {
			place = places[at]
		}
		r.Open.Symbols = append(r.Open.Symbols, place)
	}
	return r
}

// all returns the recordings.
func all(t testing.TB) []string {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.json.gz")
	if err != nil || len(paths) < 8 {
		t.Fatalf("%d recordings: %v", len(paths), err)
	}
	return paths
}

// The engine of a recording.

func (r *recording) ReadRegisters(_ context.Context, thread uint64, _ []uint32) (sdk.Registers, error) {
	return r.Registers[thread], nil
}

func (r *recording) ReadSection(context.Context, uint64, string) ([]byte, error) {
	return nil, errors.New("sections are not recorded")
}

func (r *recording) FindFunctions(context.Context, []uint64) ([]sdk.FunctionPlace, error) {
	return nil, errors.New("functions are not recorded")
}

// ask makes the calls of a recording, and checks the answers as an engine does.
func (r *recording) ask(t testing.TB) (*sdk.OpenRuntimeAnswer, *sdk.CodeRulesAnswer, *sdk.ManagedFramesAnswer) {
	t.Helper()
	p, about := v8.New(), v8.Description()
	open, err := p.OpenRuntime(t.Context(), r, &r.Open)
	if err != nil {
		t.Fatal(err)
	}
	if err := open.Validate(about, &r.Open); err != nil {
		t.Fatal(err)
	}
	if !open.HasFrames {
		return open, nil, nil
	}
	rules, err := p.CodeRules(t.Context(), r, &sdk.CodeRulesRequest{Runtime: r.Open.Runtime, PCs: r.PCs})
	if err != nil {
		t.Fatal(err)
	}
	frames, err := p.ManagedFrames(t.Context(), r, &r.Frames)
	if err != nil {
		t.Fatal(err)
	}
	if err := frames.Validate(about, &r.Frames); err != nil {
		t.Fatal(err)
	}
	return open, rules, frames
}

// lines writes the frames of a stack as the programs do.
func lines(t testing.TB, s *sdk.ManagedStack) string {
	t.Helper()
	var list []sdk.ManagedFrame
	for _, r := range s.Runs {
		list = append(list, r.Frames...)
	}
	return text(t, list)
}

// text writes frames as the programs do.
func text(t testing.TB, list []sdk.ManagedFrame) string {
	t.Helper()
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	for _, f := range list {
		if f.Function == "die" {
			continue
		}
		if err := e.Encode([]any{f.Function, f.File, f.Line, f.Column}); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// TestFrames compares the frames of recorded processes with those that V8 wrote down.
func TestFrames(t *testing.T) {
	for _, path := range all(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			r := read(t, path)
			open, rules, frames := r.ask(t)
			if frames == nil {
				t.Fatal(open.Problems)
			}
			if len(open.Problems) > 0 || len(open.Code) == 0 {
				t.Errorf("code %v, problems %q", open.Code, open.Problems)
			}
			if len(frames.Stacks) != 1 || frames.Stacks[0].Problem != "" {
				t.Fatalf("%d stacks: %q", len(frames.Stacks), frames.Stacks[0].Problem)
			}
			_, want, _ := strings.Cut(r.Sites, "\n") // die itself
			if isFatal(path) {
				want = fatal(t, frames.Stacks[0].Exception)
			} else if e := frames.Stacks[0].Exception; e != nil {
				t.Errorf("the exception %+v", e)
			}
			if got := lines(t, &frames.Stacks[0]); got != want {
				t.Errorf("frames:\n%swant:\n%s", got, want)
			}
			known := 0
			for i := range rules.Code {
				if rules.Code[i].Start != 0 {
					known++
				}
			}
			if known == 0 {
				t.Errorf("of %d places in code none has a row", len(r.PCs))
			}
		})
	}
}

// isFatal reports whether the process of a recording ended because of an exception.
func isFatal(path string) bool { return strings.HasSuffix(path, "-fatal.json.gz") }

// fatal verifies the exception of the program fatal, and returns its frames, which are the
// thread's.
func fatal(t testing.TB, e *sdk.ManagedException) string {
	t.Helper()
	if e == nil {
		t.Fatal("no exception")
	}
	if e.Type != "TypeError" || e.Text != "Cannot read properties of undefined (reading 'member')" {
		t.Errorf("the exception is %s: %s", e.Type, e.Text)
	}
	const own = `["thrower","/example/v8/fatal.js",2,40]
["caller","/example/v8/fatal.js",3,34]
["later","/example/v8/fatal.js",5,33]
["processImmediate","node:internal/timers",`
	got := text(t, e.Frames)
	if !strings.HasPrefix(got, own) || strings.Count(got, "\n") != 4 {
		t.Errorf("the exception's frames:\n%swant:\n%s", got, own)
	}
	return got
}

// TestUnknownVersion expects that a version that is not known is said, and has no frames.
func TestUnknownVersion(t *testing.T) {
	r := read(t, all(t)[0])
	address := r.Open.Symbols[1].Address // the minor version
	for i := range r.Memory {
		if p := &r.Memory[i]; address >= p.Address && address < p.End() {
			p.Bytes[address-p.Address] = 99
		}
	}
	open, _, _ := r.ask(t)
	if open.HasFrames || len(open.Problems) != 1 || !strings.Contains(open.Problems[0], "only 10.2, 11.3, 12.4, 13.6 are") {
		t.Errorf("%+v", open)
	}
}

// TestNoNumbers expects that a V8 without numbers is recognised, and has no frames; one that is not
// in the process is nothing.
func TestNoNumbers(t *testing.T) {
	for _, c := range []struct {
		name         string
		symbol       string
		section      uint64 // its address
		isRecognised bool
	}{
		{"symbol", "_ZN2v82V810GetVersionEv", 0, true},
		{"section", "", 0x2000, true},
		{"elsewhere", "", 0x9000, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := read(t, all(t)[0])
			for i := range r.Open.Symbols {
				r.Open.Symbols[i].IsKnown = v8.Description().Symbols[i] == c.symbol
			}
			r.Open.Segments = []sdk.RuntimeSegment{{Address: 0x1000, Size: 0x2000, Start: 0x7000}}
			r.Open.Sections = []sdk.SectionInfo{{}, {Name: "gc_info_section", Address: c.section}}
			open, _, _ := r.ask(t)
			if open.HasFrames || c.isRecognised != (len(open.Problems) == 1) || c.isRecognised && !strings.Contains(open.Problems[0], "neither its version") {
				t.Errorf("%+v", open)
			}
		})
	}
}

// TestForgotten expects that an unknown handle is said.
func TestForgotten(t *testing.T) {
	p, r := v8.New(), read(t, all(t)[0])
	if _, err := p.ManagedFrames(t.Context(), r, &sdk.ManagedFramesRequest{Runtime: 1}); !errors.Is(err, sdk.ErrObjectNotOpen) {
		t.Errorf("ManagedFrames: %v", err)
	}
	if _, err := p.CodeRules(t.Context(), r, &sdk.CodeRulesRequest{Runtime: 1}); !errors.Is(err, sdk.ErrObjectNotOpen) {
		t.Errorf("CodeRules: %v", err)
	}
}

// damage changes bytes of a recording, most of them of words that lead somewhere.
func (r *recording) damage(random *rand.Rand) {
	for range 1 + random.IntN(8) {
		p := &r.Memory[random.IntN(len(r.Memory))]
		if len(p.Bytes) < 16 {
			continue
		}
		at := random.IntN(len(p.Bytes)/8-1) * 8
		switch random.IntN(3) {
		case 0:
			p.Bytes[at+random.IntN(8)] ^= 1 << random.IntN(8)
		case 1:
			other := &r.Memory[random.IntN(len(r.Memory))]
			if len(other.Bytes) >= 8 {
				copy(p.Bytes[at:at+8], other.Bytes)
			}
		case 2:
			binary.LittleEndian.PutUint64(p.Bytes[at:], random.Uint64()>>random.IntN(64))
		}
	}
}

// clone returns a recording whose memory may be changed.
func (r *recording) clone() *recording {
	c := *r
	c.Memory = r.Memory.Clone()
	return &c
}

// TestDamage expects an answer that an engine takes for any memory, and counts frames that are not
// among V8's: their values may be damaged where nothing verifies them, as the text of a name.
func TestDamage(t *testing.T) {
	const rounds = 40
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // not a secret
	changed, wrong := 0, 0
	for _, path := range all(t) {
		whole := read(t, path)
		sites := whole.Sites
		if isFatal(path) {
			_, _, frames := whole.ask(t)
			sites = lines(t, &frames.Stacks[0])
		}
		for range rounds {
			r := whole.clone()
			r.damage(random)
			_, _, frames := r.ask(t)
			if frames == nil {
				continue
			}
			got := lines(t, &frames.Stacks[0])
			if !strings.HasSuffix(sites, got) {
				changed++
				if frames.Stacks[0].Problem == "" {
					wrong++
				}
			}
		}
	}
	t.Logf("of %d damaged processes %d have other frames, %d of them without a problem", rounds*len(all(t)), changed, wrong)
}

func FuzzFrames(f *testing.F) {
	whole := read(f, all(f)[0])
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := whole.clone()
		r.damage(rand.New(rand.NewPCG(seed, 0))) //nolint:gosec // not a secret
		r.ask(t)
	})
}
