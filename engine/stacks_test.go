// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"archive/zip"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/internal/enginetest"
)

// This file has what tests of whole stacks share.

const (
	serverCore = "../examples/crash/server.core"
	mixed      = "../examples/mixed/mixed.snapshot"
)

// long leaves a comparison of many alike, or one of every entry of large files, out of
// -short, which is how the race detector runs: there it takes many times as long, and the
// race detector sees nothing in it that it does not see elsewhere.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes long: run without -short")
	}
}

// madeOf has a target's executable in a file.
func madeOf(exe string) func(*enginetest.Ask) {
	return func(a *enginetest.Ask) { a.Engine.Exe = exe }
}

// under has a target's files looked up in a folder.
func under(sysroot string) func(*enginetest.Ask) {
	return func(a *enginetest.Ask) { a.Engine.Sysroot = sysroot }
}

// hexOf is a number in hexadecimal.
func hexOf(t *testing.T, s string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(strings.TrimPrefix(s, "0x"), 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// physicalPCs are the PCs of the frames that are not inlined calls.
func physicalPCs(th *report.Thread) []string {
	pcs := []string{}
	for _, f := range th.Frames {
		if !f.Inlined {
			pcs = append(pcs, f.PC)
		}
	}
	return pcs
}

// functions are the names of a thread's physical frames, innermost first, without the ABI
// that Go's linker adds.
func functions(th *report.Thread) (names []string) {
	for i := range th.Frames {
		if f := &th.Frames[i]; !f.Inlined {
			names = append(names, strings.TrimSuffix(f.Function, ".abi0"))
		}
	}
	return names
}

// crashed is the thread that crashed.
func crashed(t *testing.T, r *report.Report) *report.Thread {
	t.Helper()
	for i := range r.Threads {
		if r.Threads[i].Crashed {
			return &r.Threads[i]
		}
	}
	t.Fatal("no thread crashed")
	return nil
}

// copied is a copy of a file, for a test that removes it.
func copied(t *testing.T, file, name string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// archive writes a snapshot with members.
func archive(t *testing.T, members map[string][]byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "made.snapshot")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	for member, data := range members {
		w, err := z.Create(member)
		if err == nil {
			_, err = w.Write(data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}
