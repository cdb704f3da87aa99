// SPDX-License-Identifier: Apache-2.0

// Package managed damages the memory that a language runtime's plugin reads of a recorded process,
// and judges what becomes of the frames, for tests of plugins.
package managed

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/proof"
	"github.com/unwindd/unwindd/sdk"
)

// Process is a recorded process with a runtime: the calls about it, and what answers the plugin's
// requests.
type Process struct {
	Name    string
	New     func() sdk.Runtime
	Engine  sdk.RuntimeEngine
	Open    *sdk.OpenRuntimeRequest
	PCs     []uint64 // in code that the runtime made
	Frames  []*sdk.ManagedFramesRequest
	Threads bool // the threads that the runtime schedules are compared, too
}

// Frame is a frame of a language, as far as it is compared.
type Frame struct {
	Function, File string
	Line           uint32
}

// Stack has the frames of a thread, of an exception or of a place in code.
type Stack struct {
	Name    string
	Frames  []Frame
	Problem string // why frames are missing
}

// Outcome are the frames of a process.
type Outcome struct {
	Stacks   []Stack
	Problems []string // of the whole process
}

// The classes of what becomes of a damaged process.
const (
	Same     = "no difference"
	Marked   = "other frames, and a problem of their stack says so"
	Text     = "the text of a name is another"
	Line     = "a line is another"
	Missing  = "frames are missing, and nothing says so"
	Wrong    = "a frame that never was, and nothing says so"
	mostTime = 20 * time.Second // for one process

	mostShown = 3 // of one process and class
)

// order has the classes, the worst last.
var order = []string{Same, Marked, Text, Line, Missing, Wrong}

// Ask makes the calls about a process, whose answers have to be valid.
func (p *Process) Ask(tb testing.TB, e sdk.RuntimeEngine) (o Outcome) {
	tb.Helper()
	plugin, ctx := p.New(), tb.Context()
	check := func(call string, err error, validate func() error) {
		if err == nil {
			err = validate()
		}
		if err != nil {
			tb.Fatalf("%s: %s: %v", p.Name, call, err)
		}
	}
	d, err := plugin.Describe(ctx)
	check("Describe", err, func() error { return nil })
	open, err := plugin.OpenRuntime(ctx, e, p.Open)
	check("OpenRuntime", err, func() error { return open.Validate(d, p.Open) })
	o.Problems = open.Problems
	if len(open.Code) > 0 && len(p.PCs) > 0 {
		request := &sdk.CodeRulesRequest{Runtime: p.Open.Runtime, PCs: p.PCs}
		a, err := plugin.CodeRules(ctx, e, request)
		check("CodeRules", err, func() error { return nil })
		for i := range a.Code {
			o.add(fmt.Sprintf(code+"%d", i), a.Code[i].Frames, a.Code[i].Reason)
		}
	}
	for k, request := range p.Frames {
		if !open.HasFrames {
			break
		}
		own := *request
		own.Runtime = p.Open.Runtime
		a, err := plugin.ManagedFrames(ctx, e, &own)
		check("ManagedFrames", err, func() error { return a.Validate(d, &own) })
		for i := range a.Stacks {
			o.addStack(fmt.Sprintf(thread+"%d.%d", k, i), &a.Stacks[i])
		}
	}
	if open.HasThreads && p.Threads {
		request := &sdk.ManagedThreadsRequest{Runtime: p.Open.Runtime, Frames: true}
		a, err := plugin.ManagedThreads(ctx, e, request)
		check("ManagedThreads", err, func() error { return a.Validate(d, request) })
		o.Problems = append(slices.Clone(o.Problems), a.Problems...)
		for i := range a.Threads {
			th := &a.Threads[i]
			o.add(fmt.Sprintf(scheduled+"%d", th.Number), th.Frames, th.Problem)
		}
	}
	return o
}

