// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"

	"github.com/unwindd/unwindd/engine/internal/profilenames"
	"github.com/unwindd/unwindd/engine/object"
)

// profileNamer names one profile.
type profileNamer struct {
	s      *Symbolizer
	known  *profileFiles
	finder object.Finder
	done   NamedProfile

	unnamed map[unnamed]int // frames
}

// unnamed is why frames have no names.
type unnamed struct{ mapping, reason string }

// The bounds of an answer, in bytes beyond the profile: inlined calls may be many.
const (
	freeNames = 64 << 20
	maxGrowth = 8 // times the profile
)

// message names one message.
func (n *profileNamer) message(ctx context.Context, w io.Writer, data []byte, format profilenames.Format) error {
	p, err := profilenames.Read(data, format)
	if err != nil {
		return err
	}
	n.done.HadNames += p.Named
	files := n.open(ctx, p)
	places := n.places(p, files)
	if err := n.lookUp(ctx, places); err != nil {
		return err
	}
	a := p.Answer(freeNames + maxGrowth*len(data))
	n.answer(p, a, places)
	_, err = a.WriteTo(w)
	return err
}

// place is the place of a frame in a file.
type place struct {
	file    *profileFile // nil: the frame has no name
	address uint64
}

// open finds the files of all mappings, several at a time: servers are slow.
func (n *profileNamer) open(ctx context.Context, p *profilenames.Profile) []*profileFile {
	files := make([]*profileFile, len(p.Mappings))
	isUsed := make([]bool, len(p.Mappings))
	for i := range p.Frames {
		if f := &p.Frames[i]; f.Mapping >= 0 && f.Type != profilenames.OtherFrame {
			isUsed[f.Mapping] = true
		}
	}
	var list []int
	for i, is := range isUsed {
		if is {
			list = append(list, i)
		}
	}
	together(list, maxSearches, func(i int) {
		if ctx.Err() == nil {
			files[i] = n.known.find(n, &p.Mappings[i])
		}
	})
	return files
}

// maxSearches is how many files are looked for at a time.
const maxSearches = 8

// together calls f with the members of a list, so many at a time.
func together[T any](list []T, most int, f func(T)) {
	next := make(chan T, len(list))
	for _, x := range list {
		next <- x
	}
	close(next)
	var all sync.WaitGroup
	for range min(most, len(list)) {
		all.Go(func() {
			for x := range next {
				f(x)
			}
		})
	}
	all.Wait()
}

// places finds the places of the frames.
func (n *profileNamer) places(p *profilenames.Profile, files []*profileFile) []place {
	places := make([]place, len(p.Frames))
	for i := range p.Frames {
		f := &p.Frames[i]
		var m *profilenames.Mapping
		var kind, reason string
		switch {
		case f.Type == profilenames.OtherFrame:
			kind, reason = UnnamedRuntime, "a language runtime runs them, and their names are in no file"
		case f.Mapping < 0:
			kind, reason = UnnamedNoMapping, "they are in no mapping"
		default:
			m = &p.Mappings[f.Mapping]
			file := files[f.Mapping]
			if file == nil || file.problem != "" {
				kind, reason = kindOfProblem(m), problemOf(file)
				break
			}
			kind = UnnamedNoPlace
			places[i].address, reason = file.addressOf(m, f)
			if reason == "" {
				places[i].file = file
			}
		}
		if reason != "" {
			n.leave(m, kind, reason)
		}
	}
	return places
}

// kindOfProblem is the kind of reason for which a mapping has no file.
func kindOfProblem(m *profilenames.Mapping) string {
	if _, problem := identityOf(m); problem != "" {
		return UnnamedNoID
	}
	return UnnamedNoFile
}

func problemOf(f *profileFile) string {
	if f == nil {
		return "it was ended before their file was looked for"
	}
	return f.problem
}

// leave counts a frame without a name.
func (n *profileNamer) leave(m *profilenames.Mapping, kind, reason string) {
	mapping := ""
	if m != nil {
		mapping = mappingName(m)
	}
	n.unnamed[unnamed{mapping, reason}]++
	n.done.Unnamed++
	n.done.Reasons[kind]++
}

