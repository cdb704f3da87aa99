// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/subject"
)

// membersWith are the members of a snapshot that have some bytes.
func membersWith(t *testing.T, snapshot string, text []byte) (names []string) {
	t.Helper()
	z, err := zip.OpenReader(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(b, text) {
			names = append(names, f.Name)
		}
	}
	return names
}

// secret is what a file has that a core names.
var secret = bytes.Repeat([]byte("root:$6$secret$:20000:0:99999:7:::\n"), 120)

// secretELF is a file that a hostile core may name: ELF, with a secret in its
// only segment, and a build ID if it is given one.
func secretELF(id []byte) []byte {
	order := binary.LittleEndian
	var note []byte
	if id != nil {
		note = order.AppendUint32(note, 4)
		note = order.AppendUint32(note, uint32(len(id)))
		note = append(order.AppendUint32(note, 3), "GNU\x00"...)
		note = append(note, id...)
	}
	const notes = 64 + 2*56
	b := append([]byte("\x7fELF\x02\x01\x01\x00"), make([]byte, 8)...)
	b = order.AppendUint16(b, 3) // ET_DYN
	b = order.AppendUint16(b, 62)
	b = order.AppendUint32(b, 1)
	for _, v := range []uint64{0, 64, 0} {
		b = order.AppendUint64(b, v)
	}
	b = order.AppendUint32(b, 0)
	for _, v := range []uint16{64, 56, 2, 0, 0, 0} {
		b = order.AppendUint16(b, v)
	}
	size := uint64(notes + len(note) + len(secret))
	program := func(typ, flags uint32, offset, size uint64) {
		b = order.AppendUint32(order.AppendUint32(b, typ), flags)
		for _, v := range []uint64{offset, offset, 0, size, size, 4} {
			b = order.AppendUint64(b, v)
		}
	}
	program(1, 5, 0, size) // PT_LOAD, readable and executable
	program(4, 4, notes, uint64(len(note)))
	return append(append(b, note...), secret...)
}

