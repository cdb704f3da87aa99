// SPDX-License-Identifier: Apache-2.0

package bundled_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/internal/bundled"
	"github.com/unwindd/unwindd/internal/damage/managed"
	"github.com/unwindd/unwindd/internal/proof"
	"github.com/unwindd/unwindd/locexpr"
)

// managedFrame is a frame of a language in a stack, as far as it is compared.
type managedFrame struct {
	function, file string
	line           int
}

// outcome are the frames of a target's threads, and how many problems runtimes had.
type outcome struct {
	stacks   [][]managedFrame
	problems []string
}

// frames returns how many frames there are.
func (o *outcome) frames() (n int) {
	for _, s := range o.stacks {
		n += len(s)
	}
	return n
}

// outcomeOf returns the frames of languages in a target.
func outcomeOf(ctx context.Context, t *engine.Target) (o outcome) {
	for s := range t.Stacks(ctx) {
		var list []managedFrame
		for i := range s.Frames {
			if f := &s.Frames[i]; f.Managed() != nil && len(f.Symbols) > 0 {
				list = append(list, managedFrame{f.Symbols[0].Function, f.Symbols[0].File, f.Symbols[0].Line})
			}
		}
		o.stacks = append(o.stacks, list)
	}
	o.problems = t.Problems()
	return o
}

// overlay is a target some of whose memory is damaged.
type overlay struct {
	target.Target
	bytes map[uint64]byte
	reads map[uint64]int // the pages that were read; nil: they are not noted
}

// overlayPage is the size of pages whose reads are noted.
const overlayPage = 4096

// ReadMemory reads the damaged memory.
func (o *overlay) ReadMemory(space locexpr.AddressSpace, address uint64, buf []byte) (int, error) {
	n, err := o.Target.ReadMemory(space, address, buf)
	if space != locexpr.DefaultSpace {
		return n, err
	}
	if o.reads != nil && n > 0 {
		for page := address / overlayPage; page <= (address+uint64(n)-1)/overlayPage; page++ { //nolint:gosec // a length
			o.reads[page*overlayPage]++
		}
	}
	if len(o.bytes) < n {
		for at, b := range o.bytes {
			if at-address < uint64(n) { //nolint:gosec // a length
				buf[at-address] = b
			}
		}
		return n, err
	}
	for i := range n {
		if b, is := o.bytes[address+uint64(i)]; is { //nolint:gosec // an index
			buf[i] = b
		}
	}
	return n, err
}

// Close leaves the target to its owner.
func (o *overlay) Close() error { return nil }

// damager damages words of the memory that runtimes read, away from stacks.
type damager struct {
	random *rand.Rand
	state  target.Target
	pages  []uint64
	words  []uint64 // of all pages
}

// newDamager finds what the plugins read of a target.
func newDamager(tb testing.TB, e *engine.Engine, state target.Target, seed uint64) *damager {
	tb.Helper()
	noted := &overlay{Target: state, reads: map[uint64]int{}}
	t := e.Attach(noted)
	for _, th := range t.Threads() {
		t.Process().Walk(tb.Context(), th)
	}
	native := noted.reads
	noted.reads = map[uint64]int{}
	outcomeOf(tb.Context(), t)
	_ = t.Close()
	d := &damager{random: rand.New(rand.NewPCG(seed, 1)), state: state} //nolint:gosec // it has to be the same each time
	for page := range noted.reads {
		if native[page] == 0 {
			d.pages = append(d.pages, page)
		}
	}
	slices.Sort(d.pages)
	for _, page := range d.pages {
		for at := uint64(0); at < overlayPage; at += 8 {
			if word, ok := d.word(page + at); ok && word != 0 {
				d.words = append(d.words, page+at)
			}
		}
	}
	return d
}

func (d *damager) word(address uint64) (uint64, bool) {
	var b [8]byte
	n, _ := d.state.ReadMemory(locexpr.DefaultSpace, address, b[:])
	return binary.LittleEndian.Uint64(b[:]), n == 8
}

