// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestAnnotateSaysWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
		exit int
	}{
		{[]string{wordsRecording, "--annotate", "insrt"}, "no function insrt was sampled or called; near are: insert(Node*, unsigned int)", 1},
		{[]string{wordsRecording, "--annotate", "nothing_like_this"}, "no function nothing_like_this was sampled or called", 1},
		{[]string{wordsRecording, "--annotate", "insert", "--symbols=false"}, "expected neither --http nor --symbols=false", 2},
		{[]string{wordsRecording, "--annotate", "insert", "--format", "folded"}, "--annotate writes text or JSON", 2},
		{[]string{wordsRecording, "--disassembler", "x"}, "expected --annotate FUNCTION too", 2},
	} {
		cmd := command(append([]string{"profile", "--in-process"}, c.args...)...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		_ = cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code != c.exit || !strings.Contains(stderr.String(), c.want) {
			t.Errorf("%q: exit status %d, %s", c.args, code, &stderr)
		}
	}
}
