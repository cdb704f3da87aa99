// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestProfilesAreWrittenAgainWithNames: a profile that was made without names and then gets them has the same
// stacks as the profile that was made with names.
func TestProfilesAreWrittenAgainWithNames(t *testing.T) {
	dir := t.TempDir()
	for _, format := range []string{"pprof", "otlp"} {
		file := func(name string) string { return filepath.Join(dir, name+"."+format) }
		runProfile(t, wordsRecording, "--symbols=false", "--format", format, "-o", file("bare"))
		runProfile(t, wordsRecording, "--debug-dir", filepath.Dir(wordsRecording), "--format", format, "-o", file("whole"))
		_, messages := runProfile(t, "--symbolize", file("bare"), "--debug-dir", filepath.Dir(wordsRecording), "--debuginfod", "", "-o", file("named"))
		if want := file("bare") + ": frames with new names: 47, with names before: 0, without: 0\n"; !strings.HasSuffix(messages, want) {
			t.Errorf("%s, expected %q", messages, want)
		}
		whole, _ := runProfile(t, file("whole"), "--format", "folded")
		named, _ := runProfile(t, file("named"), "--format", "folded")
		if diff := cmp.Diff(whole, named); diff != "" {
			t.Errorf("%s (-whole +named)\n%s", format, diff)
		}
		_, messages = runProfile(t, "--symbolize", file("named"), "--debuginfod", "", "-o", file("again"))
		if want := "frames with new names: 0, with names before: 47, without: 0\n"; !strings.HasSuffix(messages, want) {
			t.Errorf("%s, expected %q", messages, want)
		}
		_, messages = runProfile(t, "--symbolize", file("bare"), "--debuginfod", "", "-o", file("again"))
		if want := "unwindd: 47 frames of /srv/example/words (build ID 1378eed18eff7300c7d869bea338c3c5be6b655a): "; !strings.HasPrefix(messages, want) {
			t.Errorf("%s, expected %q", messages, want)
		}
	}
}