func (o *Outcome) add(name string, frames []sdk.ManagedFrame, problem string) {
	s := Stack{Name: name, Problem: problem}
	for i := range frames {
		s.Frames = append(s.Frames, Frame{frames[i].Function, frames[i].File, frames[i].Line})
	}
	o.Stacks = append(o.Stacks, s)
}

func (o *Outcome) addStack(name string, s *sdk.ManagedStack) {
	var frames []sdk.ManagedFrame
	for i := range s.Runs {
		frames = append(frames, s.Runs[i].Frames...)
	}
	o.add(name, frames, s.Problem)
	if s.Exception != nil {
		o.add(name+"'s exception", s.Exception.Frames, s.Problem)
	}
}

// overlay is an engine of a process some of whose memory is damaged.
type overlay struct {
	sdk.RuntimeEngine
	words map[uint64]uint64
	order binary.ByteOrder
	reads map[uint64]uint64 // words that were read; nil: they are not noted
}

// ReadMemory reads the damaged memory.
func (o *overlay) ReadMemory(ctx context.Context, m sdk.MemoryRange, buf []byte) (int, error) {
	n, err := o.RuntimeEngine.ReadMemory(ctx, m, buf)
	if o.reads != nil {
		for at := (m.Address + 7) &^ 7; at+8 <= m.Address+uint64(max(n, 0)); at += 8 { //nolint:gosec // a length
			o.reads[at] = o.order.Uint64(buf[at-m.Address:])
		}
	}
	for address, value := range o.words {
		var b [8]byte
		o.order.PutUint64(b[:], value)
		for i := range b {
			if k := address + uint64(i) - m.Address; k < uint64(max(n, 0)) { //nolint:gosec // a length
				buf[k] = b[i]
			}
		}
	}
	return n, err
}

// Damager damages the words that a plugin reads of a process.
type Damager struct {
	process *Process
	random  *rand.Rand
	values  map[uint64]uint64
	words   []uint64 // that are not 0
	order   binary.ByteOrder
}

// NewDamager finds what a plugin reads of a process, and returns what it answers.
func NewDamager(tb testing.TB, p *Process, seed uint64) (*Damager, Outcome) {
	tb.Helper()
	d := &Damager{process: p, random: rand.New(rand.NewPCG(seed, 1)), values: map[uint64]uint64{}, order: binary.LittleEndian} //nolint:gosec // no secret
	if p.Open.ByteOrder == sdk.BigEndian {
		d.order = binary.BigEndian
	}
	whole := p.Ask(tb, &overlay{RuntimeEngine: p.Engine, order: d.order, reads: d.values})
	for _, address := range slices.Sorted(maps.Keys(d.values)) {
		if d.values[address] != 0 {
			d.words = append(d.words, address)
		}
	}
	return d, whole
}

// NewValue returns another value for a word with an old one, and how it was made. address chooses
// the address of a word, and value returns its value.
func NewValue(random *rand.Rand, old uint64, address func() uint64, value func(address uint64) uint64) (now uint64, kind string) {
	switch random.IntN(6) {
	case 0:
		return old ^ 1<<random.IntN(64), "a bit"
	case 1:
		return random.Uint64(), "random"
	case 2:
		return 0, "zero"
	case 3:
		return value(address()), "another word"
	case 4:
		return address(), "the address of a word"
	}
	return old + uint64(random.IntN(64)) - 32, "near" //nolint:gosec // it may wrap
}

// damage chooses words and their new values, and describes them.
func (d *Damager) damage() (map[uint64]uint64, string) {
	words, text := map[uint64]uint64{}, []string(nil)
	for range 1 + d.random.IntN(24) {
		address := d.words[d.random.IntN(len(d.words))]
		old := d.values[address]
		now, kind := NewValue(d.random, old, func() uint64 { return d.words[d.random.IntN(len(d.words))] }, func(a uint64) uint64 { return d.values[a] })
		words[address] = now
		text = append(text, fmt.Sprintf("%#x: %#x for %#x (%s)", address, now, old, kind))
	}
	return words, strings.Join(text, ", ")
}

