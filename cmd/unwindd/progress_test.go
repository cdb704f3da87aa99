// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/internal/oracle"
)

// TestProgressIsShownAndCleared: how far work is, stands on a line that is empty when
// it has ended, and on none while a transfer is shown.
func TestProgressIsShownAndCleared(t *testing.T) {
	var out bytes.Buffer
	p := &workProgress{out: &out, what: "samples"}
	p.show(10, 40)
	if !strings.Contains(out.String(), "samples  25%") || !strings.Contains(out.String(), "(10/40") {
		t.Errorf("%q", out.String())
	}
	terminalLine.yield()
	out.Reset()
	time.Sleep(150 * time.Millisecond) // longer than the bar is still
	p.show(20, 40)
	if out.Len() > 0 {
		t.Errorf("with a transfer: %q", out.String())
	}
	terminalLine.restore()
	p.show(50, 40) // the file lied
	if !strings.Contains(out.String(), "100%") {
		t.Errorf("%q", out.String())
	}
	out.Reset()
	p.end()
	p.end()
	if line := out.String(); strings.Trim(line, " \r") != "" || !strings.HasSuffix(line, "\r") {
		t.Errorf("the line is not cleared: %q", line)
	}
	quick := &workProgress{out: &out, since: time.Now(), after: time.Hour}
	out.Reset()
	quick.show(10, 40)
	quick.end()
	if out.Len() > 0 {
		t.Errorf("quick work: %q", out.String())
	}
	var none *workProgress
	none.end()
	if none.callback() != nil {
		t.Error("without a terminal progress is told")
	}
}

// TestProfileShowsProgressOnATerminal makes a profile that takes longer than is not
// worth a line.
func TestProfileShowsProgressOnATerminal(t *testing.T) {
	text, err := os.ReadFile(gpuSamples)
	if err != nil {
		t.Fatal(err)
	}
	var head, samples strings.Builder
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, `"record":"sample"`) {
			samples.WriteString(line)
		} else {
			head.WriteString(line)
		}
	}
	n := strings.Count(samples.String(), "\n")
	file := filepath.Join(t.TempDir(), "many.jsonl")
	const times = 4000
	if err := os.WriteFile(file, []byte(head.String()+strings.Repeat(samples.String(), times)), 0o600); err != nil {
		t.Fatal(err)
	}
	ours, theirs := oracle.Terminal(t)
	cmd := command("profile", "--in-process", "--gpu-samples", file, "-o", os.DevNull)
	cmd.Env, cmd.Stderr = append(cmd.Env, "NO_COLOR=1"), theirs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	out, _ := io.ReadAll(ours) // the end of a terminal is an error
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lines := strings.Split(string(out), "\r")
	shown := 0
	for _, line := range lines {
		if strings.HasPrefix(line, "samples ") && regexp.MustCompile(fmt.Sprintf(`\(\d+/%d..\)`, n*times/100)).MatchString(line) {
			shown++
		}
	}
	if at := bytes.LastIndex(out, []byte("samples  ")); shown == 0 || at < 0 || !bytes.Contains(out[at:], []byte("\r"+file+": ")) {
		t.Errorf("%d lines of %d samples: %q", shown, n*times, out)
	}
}
