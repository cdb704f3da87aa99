// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// raised is the exception that a process said it would end with.
type raised struct {
	Type, Text string
	Frames     [][3]any // function, file, line, innermost first
}

// exception is an exception in unwindd's JSON.
type exception struct {
	Type, Text string
	Traceback  []struct {
		Function, File string
		Line           int
	}
}

// checkRaised compares the exception of the thread that crashed with what the process said before.
func (w *work) checkRaised(name, dir string, l looked) {
	text, err := os.ReadFile(filepath.Join(dir, "raised"))
	if errors.Is(err, fs.ErrNotExist) || l.err != nil {
		return
	}
	var want raised
	if err == nil {
		err = json.Unmarshal(text, &want)
	}
	if err != nil {
		w.fail("%s: %v", name, err)
		return
	}
	for id, have := range l.exceptions {
		if have == nil {
			continue
		}
		if problem := want.compare(have); problem != "" {
			w.fail("%s: the exception of thread %d: %s", name, id, problem)
		}
		return
	}
	w.fail("%s: the exception %s is missing", name, want.Type)
}

// compare says how an exception differs.
func (want *raised) compare(have *exception) string {
	if have.Type != want.Type || have.Text != want.Text {
		return fmt.Sprintf("expected %s: %q, got %s: %q", want.Type, want.Text, have.Type, have.Text)
	}
	expected, got := "", ""
	for _, f := range want.Frames {
		expected += fmt.Sprintf("%v %v:%v; ", f[0], f[1], f[2])
	}
	for _, f := range have.Traceback {
		got += last(f.Function) + " " + f.File + ":" + strconv.Itoa(f.Line) + "; "
	}
	if expected != got {
		return fmt.Sprintf("expected the traceback %s, got %s", expected, got)
	}
	return ""
}