// blame returns the damaged words without which the class would be another.
func (d *Damager) blame(tb testing.TB, words map[uint64]uint64, whole *Outcome, class string) (text string) {
	left := maps.Clone(words)
	for _, address := range slices.Sorted(maps.Keys(words)) {
		value := left[address]
		delete(left, address)
		if o := d.ask(tb, left); Judge(whole, &o) != class {
			left[address] = value
		}
	}
	for _, address := range slices.Sorted(maps.Keys(left)) {
		text += fmt.Sprintf(" %#x: %#x for %#x", address, left[address], d.values[address])
	}
	return text
}

func (d *Damager) ask(tb testing.TB, words map[uint64]uint64) Outcome {
	return d.process.Ask(tb, &overlay{RuntimeEngine: d.process.Engine, order: d.order, words: words})
}

// Times returns how often the processes of a runtime are damaged in all.
func Times() int {
	switch {
	case proof.IsRequested():
		return 20_000
	case oracle.AllRequested():
		return 2_000
	}
	return 200
}

// Test damages processes a number of times in all. Frames are missing or others then, and a problem
// of their stack says so; where the damage is in the text of a name, or in the number of a line,
// it cannot be known. Of the rest there may be little.
func Test(t *testing.T, processes []*Process, times int) {
	t.Helper()
	total := map[string]int{}
	for n, p := range processes {
		d, whole := NewDamager(t, p, uint64(n)) //nolint:gosec // an index
		if slices.IndexFunc(whole.Stacks, func(s Stack) bool { return len(s.Frames) > 0 }) < 0 {
			t.Fatalf("%s has no frames: %q", p.Name, whole.Problems)
		}
		counts, slowest := map[string]int{}, time.Duration(0)
		for range max(times/len(processes), 1) {
			words, text := d.damage()
			began := time.Now()
			o := d.ask(t, words)
			took := time.Since(began)
			if slowest = max(slowest, took); took > mostTime {
				t.Errorf("%s: %s: %v, expected at most %v", p.Name, text, took, mostTime)
			}
			class := Judge(&whole, &o)
			counts[class]++
			total[class]++
			if (class == Wrong || class == Missing) && counts[class] <= mostShown {
				t.Logf("%s: %s:%s\n%s", p.Name, class, d.blame(t, words, &whole, class), difference(&whole, &o))
			}
		}
		t.Logf("%s: %d words, %v at most: %v", p.Name, len(d.words), slowest, counts)
	}
	t.Logf("in all: %v", total)
	if n := total[Wrong]; n > few+times*mostWrong/1000 {
		t.Errorf("%d of %d damaged processes have wrong frames without a mark", n, times)
	}
	if n := total[Missing]; n > few+times*mostMissing/1000 {
		t.Errorf("%d of %d damaged processes lack frames without a mark", n, times)
	}
}

// Damage that no check finds, as where the address of what follows became 0: at most so many of 1,000
// processes, and a few more where there are few of them.
const (
	mostWrong, mostMissing = 1, 14
	few                    = 3
)

// difference describes the first stack that is another.
func difference(whole, damaged *Outcome) string {
	var b strings.Builder
	for i := range whole.Stacks {
		s := &whole.Stacks[i]
		found := damaged.stack(s.Name)
		if found != nil && slices.Equal(s.Frames, found.Frames) {
			continue
		}
		fmt.Fprintf(&b, "  %s\n    %+v\n    expected %+v\n", s.Name, found, s.Frames)
	}
	return b.String()
}

