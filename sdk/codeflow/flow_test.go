// SPDX-License-Identifier: Apache-2.0

package codeflow

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// A toy is code of instructions of two bytes, what they do and an operand. The state is what
// three registers hold: a digit, or nothing known. The first one is the frame, which is 0 on entry
// and must be 0 at a return.
type toy struct {
	*Flow[toyState]
	code  []byte
	steps int
	// each is called for the instructions that are executed.
	each func(address uint64, s *toyState)
}

type toyState [3]int8

const noDigit = -1

const (
	toySet     = 's' // the register of the high digit holds the low one
	toyCopy    = 'c' // the register of the high digit holds what that of the low one holds
	toyJump    = 'j' // to the operand
	toyBranch  = 'b' // to the operand, or on
	toyCall    = 'l'
	toyReturn  = 'r'
	toyNothing = 'n'
)

func newToy(code []byte, isByBlock bool) *toy {
	f := &toy{code: code, steps: 1 << 20}
	if isByBlock {
		f.Flow = ByBlock(f, &f.steps, 1<<10)
	} else {
		f.Flow = ByInstruction(f, &f.steps)
	}
	return f
}

// edges decodes the instruction at an address.
func (f *toy) edges(address uint64) (w Edges) {
	if address+2 > uint64(len(f.code)) {
		return Edges{Next: address}
	}
	w.Next, w.Target = address+2, uint64(f.code[address+1]&^1)
	switch f.code[address] {
	case toyJump:
		w.Jumps = true
	case toyBranch:
		w.Jumps, w.Continues = true, true
	case toySet, toyCopy, toyNothing:
		w.Continues = true
	case toyReturn, toyCall:
	default:
		w.Next = address
	}
	return w
}

// execute executes an instruction that is no jump.
func (f *toy) execute(address uint64, s *toyState) {
	if address+2 > uint64(len(f.code)) {
		return
	}
	high, low := f.code[address+1]>>4%3, f.code[address+1]&15
	switch f.code[address] {
	case toySet:
		s[high] = int8(low) //nolint:gosec // below 16
	case toyCopy:
		s[high] = s[low%3]
	}
}

func (f *toy) Copy(dst, src *toyState) { *dst = *src }

func (f *toy) Step(address uint64, s *toyState) (next uint64, continues bool) {
	if f.each != nil {
		f.each(address, s)
	}
	w := f.edges(address)
	f.execute(address, s)
	switch {
	case w.Jumps && w.Continues:
		taken := *s
		f.Arrive(w.Target, &taken)
		f.Arrive(w.Next, s)
		return w.Next, false
	case w.Jumps:
		f.Arrive(w.Target, s)
		return w.Next, false
	case w.Next > address && f.code[address] == toyCall:
		f.Defer(w.Next, address, s)
	case w.Next > address && f.code[address] == toyReturn && f.Trial() != nil:
		f.Trial().IsConfirmed = f.Trial().IsConfirmed || s[0] == 0
		f.Trial().IsContradicted = f.Trial().IsContradicted || s[0] > 0
	}
	return w.Next, w.Continues
}

func (f *toy) Join(p *Point[toyState], s *toyState, isFirst bool) bool {
	if isFirst {
		p.State = *s
		return true
	}
	both := p.State
	for i := range both {
		if s[i] != both[i] {
			both[i] = noDigit
		}
	}
	if t := f.Trial(); t != nil {
		if p.State[0] != s[0] {
			t.IsContradicted = true
			return false
		}
		if f.IsKnown(p) {
			t.IsConfirmed = true
			return false
		}
	}
	hasChanged := both != p.State
	p.State = both
	return hasChanged
}

func (f *toy) follow(address uint64) error {
	return f.Follow(&Arrival[toyState]{Address: address, Source: None, State: toyState{0, noDigit, noDigit}})
}

// states are those before each instruction.
func (f *toy) states(t *testing.T) map[uint64]toyState {
	t.Helper()
	states := make(map[uint64]toyState)
	if f.maxBlocks == 0 {
		for p := range f.All() {
			states[p.Address] = p.State
		}
		return states
	}
	each := func(address uint64, s *toyState) {
		if old, ok := states[address]; ok && old != *s {
			t.Errorf("%#x is in two blocks, with %v and %v", address, old, *s)
		}
		states[address] = *s
	}
	points := len(f.Found())
	for p := range f.All() {
		if !p.IsReached {
			continue
		}
		if err := f.Replay(p, each); err != nil {
			t.Fatal(err)
		}
	}
	if len(f.Found()) != points || len(f.queue) != 0 {
		t.Error("replaying follows code")
	}
	return states
}

