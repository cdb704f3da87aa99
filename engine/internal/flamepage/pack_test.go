// SPDX-License-Identifier: Apache-2.0

package flamepage

import (
	"bufio"
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// unpacked reads the data of a page as its script does: a line for each sample, with its event,
// time, thread, weights, and functions from the outermost on.
func unpacked(t *testing.T, p *Page) (lines []string) {
	t.Helper()
	var text bytes.Buffer
	if err := writeData(&text, p); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(flate.NewReader(base64.NewDecoder(base64.StdEncoding, &text)))
	number := func() uint64 {
		n, err := binary.ReadUvarint(in)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	var h packedHeader
	header := make([]byte, number())
	if _, err := io.ReadFull(in, header); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(header, &h); err != nil {
		t.Fatal(err)
	}
	paths, open := []string{""}, []string{""}
	levels := []int{0}
	for i := range h.Calls {
		levels = append(levels, levels[i]+1-int(number()))
	}
	for _, level := range levels[1:] {
		key := number()
		open = append(open[:level], fmt.Sprintf("%s;%s%v", open[level-1], h.Names[key/2], key%2 == 1))
		paths = append(paths, open[level])
	}
	column := func(n int, isThere bool, change func(uint64) uint64) []uint64 {
		list := make([]uint64, n)
		for i := range list {
			if isThere {
				list[i] = change(number())
			}
		}
		return list
	}
	same := func(n uint64) uint64 { return n }
	for _, e := range h.Events {
		call, time := int64(0), uint64(0)
		stacks := column(e.Stacks, true, func(n uint64) uint64 { call += int64(n>>1) ^ -int64(n&1); return uint64(call) })
		times := column(e.Samples, e.IsTimed, func(n uint64) uint64 { time += n; return time })
		threads := column(e.Samples, len(h.Threads) > 1, same)
		calls := column(e.Samples, true, func(n uint64) uint64 { return stacks[n] })
		weights, bases := column(e.Samples, true, same), column(e.Samples, e.Base != "", same)
		for i := range calls {
			lines = append(lines, fmt.Sprintf("%s %d %d %d %d %s", e.Name, times[i], threads[i], weights[i], bases[i], paths[calls[i]]))
		}
	}
	if _, err := in.ReadByte(); err != io.EOF {
		t.Errorf("behind the data: %v", err)
	}
	return lines
}

// packedLines are the lines of unpacked by the page itself.
func packedLines(p *Page) (lines []string) {
	paths := make([]string, len(p.Calls))
	for i, c := range p.Calls {
		if c.Caller >= 0 {
			paths[i] = paths[c.Caller]
		}
		paths[i] += fmt.Sprintf(";%s%v", p.Functions[c.Function].Name, c.IsGuess)
	}
	for i := range p.Events {
		e := &p.Events[i]
		samples := slices.Clone(e.Samples)
		first := uint64(0)
		if e.IsTimed {
			slices.SortStableFunc(samples, func(a, b Sample) int { return int(a.Time) - int(b.Time) })
			first = samples[0].Time / 1000
		}
		for _, s := range samples {
			path, time, base := "", uint64(0), uint64(0)
			if s.Call >= 0 {
				path = paths[s.Call]
			}
			if e.IsTimed {
				time = s.Time/1000 - first
			}
			if e.Base != "" {
				base = s.Base
			}
			lines = append(lines, fmt.Sprintf("%s %d %d %d %d %s", e.Name, time, s.Thread, s.Weight, base, path))
		}
	}
	return lines
}

// TestWhatIsPackedIsWhatIsRead: data of all forms are the same when they were packed.
func TestWhatIsPackedIsWhatIsRead(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for round := range 50 {
		p := &Page{Threads: make([]Thread, 2+random.IntN(300))}
		for i := range 1 + random.IntN(400) {
			p.Functions = append(p.Functions, Function{Name: fmt.Sprintf("f%d<", i)})
		}
		known := map[Call]bool{}
		for range random.IntN(2000) {
			c := Call{Caller: int32(random.IntN(len(p.Calls)+1)) - 1, Function: int32(random.IntN(len(p.Functions))), IsGuess: random.IntN(9) == 0}
			if !known[c] {
				known[c] = true
				p.Calls = append(p.Calls, c)
			}
		}
		for k := range 1 + random.IntN(3) {
			e := Event{Name: fmt.Sprintf("event%d", k), IsTimed: random.IntN(2) == 0}
			if random.IntN(3) == 0 {
				e.Base = "base"
			}
			for range 1 + random.IntN(3000) {
				e.Samples = append(e.Samples, Sample{
					Call: int32(random.IntN(len(p.Calls)+1)) - 1, Thread: int32(random.IntN(len(p.Threads))), Time: uint64(random.IntN(1e9)),
					Weight: uint64(random.IntN(1000)), Base: uint64(random.IntN(math.MaxInt)),
				})
			}
			p.Events = append(p.Events, e)
		}
		got, want := unpacked(t, p), packedLines(p)
		if !slices.Equal(got, want) {
			t.Fatalf("round %d: %d lines, expected %d:\n%.2000s\nexpected\n%.2000s", round, len(got), len(want), strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}
