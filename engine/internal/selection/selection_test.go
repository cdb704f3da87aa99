// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/trace"
)

func unnamed(f *trace.ProfileFrame) string { return fmt.Sprintf("[lib.so]+0x%x", f.PC) }

// made is a profile whose frames have the functions of a text: "a,b" is a frame with a inlined
// into b, and "" one without a name.
type made struct {
	trace.Profile
	index map[trace.ProfileStack]uint32
}

func newMade(frames ...string) *made {
	m := &made{index: map[trace.ProfileStack]uint32{}}
	m.Path, m.Stacks = "perf.data", make([]trace.ProfileStack, 1)
	m.Events = []trace.ProfileEvent{{Name: "cpu-clock", Unit: "nanoseconds"}, {Name: "waves", Unit: "count", OtherClock: true}}
	for i, text := range frames {
		f := trace.ProfileFrame{PC: uint64(0x10 + i), Module: -1, Dispatched: -1}
		for name := range strings.SplitSeq(text, ",") {
			if name != "" {
				f.Symbols = append(f.Symbols, trace.Symbol{Function: name})
			}
		}
		m.Frames = append(m.Frames, f)
	}
	return m
}

// stack is the stack of frames, outermost first.
func (m *made) stack(frames ...uint32) (stack uint32) {
	for _, frame := range frames {
		key := trace.ProfileStack{Caller: stack, Frame: frame}
		next, ok := m.index[key]
		if !ok {
			next = uint32(len(m.Stacks))
			m.index[key] = next
			m.Stacks = append(m.Stacks, key)
		}
		stack = next
	}
	return stack
}

func (m *made) thread(pid, tid int, comm string) uint32 {
	t := trace.ProfileThread{PID: pid, TID: tid, Comm: comm}
	if i := slices.Index(m.Threads, t); i >= 0 {
		return uint32(i)
	}
	m.Threads = append(m.Threads, t)
	return uint32(len(m.Threads) - 1)
}

// lines are the stacks of a profile's samples, outermost first, each with the time of its sample.
func lines(p *trace.Profile) (list []string) {
	for i := range p.Samples {
		s := &p.Samples[i]
		list = append(list, fmt.Sprintf("%d %s", s.Time, strings.Join(functionsOf(p, s.Stack), ";")))
	}
	return list
}

// functionsOf are the functions of a stack, outermost first.
func functionsOf(p *trace.Profile, stack uint32) (list []string) {
	n := functions{p, unnamed}
	for _, frame := range p.StackFrames(nil, stack) {
		for i := range n.count(frame) {
			list = append(list, n.name(frame, i).Function)
		}
	}
	slices.Reverse(list)
	return list
}

func selected(t *testing.T, p *trace.Profile, s trace.ProfileSelection) (*Result, error) {
	t.Helper()
	selector, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	return selector.Select(p, unnamed)
}

// office is a profile of two processes.
func office() *made {
	m := newMade("main", "min,sort", "read", "", "sort", "operator()(int)")
	main, boss := m.thread(10, 10, "boss"), m.thread(10, 11, "worker 1")
	other, kernel := m.thread(20, 21, "worker 2"), m.thread(-1, -1, "")
	for i, s := range []trace.ProfileSample{
		{Thread: main, Stack: m.stack(0, 1), CPU: 0, HasCPU: true},
		{Thread: main, Stack: m.stack(0, 2), CPU: 1, HasCPU: true},
		{Thread: boss, Stack: m.stack(0, 4, 4, 2), CPU: 3, HasCPU: true},
		{Thread: other, Stack: m.stack(0, 1, 3), CPU: 3, HasCPU: true},
		{Thread: other, Stack: m.stack(5)},
		{Thread: kernel},
		{Thread: kernel, Event: 1, Stack: m.stack(3)},
	} {
		s.Time, s.Weight = 100+10*uint64(i), 1
		m.Samples = append(m.Samples, s)
	}
	return m
}