// naive finds the states by going over all code until nothing changes.
func naive(f *toy) map[uint64]toyState {
	states := map[uint64]toyState{0: {0, noDigit, noDigit}}
	for changed := true; changed; {
		changed = false
		arrive := func(address uint64, s toyState) {
			both, ok := states[address]
			for i := range both {
				if ok && both[i] != s[i] {
					s[i] = noDigit
				}
			}
			changed = changed || !ok || s != both
			states[address] = s
		}
		for _, address := range slices.Sorted(maps.Keys(states)) {
			s, w := states[address], f.edges(address)
			f.execute(address, &s)
			if w.Jumps {
				arrive(w.Target, s)
			}
			if w.Continues {
				arrive(w.Next, s)
			}
		}
	}
	return states
}

// checkFlows holds what flows find against what naive finds.
func checkFlows(t *testing.T, code []byte) {
	t.Helper()
	want := naive(newToy(code, false))
	for _, how := range []struct {
		name                   string
		isByBlock, findsBlocks bool
	}{{"by instruction", false, false}, {"by block", true, false}, {"by block, found beforehand", true, true}} {
		f := newToy(code, how.isByBlock)
		if how.findsBlocks {
			if err := f.FindBlocks(0, f.edges); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.follow(0); err != nil {
			t.Fatal(how.name, err)
		}
		if got := f.states(t); !maps.Equal(got, want) {
			t.Errorf("%s, %q: %v, expected %v", how.name, code, got, want)
		}
	}
}

// toyCode writes code: an operand is two hex digits.
func toyCode(text string) (code []byte) {
	for _, in := range strings.Fields(text) {
		var operand byte
		if len(in) > 1 {
			if _, err := fmt.Sscanf(in[1:], "%02x", &operand); err != nil {
				panic(err)
			}
		}
		code = append(code, in[0], operand)
	}
	return code
}

func TestStatesAreThoseOfAllPaths(t *testing.T) {
	for _, text := range []string{
		"s13 r",
		"s13 b08 s14 n r",           // a branch over an instruction
		"s13 s25 c12 b04 r",         // a loop that leads into code that was followed
		"b0a s13 j06 s14 c21 r",     // two edges meet
		"j04 x s11 b02 s11 b00 r",   // into what is no instruction, and back to the beginning
		"s11 n n n n b0e j06 r",     // divides a block twice
		"s11 b08 s12 b02 c12 b04 r", // loops in each other
		"j00", "", "n",
	} {
		checkFlows(t, toyCode(text))
	}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // for cases
	for range 5000 {
		code := make([]byte, 2*random.IntN(40))
		for i := range code {
			if code[i] = byte(random.IntN(256)); i%2 == 0 { //nolint:gosec // a byte
				code[i] = "ssccjbbbrn"[random.IntN(10)]
			} else if code[i-1] == toyJump || code[i-1] == toyBranch {
				code[i] = byte(random.IntN(len(code) + 2)) //nolint:gosec // below 82
			}
		}
		checkFlows(t, code)
	}
}

func FuzzFlow(f *testing.F) {
	f.Add(toyCode("s13 b08 s14 n r"))
	f.Add(toyCode("l n b00 r l s01 r"))
	f.Fuzz(func(t *testing.T, code []byte) {
		code = code[:min(len(code), 1024)] // no more branches than a flow follows
		checkFlows(t, code)
		toy := newToy(code, false)
		if toy.follow(0) != nil || toy.Resume(toy) != nil {
			t.Skip("too many steps")
		}
	})
}

// Decide believes what leads to a return or to known code, as far as it can.
func (f *toy) Decide(a *Arrival[toyState], isLast bool) Decision {
	calls := 0
	if isLast {
		calls = 3
	}
	switch t := f.Try(a, calls, math.MaxInt); {
	case t.IsContradicted:
		return Refuted
	case t.IsConfirmed:
		return Believed
	case isLast && a.State[1] == 9:
		return Undecided
	case isLast && a.State[1] == 8:
		return Refuted
	case isLast:
		return Believed
	}
	return Undecided
}

// Rank is what the third register holds.
func (f *toy) Rank(a *Arrival[toyState]) int { return int(a.State[2]) }

func TestCallsAreJudgedByWhatLiesBehindThem(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []uint64 // what is found, in this order
		deferred   int
	}{
		{"a return with the right frame", "l r", []uint64{0, 2}, 0},
		{"a return with another frame", "s05 l r", []uint64{0, 2}, 0},
		{"known code with the same frame", "b06 l j00 r", []uint64{0, 2, 6, 4}, 0},
		{"known code with another frame", "b08 s05 l j08 r", []uint64{0, 2, 4, 8}, 0},
		{"nothing", "l x", []uint64{0, 2}, 0},
		{"nothing, and no call returns", "s18 l x", []uint64{0, 2}, 0},
		{"nothing, and it is left open", "s19 l x", []uint64{0, 2}, 1},
		{"a return behind a second call", "s18 l l r", []uint64{0, 2, 4, 6}, 0},
		{"another frame behind a second call", "s18 l s05 l r", []uint64{0, 2}, 0},
		{"a return behind five calls", "s18 l l l l l r", []uint64{0, 2}, 0},
		{"evidence comes before the rest", "b06 l x l r", []uint64{0, 2, 6, 8, 4}, 0},
		{"a lower rank comes first", "b0a s22 l j06 x s21 l j0e x", []uint64{0, 2, 4, 10, 12, 14, 6}, 0},
	} {
		f := newToy(toyCode(c.text), false)
		if err := f.follow(0); err != nil {
			t.Fatal(err)
		}
		if err := f.Resume(f); err != nil {
			t.Fatal(err)
		}
		var got []uint64
		for _, p := range f.Found() {
			got = append(got, p.Address)
		}
		if !slices.Equal(got, c.want) || len(f.Deferred()) != c.deferred {
			t.Errorf("%s: found %v, %d deferred, expected %v, %d", c.name, got, len(f.Deferred()), c.want, c.deferred)
		}
	}
}