// mappingName names a mapping in messages.
func mappingName(m *profilenames.Mapping) string {
	id := cmp.Or(m.GNU, m.Go, m.Hash)
	switch {
	case m.File == "" && id == "":
		return "a mapping without a name"
	case id == "":
		return m.File
	case m.File == "":
		return "build ID " + id
	}
	return m.File + " (build ID " + id + ")"
}

// namesPart is how many addresses are looked up in one go.
const namesPart = 64

// lookUp finds the names at the places that are not known yet, on all cores.
func (n *profileNamer) lookUp(ctx context.Context, places []place) error {
	type part struct {
		file      *profileFile
		addresses []uint64
	}
	missing := map[*profileFile][]uint64{}
	for _, p := range places {
		if p.file == nil {
			continue
		}
		if _, ok := p.file.names.spans[p.address]; !ok {
			missing[p.file] = append(missing[p.file], p.address)
		}
	}
	var parts []part
	for file, list := range missing {
		slices.Sort(list)
		for chunk := range slices.Chunk(slices.Compact(list), namesPart) {
			parts = append(parts, part{file, chunk})
		}
	}
	workers := make(chan *nameWorker, runtime.GOMAXPROCS(0))
	for range cap(workers) {
		workers <- &nameWorker{}
	}
	together(parts, cap(workers), func(p part) {
		w := <-workers
		if ctx.Err() == nil {
			w.name(p.file, p.addresses)
		}
		workers <- w
	})
	for file := range missing {
		file.rest()
	}
	return ctx.Err()
}

// answer gives the frames their lines.
func (n *profileNamer) answer(p *profilenames.Profile, a *profilenames.Answer, places []place) {
	numbers := map[*profileFile][]uint64{} // of functions, by file; 0: not numbered yet
	var lines []profilenames.Line
	for i, place := range places {
		if place.file == nil {
			continue
		}
		m := &p.Mappings[p.Frames[i].Mapping]
		names := &place.file.names
		known, ok := names.spans[place.address]
		if !ok || known.count == 0 {
			n.leave(m, UnnamedNoFunction, cmp.Or(place.file.failure(), "the file has no function at their addresses"))
			continue
		}
		if numbers[place.file] == nil {
			numbers[place.file] = make([]uint64, len(names.functions))
		}
		of := numbers[place.file]
		lines, ok = lines[:0], true
		for _, l := range names.lines[known.start : known.start+known.count] {
			if of[l.function] == 0 && ok {
				of[l.function], ok = a.Function(&names.functions[l.function])
			}
			lines = append(lines, profilenames.Line{
				Function: of[l.function], Line: int64(l.line), Column: int64(l.column), HasFile: names.functions[l.function].File != "",
			})
		}
		if !ok || !a.SetLines(i, lines) {
			n.leave(m, UnnamedNoRoom, "the answer would be too large: send the profile in parts")
			continue
		}
		n.done.Named++
	}
}

// maxReasons bounds the list of problems.
const maxReasons = 64

// count makes the sentences about frames without names.
func (n *profileNamer) count() {
	type counted struct {
		unnamed
		frames int
	}
	var list []counted
	for u, frames := range n.unnamed {
		list = append(list, counted{u, frames})
	}
	slices.SortFunc(list, func(a, b counted) int {
		return cmp.Or(cmp.Compare(b.frames, a.frames), cmp.Compare(a.mapping, b.mapping), cmp.Compare(a.reason, b.reason))
	})
	rest := 0
	for i, c := range list {
		if i >= maxReasons {
			rest += c.frames
			continue
		}
		what := frameCount(c.frames)
		if c.mapping != "" {
			what += " of " + c.mapping
		}
		n.done.Problems = append(n.done.Problems, fmt.Sprintf("%.400s: %.800s", what, c.reason))
	}
	if rest > 0 {
		n.done.Problems = append(n.done.Problems, fmt.Sprintf("%s of %d other mappings and reasons", frameCount(rest), len(list)-maxReasons))
	}
}

func frameCount(n int) string {
	if n == 1 {
		return "1 frame"
	}
	return fmt.Sprintf("%d frames", n)
}
