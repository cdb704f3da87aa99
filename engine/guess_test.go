// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/enginetest"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/subject"
)

// marked are the functions of physical frames, from one on, with a mark for guesses
// and for what rests on them.
func marked(th *report.Thread, from string) []string {
	var list []string
	for _, f := range th.Frames {
		name := f.Function
		if name == "" {
			name = "??"
		}
		switch {
		case f.Inlined || len(list) == 0 && name != from:
			continue
		case trace.FoundBy(f.FoundBy).IsGuess():
			name += " guess"
		case f.RestsOnGuess:
			name += " rests"
		}
		list = append(list, name)
	}
	return list
}

// A word of the stack that follows a direct call is a return address only if that
// call may have led to the frame before.
func TestGuessesSurviveWhatCallsLeadTo(t *testing.T) {
	t.Parallel()
	const end = "if frame "
	t.Run("a library that was removed", func(t *testing.T) {
		exe := subject.Build(t, "plugged")
		core := subject.Core(t, exe, copied(t, subject.Build(t, "plug"), "plug.so"))
		th := crashed(t, enginetest.Report(t, core))
		want := []string{"broken", "??", "run guess", "main rests"}
		if got := marked(th, "broken"); !slices.Equal(got[:min(len(want), len(got))], want) {
			t.Errorf("%q, expected %q", got, want)
		}
		if th.Stopped.Reason != "outermost" || !strings.Contains(th.Stopped.Detail, end) {
			t.Errorf("stopped %+v, expected outermost, %q", th.Stopped, end)
		}
		text := enginetest.Text(t, core)
		for _, want := range []string{"(a guess, by scan)", "(rests on a guess)", "stopped: outermost: "} {
			if !strings.Contains(text, want) {
				t.Errorf("the text has no %q:\n%s", want, text)
			}
		}
	})
	t.Run("an executable that was removed", func(t *testing.T) {
		exe := copied(t, subject.Build(t, "nested"), "nested")
		core := subject.Core(t, exe)
		whole := physicalPCs(crashed(t, enginetest.Report(t, core)))
		if err := os.Remove(exe); err != nil {
			t.Fatal(err)
		}
		th := crashed(t, enginetest.Report(t, core))
		// Frames of the executable may be missing, but there is none that is not.
		at, guesses := 0, 0
		for _, f := range th.Frames {
			if f.Inlined {
				continue
			}
			if trace.FoundBy(f.FoundBy).IsGuess() {
				guesses++
			}
			i := slices.Index(whole[at:], f.PC)
			if i < 0 {
				t.Fatalf("frame %d, %s %s by %s, is none", f.Index, f.PC, f.Function, f.FoundBy)
			}
			at += i + 1
		}
		if guesses == 0 || len(th.Frames) < 15 || th.Frames[len(th.Frames)-1].PC != whole[len(whole)-1] {
			t.Errorf("%d frames, %d guesses: expected guesses, and frames up to %s", len(th.Frames), guesses, whole[len(whole)-1])
		}
	})
}

// A part of a function is read with the function, whose jump into it has made its frame.
func TestPartsOfFunctionsAreReadWithThem(t *testing.T) {
	t.Parallel()
	th := crashed(t, enginetest.Report(t, subject.Core(t, subject.Build(t, "cold"))))
	want := []string{"fatal", "parse.cold", "request", "main", "__libc_start_call_main"}
	if got := marked(th, "fatal"); len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
		t.Fatalf("%q, expected %q", got, want)
	}
	// Without symbols the same frames are found, as guesses.
	stripped := crashed(t, enginetest.Report(t, subject.Core(t, subject.Build(t, "coldstrip"))))
	if whole, got := physicalPCs(th), physicalPCs(stripped); len(got) != len(whole) || !slices.Equal(got[:4], whole[:4]) {
		t.Errorf("without symbols %q, expected %q", got, whole)
	}
}

// A scan takes the nearest return address that something speaks for, also where the caller's
// caller is in code that is in no file.
func TestScansTakeTheNearestCaller(t *testing.T) {
	t.Parallel()
	exe := copied(t, subject.Build(t, "reenters"), "reenters")
	core := subject.Core(t, exe, subject.Build(t, "reentered"))
	whole := physicalPCs(crashed(t, enginetest.Report(t, core)))
	if err := os.Remove(exe); err != nil {
		t.Fatal(err)
	}
	th := crashed(t, enginetest.Report(t, core))
	if got := physicalPCs(th); !slices.Equal(got[:min(len(got), 10)], whole[:10]) {
		t.Errorf("%q, expected %q", got, whole)
	}
}

// Frames that are entered by jumps are believed as a chain of frame records.
func TestChainsOfFrameRecords(t *testing.T) {
	t.Parallel()
	th := crashed(t, enginetest.Report(t, subject.Core(t, subject.Build(t, "records"))))
	got := marked(th, "last")
	// The code after the innermost call leads nowhere; 49 frames pushed where they go on.
	want := append([]string{"last", "??"}, slices.Repeat([]string{"?? guess"}, 49)...)
	want = append(want, "enter guess", "main rests")
	if diff := cmp.Diff(want, got[:min(len(got), len(want))]); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestReturnAddressesThatWereWrittenOver(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		subject string
		args    []string
		want    []string
		reason  string
	}{
		{"smash", nil, []string{"victim", "??", "outer guess", "main rests"}, "outermost"},
		{"smash", []string{"other"}, []string{"victim", "??", "outer guess", "main rests"}, "outermost"},
		{"smashbare", nil, []string{"victim", "??"}, "no-module"},
		{"smashbare", []string{"other"}, []string{"victim", "??"}, "no-module"},
	} {
		t.Run(fmt.Sprint(c.subject, c.args), func(t *testing.T) {
			t.Parallel()
			core := subject.Core(t, subject.Build(t, c.subject), c.args...)
			th := crashed(t, enginetest.Report(t, core))
			if got := marked(th, "victim"); !slices.Equal(got[:min(len(c.want), len(got))], c.want) || th.Stopped.Reason != c.reason {
				t.Errorf("%q, stopped %+v: expected %q and %s", got, th.Stopped, c.want, c.reason)
			}
			if text := enginetest.Text(t, core); !strings.Contains(text, "  stopped: "+c.reason) {
				t.Errorf("the text does not say that the stack stopped:\n%s", text)
			}
		})
	}
}