func TestATrialIsForgotten(t *testing.T) {
	f := newToy(toyCode("b06 l x n n b02 n l n r"), false)
	if err := f.follow(0); err != nil {
		t.Fatal(err)
	}
	points, deferred := len(f.Found()), len(f.Deferred())
	want := f.states(t)
	for range 2 {
		trial := f.Try(&Arrival[toyState]{Address: 16, State: toyState{0, noDigit, noDigit}}, 1, math.MaxInt)
		if !trial.IsConfirmed || trial.IsContradicted || f.Trial() != nil {
			t.Errorf("%+v", trial)
		}
	}
	if len(f.Found()) != points || len(f.Deferred()) != deferred || f.Point(16) != nil || !maps.Equal(f.states(t), want) {
		t.Errorf("a trial left %v", f.states(t))
	}
	// What was forgotten is used again.
	if n := testing.AllocsPerRun(100, func() { f.Try(&Arrival[toyState]{Address: 16}, 0, math.MaxInt) }); n > 2 { // of the arrival and the trial
		t.Errorf("%v allocations", n)
	}
}

// A trial that has used up its own steps is cut, and says so; the flow goes on.
func TestATrialWithinSteps(t *testing.T) {
	f := newToy(toyCode("b06 l x n n b02 n l n r"), false)
	if err := f.follow(0); err != nil {
		t.Fatal(err)
	}
	points, steps := len(f.Found()), f.steps
	a := Arrival[toyState]{Address: 16, State: toyState{0, noDigit, noDigit}}
	for within, want := range []Trial{{IsCut: true}, {IsCut: true}, {IsConfirmed: true}} {
		trial := f.Try(&a, 1, within)
		if trial.IsCut != want.IsCut || trial.IsConfirmed != want.IsConfirmed || trial.IsContradicted {
			t.Errorf("within %d steps: %+v, expected %+v", within, trial, want)
		}
		if steps -= f.steps; steps > within || len(f.Found()) != points {
			t.Errorf("within %d steps: %d steps, %d points, expected %d", within, steps, len(f.Found()), points)
		}
		steps = f.steps
	}
	// What lies behind a call takes its steps of the same ones.
	behind := newToy(toyCode("n l n l n n r"), false)
	start := Arrival[toyState]{State: toyState{0, noDigit, noDigit}}
	for within := range 8 {
		trial := behind.Try(&start, 2, within)
		if trial.IsCut != (within < 7) || trial.IsConfirmed != (within == 7) {
			t.Errorf("within %d steps, behind calls: %+v", within, trial)
		}
	}
	if err := f.Resume(f); err != nil {
		t.Errorf("the flow ended: %v", err)
	}
}

func TestLimits(t *testing.T) {
	loop := toyCode("n n b00 r")
	for _, isByBlock := range []bool{false, true} {
		f := newToy(loop, isByBlock)
		f.steps = 2
		if err := f.follow(0); !errors.Is(err, ErrSteps) || !errors.Is(f.Err(), ErrSteps) {
			t.Errorf("by block %v: %v", isByBlock, err)
		}
		if err := f.follow(6); !errors.Is(err, ErrSteps) {
			t.Errorf("by block %v: it goes on: %v", isByBlock, err)
		}
	}
	f := newToy(loop, true)
	f.steps = 3
	if err := f.FindBlocks(0, f.edges); !errors.Is(err, ErrSteps) {
		t.Error(err)
	}
	const want = "a function with more than 1 branches"
	for _, find := range []bool{false, true} {
		f := newToy(loop, true)
		f.maxBlocks = 1
		var err error
		if find {
			err = f.FindBlocks(0, f.edges)
		} else {
			err = f.follow(0)
		}
		if err == nil || err.Error() != want {
			t.Errorf("%v, expected %s", err, want)
		}
	}
	f = newToy(toyCode("l l r"), false)
	if err := f.follow(0); err != nil {
		t.Fatal(err)
	}
	f.steps = 0
	if err := f.Resume(f); !errors.Is(err, ErrSteps) {
		t.Error(err)
	}
}

