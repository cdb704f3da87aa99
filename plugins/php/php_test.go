// SPDX-License-Identifier: Apache-2.0

package php_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/plugins/php"
	"github.com/unwindd/unwindd/sdk"
)

var (
	update  = flag.Bool("update", false, "write the expected answers anew")
	damaged = flag.Int("damaged", 200, "damage each recording `N` times")
)

// trace returns the frames of an answer as PHP's own trace has them. Before those stands sleep,
// in which the process was ended.
func trace(s *sdk.ManagedStack) string {
	var b strings.Builder
	for _, r := range s.Runs {
		for _, f := range r.Frames {
			fmt.Fprintf(&b, "%s\t%s\t%d\n", f.Function, f.File, f.Line)
		}
	}
	return strings.TrimPrefix(b.String(), "sleep\t\t0\n")
}

// TestFrames compares the frames of recorded processes with PHP's own traces of them, and all that
// is answered with the expected text.
func TestFrames(t *testing.T) {
	names, list := all(t)
	for i, r := range list {
		t.Run(names[i], func(t *testing.T) {
			a := r.ask(t)
			for _, s := range a.frames.Stacks {
				if s.Problem != "" {
					t.Error(s.Problem)
				}
			}
			if diff := cmp.Diff(r.Trace, trace(&a.frames.Stacks[0])); diff != "" {
				t.Errorf("PHP's own trace, and the frames:\n%s", diff)
			}
			path, got := "testdata/"+names[i]+".txt", a.text()
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil { //nolint:gosec // no secret
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s, and the answers:\n%s", path, diff)
			}
		})
	}
}

// text writes answers for people.
func (a *answers) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "version %s\n", a.open.Version)
	if a.open.Fatal != "" {
		fmt.Fprintf(&b, "fatal %s\n", a.open.Fatal)
	}
	for _, p := range slices.Concat(a.open.Problems, a.threads.Problems) {
		fmt.Fprintf(&b, "problem %s\n", p)
	}
	for _, s := range a.frames.Stacks {
		if e := s.Exception; e != nil {
			fmt.Fprintf(&b, "exception %s: %s\n", e.Type, e.Text)
			writeFrames(&b, e.Frames)
		}
		for _, r := range s.Runs {
			fmt.Fprintf(&b, "native frames %d to %d\n", r.First, r.First+r.Count)
			writeFrames(&b, r.Frames)
		}
	}
	for _, t := range a.threads.Threads {
		fmt.Fprintf(&b, "fiber %d %s\n", t.Number, t.State)
		writeFrames(&b, t.Frames)
	}
	return b.String()
}

func writeFrames(b *strings.Builder, list []sdk.ManagedFrame) {
	for _, f := range list {
		kind := map[sdk.ManagedKind]string{sdk.Builtin: "builtin", sdk.Interpreted: "interpreted"}[f.Kind]
		fmt.Fprintf(b, "\t%s %s %s:%d\n", kind, f.Function, f.File, f.Line)
		writeVariables(b, f.Variables, "\t\t")
	}
}

func writeVariables(b *strings.Builder, list []sdk.ManagedVariable, indent string) {
	for _, v := range list {
		text := v.Text
		if v.Status == sdk.ValueUnset {
			text = "unset"
		}
		if v.IsParam {
			text += ", a parameter"
		}
		if v.More > 0 {
			text += fmt.Sprintf(", %d more", v.More)
		}
		fmt.Fprintf(b, "%s%s %s = %s\n", indent, v.Type, v.Name, text)
		writeVariables(b, v.Children, indent+"\t")
	}
}

// clone returns a recording whose memory may be changed.
func (r *recording) clone() *recording {
	c := *r
	c.Memory = r.Memory.Clone()
	return &c
}

// TestUnknownVersion expects that a version without a layout is said, and has no frames.
func TestUnknownVersion(t *testing.T) {
	r := read(t, "testdata/references-8.2.json.gz").clone()
	number := binary.LittleEndian.AppendUint32(nil, 20220829)
	for i := range r.Memory {
		for at := bytes.Index(r.Memory[i].Bytes, number); at >= 0; at = bytes.Index(r.Memory[i].Bytes, number) {
			binary.LittleEndian.PutUint32(r.Memory[i].Bytes[at:], 20990101)
		}
	}
	a := r.ask(t)
	if a.open.HasFrames || len(a.open.Problems) != 1 || !strings.Contains(a.open.Problems[0], "20990101, expected one of 7.4, 8.2, 8.3, 8.4, 8.5") {
		t.Errorf("of an unknown version: %+v", a.open)
	}
	if !strings.HasPrefix(a.open.Version, "8.2.") || len(a.frames.Stacks[0].Runs) != 0 {
		t.Errorf("of an unknown version: version %q, %d runs", a.open.Version, len(a.frames.Stacks[0].Runs))
	}
}

