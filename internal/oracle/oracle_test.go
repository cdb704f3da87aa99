package oracle

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

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

func (e *end) Skipf(format string, args ...any) {
	e.how = "is skipped: " + fmt.Sprintf(format, args...)
	runtime.Goexit()
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
		{"", func(t testing.TB) { Beside(t, "corpus/*.none") }, "is skipped: shared/corpus/*.none is missing beside the checkout"},
		{"true", func(t testing.TB) { Beside(t, "corpus/*.none") }, "fails: shared/corpus/*.none is missing beside the checkout"},
		{"true", func(t testing.TB) { Tools(t, "go") }, ""},
	} {
		t.Setenv("CI", c.ci)
		e := &end{TB: t}
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.test(e)
		}()
		<-done
		if e.how != c.want {
			t.Errorf("the test %s, expected that it %s", e.how, c.want)
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