// hostileCore is the core of a process that never was: it says that a file was
// mapped, and that the stack is in it. It has the file's first bytes itself as
// far as it says them.
func hostileCore(t *testing.T, dir, file string, size uint64, head []byte) string {
	t.Helper()
	const at = 0x7f0000000000
	order := binary.LittleEndian
	note := func(b []byte, typ uint32, data []byte) []byte {
		b = order.AppendUint32(order.AppendUint32(b, 5), uint32(len(data)))
		b = append(order.AppendUint32(b, typ), "CORE\x00\x00\x00\x00"...)
		b = append(b, data...)
		return append(b, make([]byte, -len(data)&3)...)
	}
	status := make([]byte, 336)
	order.PutUint16(status[12:], 11)
	order.PutUint32(status[32:], 4711)
	order.PutUint64(status[112+16*8:], at+0x400) // rip
	order.PutUint64(status[112+19*8:], at+0x800) // rsp
	files := order.AppendUint64(order.AppendUint64(nil, 1), 4096)
	for _, v := range []uint64{at, at + (size+4095)&^4095, 0} {
		files = order.AppendUint64(files, v)
	}
	files = append(append(files, file...), 0)
	notes := note(note(nil, 1, status), 0x46494c45, files)

	b := append([]byte("\x7fELF\x02\x01\x01\x00"), make([]byte, 8)...)
	b = order.AppendUint32(order.AppendUint32(b, 4|62<<16), 1)
	for _, v := range []uint64{0, 64, 0} {
		b = order.AppendUint64(b, v)
	}
	b = order.AppendUint32(b, 0)
	for _, v := range []uint16{64, 56, 2, 0, 0, 0} {
		b = order.AppendUint16(b, v)
	}
	program := func(typ, flags uint32, offset, address, fileSize, size uint64) {
		b = order.AppendUint32(order.AppendUint32(b, typ), flags)
		for _, v := range []uint64{offset, address, 0, fileSize, size, 4} {
			b = order.AppendUint64(b, v)
		}
	}
	const first = 64 + 2*56
	program(4, 0, first, 0, uint64(len(notes)), 0)
	program(1, 5, first+uint64(len(notes)), at, uint64(len(head)), (size+4095)&^4095)
	path := filepath.Join(dir, "hostile.core")
	if err := os.WriteFile(path, append(append(b, notes...), head...), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSnapshotsHaveNoFilesThatTheTargetOnlyNames: a core may name any file of
// this machine. What is of one that the core's own memory does not confirm stays
// where it is, and that is said.
func TestSnapshotsHaveNoFilesThatTheTargetOnlyNames(t *testing.T) {
	id := bytes.Repeat([]byte{0xab}, 20)
	plain, noID, withID := bytes.Clone(secret), secretELF(nil), secretELF(id)
	marker := secret[:100]
	for _, c := range []struct {
		name   string
		file   []byte
		head   int // how much of it the core has
		args   []string
		inside bool
		says   string
	}{
		{"no ELF file", plain, 0, []string{"--files", "--any-file"}, false, ""},
		{"no build ID", noID, 0, []string{"--files"}, false, "the file, and memory that was read from it, is left out, as it has no build ID that the target could state; --any-file puts it in"},
		{"no build ID, memory alone", noID, 0, nil, false, "memory that was read from it is left out, as it has no build ID"},
		{"no build ID, asked for", noID, 0, []string{"--files", "--any-file"}, true, ""},
		{"no build ID, its memory asked for", noID, 0, []string{"--any-file"}, true, ""},
		{"a build ID that the core does not state", withID, 0, []string{"--files"}, false, "is left out, as the target does not state its build ID"},
		{"a build ID that the core does not state, memory alone", withID, 0, nil, false, "is left out, as the target does not state its build ID"},
		{"a build ID that the core states", withID, 64 + 2*56 + 36, []string{"--files"}, true, ""},
		{"headers without a build ID that the core has", noID, 64 + 2*56, []string{"--files"}, false, "it has no build ID that the target could state"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			file := put(t, dir, "shadow", c.file)
			core := hostileCore(t, dir, file, uint64(len(c.file)), c.file[:c.head])
			taken := filepath.Join(dir, "taken.snapshot")
			_, stderr, status := unwindd(t, append([]string{"snapshot", "--in-process", core, "-o", taken}, c.args...)...)
			if status != 0 {
				t.Fatalf("status %d\n%s", status, stderr)
			}
			if members := membersWith(t, taken, marker); (len(members) > 0) != c.inside {
				t.Errorf("the secret is in %q", members)
			}
			if c.says != "" {
				mustSay(t, stderr, "module "+file+": "+file+": ", c.says)
			} else if strings.Contains(stderr, "left out") {
				t.Errorf("says %s", stderr)
			}
			if c.inside || c.args == nil {
				return
			}
			// A snapshot names files as a core does.
			again := filepath.Join(dir, "again.snapshot")
			_, stderr, status = unwindd(t, "snapshot", "--in-process", taken, "--files", "-o", again)
			if members := membersWith(t, again, marker); status != 0 || len(members) > 0 {
				t.Errorf("of the snapshot: status %d, the secret is in %q\n%s", status, members, stderr)
			}
		})
	}
}

// TestSnapshotsHaveNoFileThatTookThePlaceOfAnother: the path of a module has a
// file with another build ID by now.
func TestSnapshotsHaveNoFileThatTookThePlaceOfAnother(t *testing.T) {
	dir := t.TempDir()
	core := filepath.Join(dir, "server.core")
	copyFile(t, "server.core", core, nil)
	other, err := os.ReadFile(subject.Build(t, "frames"))
	if err != nil {
		t.Fatal(err)
	}
	exe := put(t, filepath.Join(dir, "root"), "/srv/example/server", other)
	taken := filepath.Join(dir, "taken.snapshot")
	for _, args := range [][]string{{"--files"}, {"--files", "--any-file"}} {
		_, stderr, status := unwindd(t, append([]string{"snapshot", "--in-process", core, "--sysroot", filepath.Join(dir, "root"), "-o", taken}, args...)...)
		if members := membersWith(t, taken, other[:512]); status != 0 || len(members) > 0 {
			t.Errorf("status %d, %s is in %q\n%s", status, exe, members, stderr)
		}
	}
	// With the file that was loaded, it is inside.
	server, err := os.ReadFile(filepath.Join(crashDir, "server"))
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "root"), "/srv/example/server", server)
	_, stderr, status := unwindd(t, "snapshot", "--in-process", core, "--sysroot", filepath.Join(dir, "root"), "-o", taken, "--files")
	if members := membersWith(t, taken, server); status != 0 || len(members) != 1 || strings.Contains(stderr, "left out") {
		t.Errorf("status %d, the executable is in %q\n%s", status, members, stderr)
	}
}
