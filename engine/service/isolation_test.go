// SPDX-License-Identifier: Apache-2.0

//go:build linux

package service

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// packedBytes returns a gzip of many bytes that are not zero.
func packedBytes(t *testing.T, n int) []byte { return packed(t, bytes.Repeat([]byte("x"), n)) }

// packed returns a gzip of a file.
func packed(t *testing.T, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestWhatIsUnpackedCountsAsTheCallers has a small file that unpacks to more than all requests may have on disk. Another
// one that fits is answered as if it were not packed, and nothing is left.
func TestWhatIsUnpackedCountsAsTheCallers(t *testing.T) {
	o := testOptions(t)
	o.Spool = 32 << 20
	s := start(t, o)
	answer, text := s.ask(t, "POST", "/v1/stack", bytes.NewReader(packedBytes(t, 64<<20)))
	wantProblem(t, answer, text, overShare, "has its share of all bytes on disk")
	s.putCrash(t)
	core := file(t, crashCore)
	want := s.post(t, "/v1/stack?format=text", core)
	if got := s.post(t, "/v1/stack?format=text", packed(t, core)); got != want {
		t.Errorf("packed: %s\nexpected\n%s", got, want)
	}
	until(t, "all bytes are given back", func() bool { return s.budget.inUse() == 0 })
}

// TestUnpackedFilesAreBounded has a file that unpacks to more than --max-unpacked: it is read as far as that.
func TestUnpackedFilesAreBounded(t *testing.T) {
	o := testOptions(t)
	o.Unpack = 1 << 20
	s := start(t, o)
	long := append(file(t, mixed), bytes.Repeat([]byte("x"), 2<<20)...)
	answer, text := s.ask(t, "POST", "/v1/stack", bytes.NewReader(packed(t, long)))
	wantProblem(t, answer, text, unreadable, "it unpacks to more than is allowed (--max-unpacked): 1048576 bytes")
}

// callers gives a server as many callers, whose names are numbers.
func callers(t *testing.T, o *Options, n int) {
	t.Helper()
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "%d %s\n", i, tokenOf(i))
	}
	var err error
	if o.Tokens, err = ReadTokens(strings.NewReader(text.String())); err != nil {
		t.Fatal(err)
	}
}

func tokenOf(caller int) string { return fmt.Sprintf("token-of-caller-%d", caller) }

// askAs has a caller ask for a stack.
func (s *testServer) askAs(t *testing.T, caller int) {
	t.Helper()
	answer, text := s.ask(t, "POST", "/v1/stack", bytes.NewReader(file(t, mixed)), "Authorization", "Bearer "+tokenOf(caller))
	if answer.StatusCode != http.StatusOK {
		t.Fatal(answer.Status, text)
	}
}

// TestAWorkerHasOneCaller has callers ask in turns: each has a worker of its own, which stays warm.
func TestAWorkerHasOneCaller(t *testing.T) {
	o := testOptions(t)
	o.Workers = 1
	callers(t, &o, 2)
	s := start(t, o)
	for range 3 {
		s.askAs(t, 0)
		s.askAs(t, 1)
	}
	if n := strings.Count(s.log.String(), "worker started"); n != 2 {
		t.Errorf("%d workers were started, expected one for each caller", n)
	}
}

// TestIdleWorkersAreFew has more callers than a server keeps workers for: those that were used longest ago end.
func TestIdleWorkersAreFew(t *testing.T) {
	o := testOptions(t)
	o.Workers = 1
	const perPlace = 8
	kept := perPlace * o.Workers
	n := kept + 2
	callers(t, &o, n)
	s := start(t, o)
	for i := range n {
		s.askAs(t, i)
	}
	s.askAs(t, n-1)
	log := s.log.String()
	if started, ended := strings.Count(log, "worker started"), strings.Count(log, "worker replaced"); started != n || ended != n-kept {
		t.Errorf("%d workers were started and %d ended, expected %d and %d", started, ended, n, n-kept)
	}
}

// hoard is the pin that has a worker start processes with much memory. It is their argument, too.
const hoard = "hoard"

// hoarded starts processes, of which no one has too much memory, and waits for its end.
func hoarded(self string) error {
	for range 3 {
		if err := exec.Command(self, hoard).Start(); err != nil { //nolint:gosec,noctx // this executable, until it is ended
			return err
		}
	}
	time.Sleep(time.Minute)
	return fmt.Errorf("%d was not ended", os.Getpid())
}

// hoardMain has 150 MiB of memory.
func hoardMain() {
	b := make([]byte, 150<<20)
	for i := range b {
		b[i] = 1
	}
	time.Sleep(time.Minute)
	fmt.Fprintln(os.Stderr, b[0])
}

// TestAWorkerAndItsProcessesHaveOneLimitOfMemory has processes that are within it, each, and beyond it together.
func TestAWorkerAndItsProcessesHaveOneLimitOfMemory(t *testing.T) {
	if isSanitized {
		t.Skip("the memory of workers is not bounded beside a sanitizer")
	}
	o := testOptions(t)
	o.Memory = 400 << 20
	o.Pins = map[string]string{hoard: o.Self}
	s := start(t, o)
	answer, text := s.ask(t, "POST", "/v1/stack", bytes.NewReader(file(t, mixed)))
	wantProblem(t, answer, text, failed, "the server's log says why")
	if said := s.log.String(); !strings.Contains(said, "expected at most 400 MiB together") {
		t.Errorf("%s\nexpected that it says how much is allowed", said)
	}
	for range 100 {
		if entries := processesWith(t, hoard); len(entries) == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("processes of a worker that was ended are left")
}

// processesWith lists the processes of this executable with an argument.
func processesWith(t *testing.T, argument string) (list []string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if line, err := os.ReadFile("/proc/" + e.Name() + "/cmdline"); err == nil && string(line) == self+"\x00"+argument+"\x00" {
			list = append(list, e.Name())
		}
	}
	return list
}