func TestSelectionsOfSamples(t *testing.T) {
	const all = "100 110 120 130 140 150 160"
	for _, c := range []struct {
		selection trace.ProfileSelection
		want      string // times, or an error after "!"
	}{
		{trace.ProfileSelection{}, all},
		{trace.ProfileSelection{Processes: []string{"10"}}, "100 110 120"},
		{trace.ProfileSelection{Processes: []string{"boss"}}, "100 110 120"},
		{trace.ProfileSelection{Processes: []string{"worker 2"}}, "130 140"}, // its main thread was not sampled
		{trace.ProfileSelection{Processes: []string{"worker 1"}}, "!--process worker 1: none has this ID or name, expected one of: worker 2, boss"},
		{trace.ProfileSelection{Processes: []string{"10", "work"}}, "100 110 120 130 140"},
		{trace.ProfileSelection{Threads: []string{"11"}}, "120"},
		{trace.ProfileSelection{Threads: []string{"worker"}}, "120 130 140"},
		{trace.ProfileSelection{Threads: []string{"^w.*2$", "boss"}}, "100 110 130 140"},
		{trace.ProfileSelection{Threads: []string{"[worker"}}, "!--thread [worker: none has this ID or name, expected one of: worker 1, worker 2, boss"},
		{trace.ProfileSelection{CPUs: "0,2-3"}, "100 120 130"},
		{trace.ProfileSelection{CPUs: "7"}, "!--cpu 7: no sample is of it: their processors are from 0 to 3"},
		{trace.ProfileSelection{Time: "0.00000002,0.00000003"}, "120 130"},
		{trace.ProfileSelection{Time: "20ns,"}, "120 130 140 150"},
		{trace.ProfileSelection{Time: ",40%"}, "100 110 120"},
		{trace.ProfileSelection{Time: "50%,1"}, "130 140 150"},
		{trace.ProfileSelection{Time: "90%,95%"}, "!--time 90%,95%: no sample is of then: the recording lasts 5e-08 seconds"},
		{trace.ProfileSelection{Time: "1,"}, "!no sample is of then"},
		{trace.ProfileSelection{Focus: []string{"sort"}}, "100 120 130"},
		{trace.ProfileSelection{Focus: []string{"sort", "read"}}, "120"},
		{trace.ProfileSelection{Focus: []string{"min", "read"}}, "!no sample is in all of: --focus min, --focus read"},
		{trace.ProfileSelection{Focus: []string{"^min$"}}, "100 130"},
		{trace.ProfileSelection{Focus: []string{`lib\.so`}}, "130 160"},
		{trace.ProfileSelection{Focus: []string{"^srot$"}}, "!--focus ^srot$: no function matches; near are: sort"},
		{trace.ProfileSelection{Ignore: []string{"sort", "oper"}}, "110 150 160"},
		{trace.ProfileSelection{Callers: "sort", Ignore: []string{"min"}}, "120"},
		{trace.ProfileSelection{Callers: "nothing at all"}, "!--callers nothing at all: no function matches"},
		{trace.ProfileSelection{Threads: []string{"boss"}, CPUs: "3", Hide: []string{"x"}}, "!no sample is in all of: --thread boss, --cpu 3"},
	} {
		p := office()
		r, err := selected(t, &p.Profile, c.selection)
		if text, isError := strings.CutPrefix(c.want, "!"); isError {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%+v: %v, expected %s", c.selection, err, text)
			}
			continue
		}
		if err != nil {
			t.Errorf("%+v: %v", c.selection, err)
			continue
		}
		var got []string
		for i := range r.Profile.Samples {
			got = append(got, fmt.Sprint(r.Profile.Samples[i].Time))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%+v: %v, expected %s", c.selection, got, c.want)
		}
		if diff := cmp.Diff(lines(&office().Profile), lines(&p.Profile)); diff != "" {
			t.Errorf("%+v changes the profile:\n%s", c.selection, diff)
		}
	}
	p := office()
	for i := range p.Samples {
		p.Samples[i].HasCPU, p.Samples[i].Time = false, 0
	}
	if _, err := selected(t, &p.Profile, trace.ProfileSelection{CPUs: "0"}); err == nil || !strings.Contains(err.Error(), "perf record --sample-cpu") {
		t.Errorf("without processors: %v", err)
	}
	if _, err := selected(t, &p.Profile, trace.ProfileSelection{Time: "0,1"}); err == nil || !strings.Contains(err.Error(), "do not have the time") {
		t.Errorf("without times: %v", err)
	}
	p.Samples = nil
	if _, err := selected(t, &p.Profile, trace.ProfileSelection{Threads: []string{"nobody"}, Focus: []string{"nothing"}}); err != nil {
		t.Errorf("of no samples: %v", err)
	}
}