// damage returns damaged bytes, and describes them.
func (d *damager) damage() (bytes map[uint64]byte, text string) {
	bytes = map[uint64]byte{}
	var words []string
	for range 1 + d.random.IntN(24) {
		address := d.words[d.random.IntN(len(d.words))]
		old, _ := d.word(address)
		now, kind := managed.NewValue(d.random, old, func() uint64 { return d.words[d.random.IntN(len(d.words))] }, func(a uint64) uint64 {
			value, _ := d.word(a)
			return value
		})
		for i := range 8 {
			bytes[address+uint64(i)] = byte(now >> (8 * i)) //nolint:gosec // an index
		}
		words = append(words, fmt.Sprintf("%#x: %#x for %#x (%s)", address, now, old, kind))
	}
	return bytes, strings.Join(words, ", ")
}

// The classes of what becomes of a damaged target.
const (
	damageNone    = "no difference"
	damageMarked  = "frames are missing, and a problem says so"
	damageText    = "the text of a name is another"
	damageLine    = "a line is another"
	damageMissing = "frames are missing, and nothing says so"
	damageWrong   = "a frame that never was"
)

// judge returns the class of a damaged target, by its frames and the frames of the whole one.
func judge(whole, damaged *outcome) string {
	known := map[[2]string]bool{}
	for _, s := range whole.stacks {
		for _, f := range s {
			known[[2]string{f.function, f.file}] = true
		}
	}
	worst := damageNone
	order := []string{damageNone, damageMarked, damageText, damageLine, damageMissing, damageWrong}
	note := func(class string) {
		if slices.Index(order, class) > slices.Index(order, worst) {
			worst = class
		}
	}
	isMarked := slices.ContainsFunc(damaged.problems, func(p string) bool { return !slices.Contains(whole.problems, p) })
	for i, s := range whole.stacks {
		note(judgeStack(s, damaged.stacks[i], known, isMarked))
	}
	return worst
}

// judgeStack compares the frames of one stack.
func judgeStack(whole, damaged []managedFrame, known map[[2]string]bool, isMarked bool) string {
	if slices.Equal(whole, damaged) {
		return damageNone
	}
	if len(whole) == len(damaged) {
		class := damageNone
		for i := range whole {
			a, b := whole[i], damaged[i]
			switch {
			case a == b:
			case a.function == b.function && a.file == b.file:
				class = damageLine
			case !known[[2]string{b.function, b.file}] && a.line == b.line:
				if class == damageNone {
					class = damageText
				}
			default:
				return damageWrong
			}
		}
		return class
	}
	// What is left is in its order.
	rest := whole
	isText, isLine := false, false
	for _, f := range damaged {
		i := slices.Index(rest, f)
		if i < 0 {
			i = slices.IndexFunc(rest, func(w managedFrame) bool { return w.function == f.function && w.file == f.file })
			isLine = isLine || i >= 0
		}
		if i < 0 && !known[[2]string{f.function, f.file}] {
			i = slices.IndexFunc(rest, func(w managedFrame) bool { return w.line == f.line })
			isText = isText || i >= 0
		}
		if i < 0 {
			return damageWrong
		}
		rest = rest[i+1:]
	}
	switch {
	case !isMarked:
		return damageMissing
	case isLine:
		return damageLine
	case isText:
		return damageText
	}
	return damageMarked
}

// damagedSnapshots are the snapshots of processes with a runtime, of all bundled plugins.
func damagedSnapshots(t *testing.T) (list []string) {
	t.Helper()
	for _, r := range bundled.Runtimes {
		found, err := filepath.Glob(filepath.Join("../../plugins", filepath.Base(pluginFolder(r.Name)), "testdata/*.snapshot"))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, found...)
	}
	return append(list, "../../examples/python-gpu/train.snapshot")
}

// pluginFolder returns the folder of a runtime's plugin.
func pluginFolder(name string) string {
	if name == "go" {
		return "goruntime"
	}
	return name
}

// mostDamagedTime bounds the time for one damaged target.
const mostDamagedTime = 20 * time.Second

