// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// crashCauses are why testdata/crashes.cc crashes, with how many of a hundred cores crash so and the function in which they
// part from the others. The rarest is first.
var crashCauses = []struct {
	name, function string
	count          int
}{{"divide", "average", 3}, {"abort", "check_totals", 27}, {"null", "parse_header", 70}}

// makeCrashes makes cores in folders that are named by their numbers, and returns the labels of each cause.
func makeCrashes(t *testing.T, dir string) (ranks []string) {
	t.Helper()
	source, err := filepath.Abs("testdata/crashes.cc")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(oracle.Build{Sources: []string{source}, Commands: [][]string{
		{"g++", "-O1", "-g", "-pthread", "-fno-optimize-sibling-calls", source, "-o", "crashes"},
	}}.Make(t), "crashes")
	number := 0
	for _, cause := range crashCauses {
		first := number
		for ; number < first+cause.count; number++ {
			folder := filepath.Join(dir, fmt.Sprintf("crash%d", number))
			if err := os.Mkdir(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("sh", "-c", `ulimit -c unlimited && exec "$@"`, "sh", program, cause.name, fmt.Sprint(number%23)) //nolint:gosec // of this file
			cmd.Dir = folder
			out, _ := cmd.CombinedOutput() // it crashes
			if cores, _ := filepath.Glob(filepath.Join(folder, "core*")); len(cores) != 1 {
				oracle.Missing(t, "cores in the folder of the program (core_pattern, ulimit -c): %s", out)
			}
		}
		ranks = append(ranks, fmt.Sprintf("%d-%d", first, number-1))
	}
	return ranks
}

// TestAHundredCrashesAreOfTheirCauses compares the threads that crashed of cores whose other threads are anywhere: as cores, as
// parts that were made with the choice and without it, and as reports.
func TestAHundredCrashesAreOfTheirCauses(t *testing.T) {
	oracle.All(t)
	dir := t.TempDir()
	want := makeCrashes(t, dir)
	label := []string{"--label", "crash=crash([0-9]+)"}
	whole := comparedJSONOf(t, append(label, dir)...)
	t.Logf("with all threads: %d classes", len(whole.Classes))
	if len(whole.Classes) < 20 {
		t.Errorf("%d classes: the other threads are not anywhere", len(whole.Classes))
	}
	check := func(how string, args ...string) {
		c := comparedJSONOf(t, args...)
		var have []string
		for _, class := range c.Classes {
			have = append(have, class.Labels["crash"]+class.Unread)
		}
		if !slices.Equal(have, want) || !c.CrashedOnly {
			t.Errorf("%s: the classes are %q, expected %q", how, have, want)
		}
	}
	check("cores", append(label, dir, "--crashed")...)
	parts := []string{filepath.Join(t.TempDir(), "chosen.part"), filepath.Join(t.TempDir(), "all.part")}
	for i, part := range parts {
		half, _ := filepath.Glob(filepath.Join(dir, fmt.Sprintf("crash*[%s]", []string{"02468", "13579"}[i])))
		args := append([]string{"compare", "--format", "part", "-o", part, "--crashed=" + fmt.Sprint(i == 0)}, append(label, half...)...)
		if _, stderr, status := unwindd(t, args...); status != 0 {
			t.Fatalf("%s", stderr)
		}
	}
	check("parts", parts...)
	check("reports", "--crashed", "--label", "crash=crash([0-9]+)", reportsOf(t, dir))
	text, _, _ := unwindd(t, append([]string{"compare", "--crashed", dir}, label...)...)
	for _, cause := range crashCauses[:2] {
		if !strings.Contains(text, cause.function) {
			t.Errorf("%s is not named:\n%s", cause.function, text)
		}
	}
	if !strings.Contains(text, "100 targets, 100 crashed threads: 3 classes") || !strings.Contains(text, "thread refund parts from the others in refund") {
		t.Errorf("%s", text)
	}
}

// reportsOf makes a folder with the reports of cores.
func reportsOf(t *testing.T, dir string) string {
	t.Helper()
	out := t.TempDir()
	cores, _ := filepath.Glob(filepath.Join(dir, "*", "core*"))
	for _, core := range cores {
		name := filepath.Join(out, filepath.Base(filepath.Dir(core))+".json")
		if _, stderr, status := unwindd(t, "stack", core, "--format", "json", "-o", name); status != 0 {
			t.Fatalf("%s", stderr)
		}
	}
	return out
}
