// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	_ = os.Setenv("UNWINDD_TESTS", "all") // for tests that ask for tools
	os.Exit(m.Run())
}

// end notes how a test ends.
type end struct {
	testing.TB
	how string
}

func (e *end) Helper() {}
func (e *end) Fatalf(format string, args ...any) {
	e.how = "fails: " + fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (e *end) Skip(args ...any) { e.Skipf("%s", fmt.Sprint(args...)) }

func (e *end) Skipf(format string, args ...any) {
	e.how = "is skipped: " + fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// ending runs a test and returns how it ends: "" if it goes to its last line.
func ending(t *testing.T, test func(t testing.TB)) string {
	e := &end{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		test(e)
	}()
	<-done
	return e.how
}

func TestWhatIsMissingSkipsATestButFailsItInCI(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct {
		ci   string
		test func(t testing.TB)
		want string
	}{
		{"", func(t testing.TB) { Tools(t, "go", "no-such-tool") }, "is skipped: no-such-tool is not installed"},
		{"true", func(t testing.TB) { Tools(t, "go", "no-such-tool") }, "fails: no-such-tool is not installed"},
		{"", func(t testing.TB) { Run(t, "no-such-tool") }, "is skipped: no-such-tool is not installed"},
		{"", func(t testing.TB) { Beside(t, "corpus/*.none") }, "is skipped: shared/corpus/*.none is missing beside the checkout"},
		{"true", func(t testing.TB) { Beside(t, "corpus/*.none") }, "fails: shared/corpus/*.none is missing beside the checkout"},
		{"true", func(t testing.TB) { Tools(t, "go") }, ""},
	} {
		t.Setenv("CI", c.ci)
		if how := ending(t, c.test); how != c.want {
			t.Errorf("the test %s, expected that it %s", how, c.want)
		}
	}
}

func TestToolsAreAskedForWithAllTestsAlone(t *testing.T) {
	for value, want := range map[string]string{"": "is skipped", "some": "is skipped", "all": ""} {
		t.Setenv("UNWINDD_TESTS", value)
		e := ending(t, func(t testing.TB) { Tools(t, "go") })
		if !strings.HasPrefix(e, want) || want == "" && e != "" {
			t.Errorf("UNWINDD_TESTS=%s: the test %q, expected %q", value, e, want)
		}
	}
}

// A compiler that is too old is as one that is missing.
func TestOldToolsAreUnfit(t *testing.T) {
	dir := t.TempDir()
	for version, want := range map[string]string{
		"rustc 1.63.0 (4b91a6ea7 2022-08-08)": "rustc 1.85 or later is needed (older ones lack black_box, and name types otherwise in debug information); this is 1.63",
		"rustc 1.85.0":                        "", "rustc 2.0.0": "",
		"no numbers": "rustc 1.85 or later is needed; the one that is installed does not tell its version",
	} {
		path := filepath.Join(dir, strings.ReplaceAll(version, " ", "_"))
		if err := os.WriteFile(path, []byte("#!/bin/sh\necho '"+version+"'\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		if why := unfit("rustc", path); why != want {
			t.Errorf("%s: %q, expected %q", version, why, want)
		}
	}
}

func TestBesideIsAboveTheFolderOfTheTest(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"checkout/engine", "shared/corpus"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.FromSlash(name)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a.co", "b.ll"} {
		if err := os.WriteFile(filepath.Join(dir, "shared", "corpus", name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(filepath.Join(dir, "checkout", "engine"))
	got := Beside(t, "corpus/*.ll", "corpus/*.co")
	if len(got) != 2 || filepath.Base(got[0]) != "b.ll" || filepath.Base(got[1]) != "a.co" {
		t.Error(got)
	}
}

func TestCheckoutIsAboveTheFolderOfTheTest(t *testing.T) {
	t.Chdir(t.TempDir())
	path := Checkout(t, "internal/oracle/oracle_test.go")
	if _, err := os.Stat(path); err != nil || !filepath.IsAbs(path) {
		t.Errorf("%s, %v", path, err)
	}
	if how := ending(t, func(t testing.TB) { Checkout(t, "internal/none") }); how != "fails: internal/none is in no folder above the test's" {
		t.Errorf("the test %s", how)
	}
}

func TestRunReturnsWhatAToolPrintsOnItsStandardOutput(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("LC_ALL", "de_DE")
	got := With{Dir: dir, Input: "input", Env: []string{"WORD=word"}}.Run(t, "sh", "-c", `pwd; cat; echo " $WORD $LC_ALL $1"; echo complaint >&2`, "sh", "argument")
	if want := dir + "\ninput word C.UTF-8 argument\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestATestWhoseToolFailsShowsWhatTheToolPrinted(t *testing.T) {
	how := ending(t, func(t testing.TB) { Run(t, "sh", "-c", "echo printed; echo complaint >&2; exit 3") })
	for _, want := range []string{"fails: sh -c ", "exit status 3\ncomplaint\n\nprinted\n"} {
		if !strings.Contains(how, want) {
			t.Errorf("the test %s, expected %q in it", how, want)
		}
	}
	// A path is of something that the test made: that it is missing is no reason to skip the test.
	if how := ending(t, func(t testing.TB) { Run(t, filepath.Join(t.TempDir(), "program")) }); !strings.HasPrefix(how, "fails: ") {
		t.Errorf("the test %s, expected that it fails", how)
	}
}

func TestFilterHasAnAnswerToEachQuestion(t *testing.T) {
	if got := Filter(t, "cat", []string{"one", "", "two"}); len(got) != 3 || got[0] != "one" || got[1] != "" || got[2] != "two" {
		t.Errorf("%q", got)
	}
	how := ending(t, func(t testing.TB) { Filter(t, "uniq", []string{"one", "one", "two"}) })
	if want := "fails: uniq gives 2 answers to 3 lines"; how != want {
		t.Errorf("the test %s, expected that it %s", how, want)
	}
}

// TestTheGoCommandKeepsItsCache: commands under test have caches of their own, and
// nothing is compiled for that.
func TestTheGoCommandKeepsItsCache(t *testing.T) {
	before := Run(t, "go", "env", "GOCACHE")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	if now := Run(t, "go", "env", "GOCACHE"); now != before {
		t.Errorf("the go command's cache is %s beside another XDG_CACHE_HOME, and was %s", now, before)
	}
	other := t.TempDir()
	if now := (With{Env: []string{"GOCACHE=" + other}}).Run(t, "go", "env", "GOCACHE"); now != other+"\n" {
		t.Errorf("the go command's cache is %s, and was to be %s", now, other)
	}
}