func TestSelectionsOfFunctions(t *testing.T) {
	for _, c := range []struct {
		selection trace.ProfileSelection
		want      []string
		notes     string
	}{
		{trace.ProfileSelection{Hide: []string{"^min$"}, Threads: []string{"boss", "worker 2"}},
			[]string{"100 main;sort", "110 main;read", "130 main;sort;[lib.so]+0x13", "140 operator()(int)"}, ""},
		{trace.ProfileSelection{Hide: []string{"sort", "read", "nothing"}, Processes: []string{"10"}},
			[]string{"100 main;min", "110 main", "120 main"}, "--hide nothing: no function matches, and nothing is hidden"},
		{trace.ProfileSelection{Hide: []string{"."}, CPUs: "0"}, []string{"100 "}, ""},
		{trace.ProfileSelection{Callers: "sort"}, []string{"100 main;sort", "120 main;sort;sort", "130 main;sort"}, ""},
		{trace.ProfileSelection{Callers: "min"}, []string{"100 main;sort;min", "130 main;sort;min"}, ""},
		{trace.ProfileSelection{Callers: "^(re|mi)"}, []string{"100 main;sort;min", "110 main;read", "120 main;sort;sort;read", "130 main;sort;min"}, ""},
		{trace.ProfileSelection{Callers: "sort", Hide: []string{"main"}}, []string{"100 sort", "120 sort;sort", "130 sort"}, ""},
		{trace.ProfileSelection{Callers: "operator()"}, []string{"140 operator()(int)"}, ""},
		{trace.ProfileSelection{Ignore: []string{"none"}, Threads: []string{"11"}}, []string{"120 main;sort;sort;read"}, "--ignore none: no function matches, and nothing is left out"},
		{trace.ProfileSelection{Time: "0,1", Threads: []string{"boss"}}, []string{"100 main;sort;min", "110 main;read"},
			"--time 0,1: 1 samples are left out whose time is not known by the recording's clock"},
	} {
		p := office()
		r, err := selected(t, &p.Profile, c.selection)
		if err != nil {
			t.Errorf("%+v: %v", c.selection, err)
			continue
		}
		if diff := cmp.Diff(c.want, lines(r.Profile)); diff != "" || strings.Join(r.Notes, "|") != c.notes {
			t.Errorf("%+v: %q\n%s", c.selection, r.Notes, diff)
		}
	}
}

func TestSelectionsWithoutMeaningAreRefused(t *testing.T) {
	for text, s := range map[string]trace.ProfileSelection{
		"--focus a(: expected a regular expression (RE2): ":                    {Focus: []string{"a("}},
		"--hide: expected a regular expression for the names of functions":     {Hide: []string{""}},
		"--process: expected an ID, a name, or a regular expression for names": {Processes: []string{"a", ""}},
		"--cpu 1-: expected numbers of processors, as 0,2-3":                   {CPUs: "1-"},
		"--cpu 4294967296: expected":                                           {CPUs: "4294967296"},
		"--time 1: expected FROM,TO":                                           {Time: "1"},
		"--time ,: expected FROM,TO":                                           {Time: ","},
		"--time 2,1: expected FROM before TO":                                  {Time: "2,1"},
		"--time 20%,10%: expected FROM before TO":                              {Time: "20%,10%"},
		"--time -1,2: expected FROM,TO":                                        {Time: "-1,2"},
		"--time NaN,2: expected FROM,TO":                                       {Time: "NaN,2"},
		"--time 101%,: expected FROM,TO":                                       {Time: "101%,"},
		"--time 1e300,: expected FROM,TO":                                      {Time: "1e300,"},
	} {
		if _, err := New(s); err == nil || !strings.HasPrefix(err.Error(), text) {
			t.Errorf("%+v: %v, expected %s", s, err, text)
		}
	}
}