func (o *Outcome) stack(name string) *Stack {
	i := slices.IndexFunc(o.Stacks, func(s Stack) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &o.Stacks[i]
}

// renumbered gives threads that the runtime schedules the numbers that they have in another outcome, by
// their frames: a number is as good as another, where the damage is in it.
func (o *Outcome) renumbered(whole *Outcome) *Outcome {
	out := &Outcome{Stacks: slices.Clone(o.Stacks), Problems: o.Problems}
	for i := range whole.Stacks {
		s := &whole.Stacks[i]
		if found := out.stack(s.Name); !strings.HasPrefix(s.Name, scheduled) || found != nil && slices.Equal(found.Frames, s.Frames) {
			continue
		}
		for k := range out.Stacks {
			other := &out.Stacks[k]
			if is := whole.stack(other.Name); strings.HasPrefix(other.Name, scheduled) && slices.Equal(other.Frames, s.Frames) &&
				(is == nil || !slices.Equal(is.Frames, other.Frames)) {
				if found := out.stack(s.Name); found != nil {
					found.Name = other.Name
				}
				other.Name = s.Name
				break
			}
		}
	}
	return out
}

// scheduled begins the names of the stacks of threads that a runtime schedules.
const scheduled = "scheduled "

// The beginnings of the names of other stacks.
const (
	code   = "code "
	thread = "thread "
)

// Judge compares the frames of damaged memory with the frames of the whole.
func Judge(whole, damaged *Outcome) string {
	known := map[[2]string]bool{}
	for _, s := range whole.Stacks {
		for _, f := range s.Frames {
			known[[2]string{f.Function, f.File}] = true
		}
	}
	worst := Same
	note := func(class string) {
		if slices.Index(order, class) > slices.Index(order, worst) {
			worst = class
		}
	}
	isMarked := slices.ContainsFunc(damaged.Problems, func(p string) bool { return !slices.Contains(whole.Problems, p) })
	damaged = damaged.renumbered(whole)
	isThreadMarked := slices.ContainsFunc(damaged.Stacks, func(s Stack) bool {
		w := whole.stack(s.Name)
		return strings.HasPrefix(s.Name, thread) && s.Problem != "" && (w == nil || w.Problem != s.Problem)
	})
	for i := range whole.Stacks {
		s := &whole.Stacks[i]
		found := damaged.stack(s.Name)
		switch {
		case found != nil: // what code is of is shown in threads
			note(judge(s, found, known, isMarked || isThreadMarked && strings.HasPrefix(s.Name, code)))
		case len(s.Frames) == 0:
		case isMarked || slices.ContainsFunc(damaged.Stacks, func(d Stack) bool { return d.Problem != "" }):
			note(Marked)
		default:
			note(Missing)
		}
	}
	for i := range damaged.Stacks {
		if s := &damaged.Stacks[i]; len(s.Frames) > 0 && whole.stack(s.Name) == nil && !isMarked && s.Problem == "" {
			note(Wrong)
		}
	}
	return worst
}

// judge compares the frames of one stack.
func judge(whole, damaged *Stack, known map[[2]string]bool, isMarked bool) string {
	switch {
	case slices.Equal(whole.Frames, damaged.Frames):
		return Same
	case isMarked || damaged.Problem != "" && damaged.Problem != whole.Problem:
		return Marked
	}
	// The frames that are left are in their order.
	rest, class := whole.Frames, Same
	for _, f := range damaged.Frames {
		i := slices.Index(rest, f)
		if i < 0 {
			if i = slices.IndexFunc(rest, func(w Frame) bool { return w.Function == f.Function && w.File == f.File }); i >= 0 {
				class = Line
			}
		}
		if i < 0 && !known[[2]string{f.Function, f.File}] {
			if i = slices.IndexFunc(rest, func(w Frame) bool { return w.Line == f.Line }); i >= 0 {
				class = Text
			}
		}
		if i < 0 && !known[[2]string{f.Function, f.File}] { // the file's name and the line
			if i = slices.IndexFunc(rest, func(w Frame) bool { return w.Function == f.Function && f.File != "" }); i >= 0 {
				class = Text
			}
		}
		if i < 0 {
			return Wrong
		}
		rest = rest[i+1:]
	}
	if len(whole.Frames) != len(damaged.Frames) {
		return Missing
	}
	return class
}
