// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestABuildIsMadeOnceUntilItsSourcesOrCommandsChange(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	source := filepath.Join(t.TempDir(), "source")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first")
	b := Build{Sources: []string{source}, Commands: [][]string{{"cp", source, "copy"}, {"sh", "-c", "pwd > folder; date +%N >> folder"}}}
	made := func(b Build) string {
		t.Helper()
		all := ""
		for _, name := range []string{"copy", "folder"} {
			text, err := os.ReadFile(filepath.Join(b.Make(t), name))
			if err != nil {
				t.Fatal(err)
			}
			all += string(text) + "\n"
		}
		return all
	}
	first := made(b)
	if dir := b.Make(t); !strings.Contains(first, "first\n"+dir+"\n") {
		t.Errorf("%q, expected what the commands wrote in %s", first, dir)
	}
	if again := made(b); again != first {
		t.Errorf("made twice: %q and %q", first, again)
	}
	other := b
	other.Env = []string{"VARIABLE=1"}
	if text := made(other); text == first {
		t.Error("not made again for other variables")
	}
	write("second")
	if text := made(b); !strings.HasPrefix(text, "second\n") {
		t.Errorf("%q, expected what is made of the source that changed", text)
	}
	write("first")
	if text := made(b); text != first {
		t.Errorf("%q, expected what was made of this source at first", text)
	}
}

func TestABuildThatFailsLeavesNothing(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	how := ending(t, func(t testing.TB) { Build{Commands: [][]string{{"sh", "-c", "touch a"}, {"false"}}}.Make(t) })
	if left, _ := filepath.Glob(filepath.Join(cache, "*", "*")); !strings.HasPrefix(how, "fails: ") || len(left) > 0 {
		t.Errorf("the test %s; left: %q", how, left)
	}
	how = ending(t, func(t testing.TB) { Build{Commands: [][]string{{"no-such-tool"}}}.Make(t) })
	if !strings.Contains(how, "no-such-tool is not installed") {
		t.Errorf("the test %s", how)
	}
}

func TestABuildIsMadeWhereThereIsNoCache(t *testing.T) {
	for _, folder := range []string{"", "/dev/null/cache"} {
		t.Setenv("HOME", "")
		t.Setenv("XDG_CACHE_HOME", folder)
		dir := Build{Commands: [][]string{{"touch", "a"}}}.Make(t)
		if _, err := os.Stat(filepath.Join(dir, "a")); err != nil {
			t.Errorf("cache %q: %v", folder, err)
		}
	}
}

func TestBuildsThatNobodyAsksForAreRemoved(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	touch := func(name string) Build { return Build{Commands: [][]string{{"touch", name}}} }
	old := touch("old").Make(t)
	before := time.Now().Add(-keptFor - time.Hour)
	if err := os.Chtimes(old, before, before); err != nil {
		t.Fatal(err)
	}
	touch("new").Make(t)
	if _, err := os.Stat(old); err == nil {
		t.Error("it is still there")
	}
	if again := touch("old").Make(t); again == old {
		t.Error("the folder that was removed is given again")
	}
}

func TestTestsThatRunAtOnceMakeABuildOnce(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	log := filepath.Join(t.TempDir(), "log")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { Build{Commands: [][]string{{"sh", "-c", "echo made >> " + log}}}.Make(t) })
	}
	all.Wait()
	if text, _ := os.ReadFile(log); string(text) != "made\n" {
		t.Errorf("%q", text)
	}
}