func TestAPluginTakesStepsAndGivesUp(t *testing.T) {
	why, later := errors.New("too much"), errors.New("much too much")
	for _, isByBlock := range []bool{false, true} {
		follow := func(steps int, each func(f *toy, address uint64)) (reached []uint64, err error) {
			f := newToy(toyCode("n n b06 n r"), isByBlock)
			f.steps = steps
			f.each = func(address uint64, _ *toyState) {
				reached = append(reached, address)
				each(f, address)
			}
			err = f.follow(0)
			if f.Spend(0) != (err == nil) || !errors.Is(f.Err(), err) {
				t.Errorf("by block %v: %v, expected %v", isByBlock, f.Err(), err)
			}
			if again := f.Follow(&Arrival[toyState]{Address: 8}); err != nil && !errors.Is(again, err) {
				t.Errorf("by block %v: it goes on: %v after %v", isByBlock, again, err)
			}
			return reached, err
		}
		reached, err := follow(100, func(f *toy, address uint64) {
			if address == 2 {
				f.Fail(why)
				f.Fail(later)
			}
		})
		if !errors.Is(err, why) || !slices.Equal(reached, []uint64{0, 2}) {
			t.Errorf("by block %v: %v at %v, expected %v at the second", isByBlock, err, reached, why)
		}
		// The first two instructions take 4 steps each, one of them the flow.
		reached, err = follow(7, func(f *toy, address uint64) {
			if ok := f.Spend(3); ok != (address == 0) {
				t.Errorf("by block %v, at %d: %v", isByBlock, address, ok)
			}
		})
		if !errors.Is(err, ErrSteps) || !slices.Equal(reached, []uint64{0, 2}) {
			t.Errorf("by block %v: %v at %v, expected %v at the second", isByBlock, err, reached, ErrSteps)
		}
		if reached, err = follow(20, func(f *toy, _ uint64) { f.Spend(3) }); err != nil || len(reached) != 5 {
			t.Errorf("by block %v: %v at %v, expected 5 instructions", isByBlock, err, reached)
		}
	}
}

func TestPointsThatReachAPoint(t *testing.T) {
	f := newToy(toyCode("b08 n j0c n n b06 r"), false)
	if err := f.follow(0); err != nil {
		t.Fatal(err)
	}
	if got := f.Reaching(nil, f.edges); got != nil {
		t.Errorf("%v lead to nothing", got)
	}
	want := map[uint64]bool{0: true, 6: true, 8: true, 10: true}
	if got := f.Reaching([]*Point[toyState]{f.Point(10)}, f.edges); !maps.Equal(got, want) {
		t.Errorf("%v, expected %v", got, want)
	}
}

func TestTable(t *testing.T) {
	var table Table[int]
	if table.Get(5) != 0 || len(maps.Collect(table.All())) != 0 {
		t.Error("a table is not empty")
	}
	want := map[uint64]int{0: 1, 1: 2, pageSize: 3, pageSize - 1: 4, ^uint64(0): 5, 1 << 40: 6}
	for address, v := range want {
		*table.Put(address) = v
	}
	previous, first := uint64(0), true
	for address, v := range table.All() {
		if v != want[address] || !first && address <= previous {
			t.Errorf("%#x has %d, expected %d", address, v, want[address])
		}
		previous, first = address, false
	}
	for address, v := range want {
		if got := table.Get(address); got != v || table.Get(address^2) != want[address^2] {
			t.Errorf("%#x has %d, expected %d", address, got, v)
		}
	}
	for range table.All() {
		break
	}
}

func TestThePointAtTheLowestAddressComesFirst(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // for cases
	var h heap[int]
	var want []uint64
	for range 1000 {
		if len(h) > 0 && random.IntN(3) == 0 {
			slices.Sort(want)
			if p := h.pop(); p.Address != want[0] || p.isWaiting {
				t.Fatalf("%d comes first, expected %d", p.Address, want[0])
			}
			want = want[1:]
			continue
		}
		address := random.Uint64N(100)
		h.push(&Point[int]{Address: address})
		want = append(want, address)
	}
}

// BenchmarkFlow follows a function of 120 instructions with loops.
func BenchmarkFlow(b *testing.B) {
	code := toyCode("s11 " + strings.Repeat("c12 n c21 n ", 28) + "b40 b20 b10 b00 r")
	for _, isByBlock := range []bool{false, true} {
		b.Run(fmt.Sprintf("block=%v", isByBlock), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f := newToy(code, isByBlock)
				if err := f.follow(0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
