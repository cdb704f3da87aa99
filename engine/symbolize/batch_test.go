// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// Many questions at once, of several files, some of them wrong, are answered in their
// order, as each alone is.
func TestAnswersComeInTheOrderOfTheQuestions(t *testing.T) {
	files := []string{"../internal/symbol/dwarf/testdata/small5", "../internal/symbol/dwarf/testdata/small4", "testdata/none", "../internal/symbol/dwarf/testdata/small2"}
	random := rand.New(rand.NewPCG(1, 2))
	var questions []string
	for range 700 {
		q := fmt.Sprintf("%s %#x", files[random.IntN(len(files))], 0x400080+random.Uint64N(0x120))
		if random.IntN(20) == 0 {
			q = "not a question"
		}
		questions = append(questions, q)
	}
	for _, style := range []Style{StyleLLVM, StyleLLVMGNU, StyleJSON} {
		// What is said of a file that cannot be opened is said once in a session.
		ask := func(in string) string {
			s := New(Options{})
			defer s.Close()
			session := Session{Symbolizer: s, Inlines: true, Output: WriterOptions{Style: style, Demangle: true}}
			var out bytes.Buffer
			if err := session.Run(&out, nil, strings.NewReader(in)); err != nil {
				t.Fatal(err)
			}
			return out.String()
		}
		var want strings.Builder
		asked := questions
		if style == StyleJSON { // which tells the error of a file once
			asked = slices.DeleteFunc(slices.Clone(questions), func(q string) bool { return !strings.HasPrefix(q, "../") })
		}
		for _, q := range asked {
			want.WriteString(ask(q + "\n"))
		}
		if got := ask(strings.Join(asked, "\n") + "\n"); got != want.String() {
			t.Errorf("style %d: %d bytes of answers are not those of each question alone, %d bytes", style, len(got), want.Len())
		}
	}
}

// Thousands of questions, some of them wrong, on one core and on several.
func TestAnswersDoNotDependOnCores(t *testing.T) {
	t.Chdir(subjects(t))
	addresses := addressesOfText(t, "gcc", 1)
	var questions strings.Builder
	for i := range 6000 {
		switch {
		case i%97 == 0:
			fmt.Fprintf(&questions, "missing%d 0x1\n", i%5)
		case i%101 == 0:
			fmt.Fprintf(&questions, "gcc 0x\n")
		case i%3 == 0:
			fmt.Fprintf(&questions, "plain %#x\n", addresses[i*7%len(addresses)])
		default:
			fmt.Fprintf(&questions, "gcc %#x\n", addresses[i*7%len(addresses)])
		}
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, style := range []string{"--output-style=LLVM", "--output-style=gnu", "--output-style=JSON"} {
		want := answers{}
		for _, cores := range []int{1, 2, 7} {
			runtime.GOMAXPROCS(cores)
			got := Options{}.ask(t, &Session{}, []string{style}, nil, questions.String())
			if cores == 1 {
				want = got
			}
			if got != want || strings.Count(got.Stderr, "\n") < 60 && !strings.HasSuffix(style, "JSON") || !strings.Contains(got.Stdout, "subject.cc") {
				t.Errorf("%s: on %d cores %d bytes and %d of errors, on one %d and %d", style, cores, len(got.Stdout), len(got.Stderr), len(want.Stdout), len(want.Stderr))
			}
		}
	}
}
