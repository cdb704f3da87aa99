// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine/trace"
)

func TestALiveViewStaysAtTheBottom(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "perf.data"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(make([]byte, 2_500_000)); err != nil {
		t.Fatal(err)
	}
	rows := 24
	var out bytes.Buffer
	asked := int64(0)
	v := &liveView{
		out: &out, file: file, name: "prog\x1bram", begun: time.Now(), stop: make(chan struct{}), done: make(chan struct{}),
		size: func() (int, int) { return 40, rows },
		profile: func(size int64) (*trace.Profile, error) {
			asked = size
			return nil, errors.New("not yet")
		},
	}
	if v.recorded() != 2_500_000 {
		t.Errorf("%d bytes", v.recorded())
	}
	v.make(v.recorded())
	if asked != 2_500_000 || v.lines != nil {
		t.Errorf("asked for %d bytes, lines %q", asked, v.lines)
	}
	v.lines = viewLines("p: on-cpu\n\nflat function\n1 a\n2 b\n\ntotal calls\n100% main\n 50% a\n\nanother: event\n")
	if got := strings.Join(v.lines, "|"); got != "flat function|1 a|2 b|total calls|100% main| 50% a" {
		t.Errorf("lines %q", got)
	}
	v.draw(2_500_000)
	text := out.String()
	// 12 of 24 lines are the view's: room is made, and the others scroll by themselves.
	mustSay(t, text, strings.Repeat("\n", 12)+"\x1b[12A\x1b7\x1b[1;12r\x1b8", "\x1b[13;1H\x1b[2Krecording prog\\x1bram: 0.", "\x1b[15;1H\x1b[2K1 a\x1b[16;1H", "\x1b[24;1H\x1b[2K\x1b8")
	for line := range strings.SplitSeq(text, "\x1b[2K") {
		if shown, _, _ := strings.Cut(line, "\x1b"); len(shown) > 39 {
			t.Errorf("a line of %d characters: %q", len(shown), shown)
		}
	}
	out.Reset()
	v.draw(2_500_000)
	if strings.Contains(out.String(), "\n") || strings.Contains(out.String(), "r\x1b8") {
		t.Errorf("room is made again: %q", out.String())
	}
	rows = 20
	out.Reset()
	v.draw(2_500_000)
	mustSay(t, out.String(), "\x1b7\x1b[r\x1b8", "\x1b[1;10r")
	out.Reset()
	shownView.Store(v)
	v.mu.Lock()
	restoreTerminal() // while a write blocks, or fails
	v.mu.Unlock()
	if out.Len() > 0 {
		t.Errorf("it did not wait: %q", out.String())
	}
	restoreTerminal()
	mustSay(t, out.String(), "\x1b7\x1b[r\x1b[11;1H\x1b[2K", "\x1b[20;1H\x1b[2K\x1b8")
	out.Reset()
	v.draw(1)
	v.clear()
	shownView.Store(nil)
	if out.Len() > 0 {
		t.Errorf("after its end: %q", out.String())
	}
}
