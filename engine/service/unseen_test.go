// SPDX-License-Identifier: Apache-2.0

//go:build linux

package service

import (
	"bytes"
	"debug/elf"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/oracle"
)

// A lost Remote has no file, and says so by a path of this machine.
type lost struct{ at string }

// Fetch implements object.Remote.
func (l lost) Fetch(object.RemoteFile) (string, []object.Attempt) {
	return "", []object.Attempt{
		{Path: l.at + "/cache", Reason: "no server had it a short time ago", Kind: object.Absent},
		{Path: l.at + "/cache", Reason: "write " + l.at + "/cache: no space left on device", Kind: object.Unreadable},
	}
}

// damaged is the executable of the core with bytes of a section that are not right.
func damaged(t *testing.T, sections ...string) []byte {
	t.Helper()
	b := bytes.Clone(file(t, crashExe))
	f, err := elf.NewFile(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range sections {
		s := f.Section(name)
		if s == nil {
			t.Fatalf("%s has no %s", crashExe, name)
		}
		for i := s.Offset; i < s.Offset+s.FileSize; i++ {
			b[i] = 0xff
		}
	}
	return b
}

// TestServerIsUnseen says that no answer names a path of the server, whatever is missing or
// damaged there, and that a caller reads what he can do.
func TestServerIsUnseen(t *testing.T) {
	options := testOptions(t)
	at := filepath.Dir(options.State)
	debugDir, sysroot := filepath.Join(at, "debug"), filepath.Join(at, "root")
	write := func(path string, content []byte) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	forms := []string{
		"/v1/stack?locals&source=3&code=3&registers", "/v1/stack?format=text&locals&source=3&code=3", "/v1/stack?format=html&locals&source=3",
		"/v1/stack?format=breakpad", "/v1/stack?signature&format=text",
	}
	check := func(s *testServer) (text string) {
		t.Helper()
		for _, form := range forms {
			text = s.post(t, form, file(t, crashCore))
			for _, hidden := range []string{at, url.PathEscape(at), "nothing/"} {
				if i := strings.Index(text, hidden); i >= 0 {
					t.Errorf("%s has %q: %q", form, hidden, text[max(0, i-200):min(len(text), i+200)])
				}
			}
		}
		return s.post(t, forms[0], file(t, crashCore))
	}

	oracle.Tools(t, "objcopy")
	options.Remote = lost{at}
	s := start(t, options)
	if text := check(s); !strings.Contains(text, "/srv/example/server: its file is not here: put it by its build ID, "+crashID) {
		t.Errorf("what can be done is not said: %.2000s", text)
	}
	answer, text := s.ask(t, http.MethodPut, "/v1/objects/"+crashID, bytes.NewReader(damaged(t, ".eh_frame", ".debug_line")))
	if answer.StatusCode != http.StatusCreated {
		t.Fatalf("%s: %s", answer.Status, text)
	}
	if text := check(s); !strings.Contains(text, "/srv/example/server: ") {
		t.Errorf("what is damaged is not said: %.2000s", text)
	}

	// What is at two places of the server may be called the same in the target: each is looked at.
	stripped, debug := filepath.Join(at, "stripped"), filepath.Join(at, "only.debug")
	oracle.Run(t, "objcopy", "--strip-all", crashExe, stripped)
	oracle.Run(t, "objcopy", "--only-keep-debug", crashExe, debug)
	parts := options
	parts.State, parts.Run, parts.Remote = filepath.Join(at, "s3"), filepath.Join(at, "r3"), nil
	s = start(t, parts)
	for _, path := range []string{stripped, debug} {
		if answer, text := s.ask(t, http.MethodPut, "/v1/objects/"+crashID, bytes.NewReader(file(t, path))); answer.StatusCode >= 300 {
			t.Fatalf("%s: %s", answer.Status, text)
		}
	}
	if text := check(s); !strings.Contains(text, `"function": "content_length"`) {
		t.Errorf("the debug file that was put was not taken: %.2000s", text)
	}

	write(filepath.Join(sysroot, "srv/example/server"), []byte("no code"))
	write(filepath.Join(debugDir, "server.debug"), []byte("no code"))
	options.Sysroot, options.DebugDirs, options.State, options.Run = sysroot, []string{debugDir}, filepath.Join(at, "s2"), filepath.Join(at, "r2")
	s = start(t, options)
	if text := check(s); !strings.Contains(text, "tried /srv/example/server (not an ELF file); server (a server that may have it does not give it)") {
		t.Errorf("what was tried is not said: %.2000s", text)
	}
	write(filepath.Join(sysroot, "srv/example/server"), damaged(t, ".debug_info", ".debug_line"))
	s = start(t, options)
	if text := check(s); !strings.Contains(text, `"function": "main"`) {
		t.Errorf("the file beneath the sysroot was not taken: %.2000s", text)
	}
}
