// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMistypedNamesAreUnderstood(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	perf := filepath.Join("..", "..", "examples", "profile", "perf.data")
	for _, c := range []struct {
		args string
		want string // "": nothing is like it
	}{
		{"stck core", "there is no command \"stck\" of unwindd; did you mean: unwindd stack core\n"},
		{"stakc", "; did you mean: unwindd stack\n"},
		{"help stak", "; did you mean: unwindd stack\n"},
		{"prof perf.data", "; did you mean: unwindd profile perf.data\n"},
		{"symbolise", "; did you mean: unwindd symbolize\n"},
		{"symbls", "; did you mean: unwindd symbols\n"},
		{"stck --thread 1 core", "; did you mean: unwindd stack\n"},
		{"dump nots core", "of unwindd dump; did you mean: unwindd dump notes core\n"},
		{"plugin lst", "; did you mean: unwindd plugin list\n"},
		{"plugin lst --sha", "; did you mean: unwindd plugin list\n"},
		{serverCore, "; did you mean: unwindd stack " + serverCore + "\n"},
		{serverCore + " --thread 1", "; did you mean: unwindd stack " + serverCore + "\n"},
		{perf, "; did you mean: unwindd profile " + perf + "\n"},
		{exe, "; did you mean: unwindd symbolize --obj " + exe + "\n"},
		{"/", "; did you mean: unwindd stack /\n"},
		{"dump " + serverCore, ""},
		{"quux", ""},
		{strings.Repeat("stack", 1000), ""},
		{"stack --thraed 1 core", "stack has no flag --thraed; did you mean: --thread\n"},
		{"stack --thread-id=1 core", ""},
		{"stack --threads=1 core", "; did you mean: --thread\n"},
		{"stack --max 3 core", "; did you mean: --max-frames\n"},
		{"stack -thread 1 core", "; did you mean: --thread\n"},
		{"stack -exe=a core", "; did you mean: --exe\n"},
		{"stack --local core", "; did you mean: --locals\n"},
		{"stack --fromat json core", "; did you mean: --format\n"},
		{"stack --plugindir d core", "; did you mean: --plugin-dir\n"},
		{"dump rows --formt json f", "; did you mean: --format\n"},
		{"stack --xe a core", "; did you mean: --exe\n"},
		{"stack --quux core", ""},
		{"stack -Q core", ""},
		{"stack --" + strings.Repeat("thread", 1000) + " core", ""},
	} {
		out, said, status := unwindd(t, strings.Fields(c.args)...)
		if status != exitUsage || out != "" || !strings.HasPrefix(said, "unwindd: ") || !strings.Contains(said, c.want) || (c.want == "") == strings.Contains(said, "did you mean") {
			t.Errorf("%.100s: status %d, %q, %.300q, want %q", c.args, status, out, said, c.want)
		}
	}
}

// TestDistancesOfNames holds distances against their definition.
func TestDistancesOfNames(t *testing.T) {
	names := []string{"", "a", "exe", "thread", "thraed", "lane", "lanes", "locals", "globals", "top", "max-frames", "gpu", "gpu-core"}
	for _, a := range names {
		for _, b := range names {
			if d := distance(a, b); d != slowDistance(a, b) || d != distance(b, a) {
				t.Errorf("from %q to %q: %d, want %d", a, b, d, slowDistance(a, b))
			}
		}
	}
}

// slowDistance is the distance by its definition.
func slowDistance(a, b string) int {
	switch {
	case a == "" || b == "":
		return len(a) + len(b)
	case a[0] == b[0] && len(a) > 1 && len(b) > 1 && a[1] == b[1]:
		return slowDistance(a[1:], b[1:])
	}
	d := min(slowDistance(a[1:], b), slowDistance(a, b[1:])) + 1
	if a[0] == b[0] {
		d = min(d, slowDistance(a[1:], b[1:]))
	} else {
		d = min(d, slowDistance(a[1:], b[1:])+1)
	}
	if len(a) > 1 && len(b) > 1 && a[0] == b[1] && a[1] == b[0] {
		d = min(d, slowDistance(a[2:], b[2:])+1)
	}
	return d
}

func FuzzDistance(f *testing.F) {
	f.Add("thraed", "thread")
	f.Fuzz(func(t *testing.T, a, b string) {
		if len(a) > maxMistyped || len(b) > maxMistyped {
			return
		}
		if d := distance(a, b); d < 0 || d > max(len(a), len(b)) || d != distance(b, a) || (d == 0) != (a == b) {
			t.Errorf("from %q to %q: %d", a, b, d)
		}
	})
}
