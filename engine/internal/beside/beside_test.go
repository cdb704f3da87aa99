// SPDX-License-Identifier: Apache-2.0

package beside

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func TestNumbers(t *testing.T) {
	for name, want := range map[string][]int64{
		"":                                   nil,
		"core":                               nil,
		"core.4242":                          {4242},
		"core_1767225600_node7_4242.nvcudmp": {1767225600, 7, 4242},
		"cuda_coredump_a-1.4242.1767225600":  {1, 4242, 1767225600},
		"99999999999999999999.5":             {5},
		"9223372036854775807x9223372036854775808": {9223372036854775807},
	} {
		if got := Numbers(name); !slices.Equal(got, want) {
			t.Errorf("%q: %v, expected %v", name, got, want)
		}
	}
}

// TestFilesAreOrderedByTime has files of two processes of one ID: by the times in their names, or else by when
// the files were written.
func TestFilesAreOrderedByTime(t *testing.T) {
	dir := t.TempDir()
	at := time.Unix(1767225600, 0)
	for name, changed := range map[string]time.Time{
		"core_1767225590_n_42.nvcudmp": at.Add(time.Hour),
		"core_1767100000_n_42.nvcudmp": at,
		"dump.42":                      at.Add(-30 * time.Second),
		"dump.43":                      at,
		"dump.142":                     at,
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, changed, changed); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "folder.42"), 0o700); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range Files(dir, at, func(_ string, numbers []int64) bool { return slices.Contains(numbers, 42) }) {
		got = append(got, filepath.Base(f.Path))
	}
	want := []string{"core_1767225590_n_42.nvcudmp", "dump.42", "core_1767100000_n_42.nvcudmp"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, expected %q", got, want)
	}
	if list := Files(filepath.Join(dir, "none"), at, func(string, []int64) bool { return true }); len(list) > 0 {
		t.Errorf("%v of a folder that is not there", list)
	}
}

func FuzzNumbers(f *testing.F) {
	f.Add("core_1767225600_node7_4242.nvcudmp")
	f.Fuzz(func(t *testing.T, name string) {
		list := Numbers(name)
		if len(list) > len(name)/2+1 {
			t.Errorf("%d numbers in %d bytes", len(list), len(name))
		}
		for _, n := range list {
			if n < 0 {
				t.Errorf("%q: %d", name, n)
			}
		}
	})
}