// TestDamagedMemoryOfRuntimes damages the memory that plugins read of snapshots. Frames are missing then, and a
// problem tells it. Nobody can know that the text of a name, or the number of a line, was another.
func TestDamagedMemoryOfRuntimes(t *testing.T) {
	all := damagedSnapshots(t)
	times := 40
	if proof.IsRequested() {
		times = 20_000
	}
	for n, path := range all {
		t.Run(filepath.Base(filepath.Dir(filepath.Dir(path)))+"/"+filepath.Base(path), func(t *testing.T) {
			damageSnapshot(t, path, uint64(n), max(times/len(all), 1)) //nolint:gosec // an index
		})
	}
}

// damageSnapshot damages a snapshot a number of times.
func damageSnapshot(t *testing.T, path string, seed uint64, times int) {
	e := newEngine(t)
	opened, err := e.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	state := opened.Process().State()
	whole := outcomeOf(t.Context(), opened)
	if whole.frames() == 0 {
		t.Skipf("%s has no frames of a runtime: %q", path, whole.problems)
	}
	d := newDamager(t, e, state, seed)
	counts, slowest := map[string]int{}, time.Duration(0)
	for range times {
		bytes, text := d.damage()
		began := time.Now()
		target := e.Attach(&overlay{Target: state, bytes: bytes})
		damaged := outcomeOf(t.Context(), target)
		_ = target.Close()
		took := time.Since(began)
		slowest = max(slowest, took)
		class := judge(&whole, &damaged)
		counts[class]++
		if class == damageWrong && counts[class] <= 5 || class == damageMissing && counts[class] <= 3 || took > mostDamagedTime {
			t.Logf("%s: %s: %v\n%v, expected\n%v; %q", class, text, took, damaged.stacks, whole.stacks, damaged.problems)
		}
		if took > mostDamagedTime {
			t.Errorf("%v, expected at most %v", took, mostDamagedTime)
		}
	}
	t.Logf("%d words of %d pages, %d times, %v at most: %v", len(d.words), len(d.pages), times, slowest, counts)
	if bad := counts[damageWrong] + counts[damageMissing]; bad > 0 {
		t.Errorf("%d of %d damaged targets have wrong frames without a mark", bad, times)
	}
}

// newEngine returns an engine with all bundled plugins in this process.
func newEngine(tb testing.TB) *engine.Engine {
	tb.Helper()
	o := architectures()
	for _, r := range bundled.Runtimes {
		o.InProcessRuntimes = append(o.InProcessRuntimes, r.New())
	}
	return engineOf(tb, o)
}

// nativeEngine returns one without language runtimes.
func nativeEngine(tb testing.TB) *engine.Engine {
	tb.Helper()
	return engineOf(tb, architectures())
}

func architectures() (o engine.Options) {
	for _, a := range bundled.Architectures {
		o.InProcess = append(o.InProcess, a.New())
	}
	return o
}

func engineOf(tb testing.TB, o engine.Options) *engine.Engine {
	tb.Helper()
	e, err := engine.New(o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = e.Close() })
	return e
}

// The classes tell apart what they are about.
func TestDamageIsJudged(t *testing.T) {
	f := func(name string, line int) managedFrame { return managedFrame{name, "a.py", line} }
	whole := outcome{stacks: [][]managedFrame{{f("c", 3), f("b", 2), f("a", 1)}, {f("e", 5)}}}
	for want, stacks := range map[string][]managedFrame{
		damageNone: {f("c", 3), f("b", 2), f("a", 1)}, damageLine: {f("c", 4), f("b", 2), f("a", 1)}, damageText: {f("x", 3), f("b", 2), f("a", 1)},
		damageWrong: {f("e", 5), f("b", 2), f("a", 1)}, damageMissing: {f("c", 3), f("a", 1)},
	} {
		damaged := outcome{stacks: [][]managedFrame{stacks, whole.stacks[1]}}
		if got := judge(&whole, &damaged); got != want {
			t.Errorf("%v: %s, expected %s", stacks, got, want)
		}
	}
	marked := outcome{stacks: [][]managedFrame{{f("c", 3)}, nil}, problems: []string{"it ends"}}
	if got := judge(&whole, &marked); got != damageMarked {
		t.Errorf("%s, expected %s", got, damageMarked)
	}
	marked.stacks[0] = append(marked.stacks[0], f("a", 1), f("b", 2))
	if got := judge(&whole, &marked); got != damageWrong {
		t.Errorf("%s, expected %s", got, damageWrong)
	}
}