// TestThreads expects that a build with threads is said, and has no frames.
func TestThreads(t *testing.T) {
	r := read(t, "testdata/references-8.2.json.gz").clone()
	changed := 0
	for i := range r.Memory { // zend_module_entry: its size, the number, and flags
		head := append([]byte{168, 0, 0, 0}, binary.LittleEndian.AppendUint32(nil, 20220829)...)
		b := r.Memory[i].Bytes
		for at := 0; at+len(head)+1 < len(b); at += 8 {
			if bytes.Equal(b[at:at+len(head)], head) {
				b[at+len(head)+1] = 1
				changed++
			}
		}
	}
	a := r.ask(t)
	if changed == 0 || a.open.HasFrames || len(a.open.Problems) != 1 || !strings.Contains(a.open.Problems[0], "built with threads") {
		t.Errorf("of a build with threads: %d modules, %+v", changed, a.open)
	}
}

// TestForgotten expects that an unknown handle is said.
func TestForgotten(t *testing.T) {
	p, r := php.New(), read(t, "testdata/references-8.2.json.gz")
	if _, err := p.ManagedFrames(t.Context(), r, &sdk.ManagedFramesRequest{Runtime: 1}); !errors.Is(err, sdk.ErrObjectNotOpen) {
		t.Errorf("ManagedFrames: %v", err)
	}
	if _, err := p.ManagedThreads(t.Context(), r, &sdk.ManagedThreadsRequest{Runtime: 1}); !errors.Is(err, sdk.ErrObjectNotOpen) {
		t.Errorf("ManagedThreads: %v", err)
	}
}

// TestRegisters expects the line of the operation in the registers, where execute_ex itself was
// interrupted: it does not write every operation to memory.
func TestRegisters(t *testing.T) {
	r := read(t, "testdata/loop-8.2.json.gz")
	thread := r.Frames.Threads[0].Thread
	if _, has := r.Registers[thread]; !has {
		t.Fatal("the recording has no registers")
	}
	with := r.ask(t)
	r.Registers = nil
	without := r.ask(t)
	a, b := trace(&with.frames.Stacks[0]), trace(&without.frames.Stacks[0])
	if a == b {
		t.Errorf("the registers have the operation in memory:\n%s", a)
	}
}

// TestDamaged changes bytes of recordings: every answer is valid.
func TestDamaged(t *testing.T) {
	_, list := all(t)
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // no secret
	for range *damaged {
		for _, r := range list {
			c := r.clone()
			for range 1 + random.IntN(40) {
				b := c.Memory[random.IntN(len(c.Memory))].Bytes
				at := random.IntN(len(b)) &^ 7
				var value [8]byte
				switch random.IntN(3) {
				case 0:
					binary.LittleEndian.PutUint64(value[:], random.Uint64())
				case 1:
					p := c.Memory[random.IntN(len(c.Memory))]
					binary.LittleEndian.PutUint64(value[:], p.Address+uint64(random.IntN(len(p.Bytes))&^7)) //nolint:gosec // not negative
				default:
					copy(value[:], b[at:])
					value[random.IntN(8)] ^= 1 << random.IntN(8)
				}
				copy(b[at:], value[:])
			}
			c.ask(t)
		}
	}
}

// FuzzFrames changes memory of a recording at places and to values that the fuzzer chooses.
func FuzzFrames(f *testing.F) {
	_, list := all(f)
	f.Add(uint8(0), []byte{0, 0, 0, 16, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Add(uint8(3), []byte{0, 0, 1, 16, 255, 255, 255, 255, 255, 255, 255, 255, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, which uint8, changes []byte) {
		c := list[int(which)%len(list)].clone()
		for ; len(changes) >= 12; changes = changes[12:] {
			at := int(binary.BigEndian.Uint32(changes))
			b := c.Memory[at/4096%len(c.Memory)].Bytes
			copy(b[at%len(b):], changes[4:12])
		}
		c.ask(t)
	})
}

// TestCancelled expects that a call that was cancelled says so.
func TestCancelled(t *testing.T) {
	p, r := php.New(), read(t, "testdata/references-8.2.json.gz")
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := p.OpenRuntime(ctx, r, &r.Open); err != nil {
		t.Fatal(err)
	}
	cancel()
	request := r.Frames
	request.Runtime = r.Open.Runtime
	if _, err := p.ManagedFrames(ctx, r, &request); !errors.Is(err, context.Canceled) {
		t.Errorf("ManagedFrames: %v", err)
	}
}