// TestSelectionsOfAnyStacks has random profiles, and holds each selection against one that is made
// sample by sample.
func TestSelectionsOfAnyStacks(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 1))
	for range 300 {
		m := newMade("a", "b", "c,a", "a,b,c", "d", "", "b,b")
		for i := range 60 {
			var stack []uint32
			for range random.IntN(6) {
				stack = append(stack, uint32(random.IntN(len(m.Frames))))
			}
			m.Samples = append(m.Samples, trace.ProfileSample{Time: uint64(1 + i), Thread: m.thread(1, 1, "t"), Stack: m.stack(stack...)})
		}
		pick := func() (list []string) {
			for _, e := range []string{"a", "b|c", "^d$", `\[lib`} {
				if random.IntN(6) == 0 {
					list = append(list, e)
				}
			}
			return list
		}
		s := trace.ProfileSelection{Focus: pick(), Ignore: pick(), Hide: pick(), Callers: []string{"", "", "a", "c"}[random.IntN(4)]}
		want := naive(&m.Profile, &s)
		r, err := selected(t, &m.Profile, s)
		if (err != nil) != (len(want) == 0) {
			t.Fatalf("%+v: %v, expected %v", s, err, want)
		}
		if err == nil {
			if diff := cmp.Diff(want, lines(r.Profile)); diff != "" {
				t.Fatalf("%+v (-want +got):\n%s", s, diff)
			}
			for i, stack := range r.Profile.Stacks[1:] {
				if int(stack.Caller) > i {
					t.Fatalf("%+v: stack %d has the caller %d", s, i+1, stack.Caller)
				}
			}
		}
	}
}

// naive are the lines of a selection.
func naive(p *trace.Profile, s *trace.ProfileSelection) (list []string) {
	has := func(names []string, text string) bool {
		return slices.ContainsFunc(names, regexp.MustCompile(text).MatchString)
	}
	for i := range p.Samples {
		names := functionsOf(p, p.Samples[i].Stack)
		isIn := true
		for _, text := range s.Focus {
			isIn = isIn && has(names, text)
		}
		for _, text := range s.Ignore {
			isIn = isIn && !has(names, text)
		}
		if s.Callers != "" {
			last := len(names) - 1
			for last >= 0 && names[last] != s.Callers {
				last--
			}
			isIn, names = isIn && last >= 0, names[:last+1]
		}
		if !isIn {
			continue
		}
		names = slices.DeleteFunc(names, func(name string) bool {
			return slices.ContainsFunc(s.Hide, func(text string) bool { return has([]string{name}, text) })
		})
		list = append(list, fmt.Sprintf("%d %s", p.Samples[i].Time, strings.Join(names, ";")))
	}
	return list
}

// FuzzSelection: the texts of flags are any.
func FuzzSelection(f *testing.F) {
	f.Add("boss", "0,2-3", "10%,20%", "so.t", "min")
	f.Add("1", "0", "1.5,", "^$", "operator()(int)")
	f.Add("", "", ",200ms", "(", "*")
	f.Fuzz(func(t *testing.T, name, cpus, time, expression, callers string) {
		for _, s := range []trace.ProfileSelection{
			{Threads: []string{name}, CPUs: cpus, Time: time}, {Focus: []string{expression}, Callers: callers},
			{Hide: []string{expression}, Ignore: []string{callers}, Processes: []string{name}}, {Time: time}, {CPUs: cpus},
		} {
			selector, err := New(s)
			if err != nil {
				continue
			}
			p := office()
			if r, err := selector.Select(&p.Profile, unnamed); err == nil && len(r.Profile.Samples) == 0 {
				t.Errorf("%+v selects nothing", s)
			}
		}
	})
}

// BenchmarkSelect has a million samples of 300,000 stacks.
func BenchmarkSelect(b *testing.B) {
	random := rand.New(rand.NewPCG(3, 4))
	var names []string
	for i := range 20_000 {
		names = append(names, fmt.Sprintf("inlined%d,void library::detail::function%d<int>(int, char const*)", i%300, i))
	}
	m := newMade(names...)
	m.thread(1, 1, "t")
	for i := range 300_000 {
		m.Stacks = append(m.Stacks, trace.ProfileStack{Caller: uint32(random.IntN(i + 1)), Frame: uint32(random.IntN(len(names)))})
	}
	for i := range 1_000_000 {
		m.Samples = append(m.Samples, trace.ProfileSample{Time: uint64(i + 1), Stack: uint32(random.IntN(300_000))})
	}
	for name, s := range map[string]trace.ProfileSelection{
		"time": {Time: "10%,20%"}, "focus": {Focus: []string{"function1.3"}}, "hide": {Hide: []string{"inlined1"}}, "callers": {Callers: "inlined7"},
	} {
		b.Run(name, func(b *testing.B) {
			selector, err := New(s)
			if err != nil {
				b.Fatal(err)
			}
			for range b.N {
				if _, err := selector.Select(&m.Profile, unnamed); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
