// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Debuginfod is elfutils' server of the files of a directory, on this machine's own
// address. It ends with the test.
type Debuginfod struct {
	URL     string
	Process *os.Process
}

// StartDebuginfod starts a server, and waits until it has the file of each path, as
// "buildid/ID/debuginfo".
func StartDebuginfod(t testing.TB, dir string, paths ...string) *Debuginfod {
	t.Helper()
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	_ = l.Close()
	own := t.TempDir()
	cmd := exec.Command(Tool(t, "debuginfod"), "-F", "-p", port, "-d", filepath.Join(own, "db"), "-t0", "-g0", "-c1", dir)
	cmd.Env = append(os.Environ(), "DEBUGINFOD_URLS=", "DEBUGINFOD_CACHE_PATH="+filepath.Join(own, "upstream"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	s := &Debuginfod{"http://127.0.0.1:" + port, cmd.Process}
	for end := time.Now().Add(time.Minute); !s.has(paths); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("debuginfod of %s does not have %q", dir, paths)
		}
	}
	return s
}

// has reports whether the server has the files of some paths.
func (s *Debuginfod) has(paths []string) bool {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, path := range paths {
		r, err := client.Get(s.URL + "/" + path)
		if err != nil {
			return false
		}
		_ = r.Body.Close()
		if r.StatusCode != http.StatusOK {
			return false
		}
	}
	return true
}