// TestWhereStacksBegin is about code in assembly language, which has no call frame
// information, and with symbols or without.
func TestWhereStacksBegin(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		subject string
		last    []string // the outermost function of each thread; "": any
	}{
		{"musl", []string{"_start", ""}},
		{"muslstatic", []string{"_start", "__clone"}},
		{"static", []string{"_start", "clone3"}},
		{"context", []string{"__start_context"}},
	} {
		for _, strip := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s stripped %v", c.subject, strip), func(t *testing.T) {
				t.Parallel()
				exe := subject.Build(t, c.subject)
				if strip {
					exe = copied(t, exe, c.subject)
					oracle.Run(t, "strip", exe)
				}
				r := enginetest.Report(t, subject.Core(t, exe))
				if len(r.Threads) != len(c.last) {
					t.Fatalf("%d threads, expected %d", len(r.Threads), len(c.last))
				}
				for i := range r.Threads {
					th := &r.Threads[i]
					last := th.Frames[len(th.Frames)-1]
					if th.Stopped.Reason != "outermost" {
						t.Errorf("thread %d ends in %s %q: %+v, expected outermost", i, last.PC, last.Function, th.Stopped)
					}
					if want := c.last[i]; !strip && want != "" && last.Function != want && last.Function != "" {
						t.Errorf("thread %d ends in %q, expected %q", i, last.Function, want)
					}
				}
			})
		}
	}
}

// javaFrame is a line of the trace that Java's machine prints of a crash. Of
// compiled methods and of its own code it says the PC.
var javaFrame = regexp.MustCompile(`^([JjvVC]) +(?:\[[^\]]*\+0x[0-9a-f]+\]|.*? @ 0x([0-9a-f]+) |.*)`)

// TestJavaFramesEqualTheMachinesOwnTrace crashes a Java machine below interpreted
// methods only, and below a mixture of interpreted and compiled ones.
func TestJavaFramesEqualTheMachinesOwnTrace(t *testing.T) {
	t.Parallel()
	oracle.Tools(t, "java", "javac")
	dir := t.TempDir()
	oracle.Run(t, "javac", "-nowarn", "-d", dir, subject.Source(t, "Frames.java"))
	for _, c := range []struct{ mode, rounds string }{
		{"-Xint", "20"}, {"-XX:TieredStopAtLevel=1", "20000"}, {"-XX:-TieredCompilation", "40000"}, {"-Xmixed", "100000"},
	} {
		t.Run(c.mode, func(t *testing.T) {
			t.Parallel()
			log := filepath.Join(t.TempDir(), "trace")
			core := subject.Core(t, oracle.Tool(t, "java"), c.mode, "-Xmx64m", "-Xshare:auto", "-XX:ErrorFile="+log, "-cp", dir, "Frames", c.rounds)
			frames, compiled := javaTrace(t, log)
			th := crashed(t, enginetest.Report(t, core))
			// The trace is of the first signal. Its handler, which writes the trace, may
			// have met another.
			var pcs []string
			for _, f := range th.Frames {
				switch {
				case f.SignalFrame:
					pcs = nil
				case !f.Inlined && !f.BehindManaged: // a method stands for the interpreter's frame
					pcs = append(pcs, f.PC)
				}
			}
			// The trace ends where the thread's own function was called.
			if len(pcs) < len(frames) || len(pcs) > len(frames)+2 {
				t.Errorf("%d frames, the trace has %d", len(pcs), len(frames))
			}
			for i, pc := range frames {
				if pc != "" && i < len(pcs) && pcs[i] != pc {
					t.Fatalf("frame %d is %s, in the trace %s", i, pcs[i], pc)
				}
			}
			if th.Stopped.Reason != "outermost" || c.mode != "-Xint" && compiled == 0 {
				t.Errorf("stopped %+v, %d compiled methods", th.Stopped, compiled)
			}
			for i := range th.Frames {
				if th.Frames[i].FoundBy == "scan" {
					t.Errorf("frame %d was found by a scan", i)
				}
			}
			t.Logf("%d frames, %d of them compiled methods", len(pcs), compiled)
		})
	}
}

// javaTrace are the PCs of the frames of a trace, "" where it does not say one, and
// how many are compiled methods. Methods that were inlined have no frame.
func javaTrace(t *testing.T, log string) (pcs []string, compiled int) {
	t.Helper()
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	_, trace, ok := strings.Cut(string(data), "\nNative frames:")
	if !ok {
		t.Fatalf("%s has no trace", log)
	}
	for _, line := range strings.Split(trace, "\n")[1:] {
		m := javaFrame.FindStringSubmatch(line)
		if m == nil {
			break
		}
		pc := ""
		if m[1] == "J" {
			compiled++
			n, err := strconv.ParseUint(m[2], 16, 64)
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			pc = fmt.Sprintf("0x%x", n)
		}
		pcs = append(pcs, pc)
	}
	if len(pcs) < 20 {
		t.Fatalf("a trace of %d frames", len(pcs))
	}
	return pcs, compiled
}
