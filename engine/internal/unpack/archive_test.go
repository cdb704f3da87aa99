// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
)

// entry is a member of an archive that a test makes.
type entry struct {
	name, data string
	kind       byte // of tar; 0: a regular file
}

func tarOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: 0o600, Size: int64(len(e.data)), Typeflag: tar.TypeReg}
		if e.kind != 0 {
			h.Typeflag, h.Linkname, h.Size = e.kind, e.data, 0
		}
		err := w.WriteHeader(h)
		if err == nil && e.kind == 0 {
			_, err = io.WriteString(w, e.data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		if e.kind == tar.TypeSymlink {
			h.SetMode(os.ModeSymlink | 0o777)
		}
		m, err := w.CreateHeader(h)
		if err == nil {
			_, err = io.WriteString(m, e.data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// membersOf are the members of an archive, each with its bytes or its error.
func membersOf(data []byte, o Options) (list []string, err error) {
	err = Members(data, o, func(m Member) error {
		if m.File == nil {
			list = append(list, m.Name+" ! "+m.Err.Error())
			return nil
		}
		b, err := io.ReadAll(m.File)
		list = append(list, m.Name+" = "+string(b[:min(len(b), 20)]))
		return errors.Join(err, m.File.Close())
	})
	return list, err
}

func TestMembersOfArchivesAreRead(t *testing.T) {
	entries := []entry{
		{"rank0/core", "first", 0}, {"rank1/", "", tar.TypeDir}, {"rank1/core", "second", 0}, {"link", "/etc/passwd", tar.TypeSymlink},
		{"../../etc/passwd", "third", 0}, {"/etc/shadow", "fourth", 0}, {`..\..\x`, "fifth", 0}, {"a/../../b", "sixth", 0}, {strings.Repeat("n", 90) + "\xff", "seventh", 0},
	}
	want := []string{
		"rank0/core = first", "rank1/core = second", "etc/passwd = third", "etc/shadow = fourth", "x = fifth", "b = sixth", strings.Repeat("n", 90) + "? = seventh",
	}
	for name, data := range map[string][]byte{"tar": tarOf(t, entries...), "zip": zipOf(t, append(entries[:1:1], entries[2:]...)...)} {
		if !IsArchive(data) {
			t.Errorf("%s: it is no archive", name)
		}
		got, err := membersOf(data, Options{})
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
}

// TestArchivesAreToldFromTargets: a snapshot is a ZIP file, too.
func TestArchivesAreToldFromTargets(t *testing.T) {
	dir := t.TempDir()
	one := tarOf(t, entry{name: "core", data: "x"})
	for name, c := range map[string]struct {
		data []byte
		want bool
	}{
		"a.tar": {one, true}, "a.tar.gz": {gzipped(t, one), true}, "a.zip": {zipOf(t, entry{name: "core", data: "x"}), true}, "empty.zip": {zipOf(t), true},
		"a.snapshot":     {zipOf(t, entry{name: SnapshotMember, data: "{}"}), false},
		"other.snapshot": {zipOf(t, entry{name: "memory/0.bin", data: "x"}, entry{name: SnapshotMember, data: "{}"}), false},
		"half.zip":       {zipOf(t, entry{name: "core", data: "x"})[:40], false},
		"text":           {[]byte("PK is how this text begins"), false}, "zeros": {make([]byte, 4096), false}, "core.gz": {gzipped(t, []byte("\x7fELF")), false}, "none": {nil, false},
		"wrong.tar": {append([]byte("x"), one[1:]...), false},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, c.data, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := IsArchiveFile(path); got != c.want {
			t.Errorf("%s: an archive is %v, expected %v", name, got, c.want)
		}
		if isPlain := !strings.HasSuffix(name, ".gz"); isPlain && IsArchive(c.data) != c.want {
			t.Errorf("the bytes of %s: expected %v", name, c.want)
		}
	}
	if IsArchiveFile(dir) || IsArchiveFile(filepath.Join(dir, "nothing")) {
		t.Error("a folder, or nothing, is an archive")
	}
}

func TestArchivesThatUnpackToTooMuch(t *testing.T) {
	large := strings.Repeat("x", 1<<20)
	for name, data := range map[string][]byte{
		"zip": zipOf(t, entry{name: "small", data: "y"}, entry{name: "a", data: large}, entry{name: "b", data: large}, entry{name: "c", data: large}),
		"tar": tarOf(t, entry{name: "small", data: "y"}, entry{name: "a", data: large}, entry{name: "b", data: large}, entry{name: "c", data: large}),
	} {
		got, err := membersOf(data, Options{MaxBytes: 3 << 19})
		if len(got) != 3 || !strings.HasPrefix(got[1], "a = x") || !strings.HasPrefix(got[2], "b ! ") || err == nil || !strings.Contains(err.Error(), "--max-unpacked): those behind b are not read") {
			t.Errorf("%s: %v, %.100q", name, err, got)
		}
		got, err = membersOf(data, Options{MaxBytes: 1 << 10})
		if len(got) != 2 || !strings.Contains(got[1], "more than is allowed") || err == nil {
			t.Errorf("%s: %v, %.100q", name, err, got)
		}
	}
	// A member that says it has a terabyte of holes.
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	_ = w.WriteHeader(&tar.Header{Name: "huge", Mode: 0o600, Size: 1 << 40, Typeflag: tar.TypeReg})
	_, _ = w.Write(make([]byte, 4096))
	got, err := membersOf(b.Bytes(), Options{})
	if len(got) != 1 || !strings.Contains(got[0], "huge ! ") || err == nil {
		t.Errorf("%v, %q", err, got)
	}
}

func TestDamagedArchives(t *testing.T) {
	data := zipOf(t, entry{name: "a", data: strings.Repeat("abcdefgh", 100)}, entry{name: "b", data: "second"})
	damaged := bytes.Clone(data)
	damaged[40] ^= 0xff // of the first member
	got, err := membersOf(damaged, Options{})
	if len(got) != 2 || !strings.HasPrefix(got[0], "a ! ") || got[1] != "b = second" || err != nil {
		t.Errorf("%v, %q", err, got)
	}
	whole := tarOf(t, entry{name: "a", data: "first"}, entry{name: "b", data: "second"})
	got, err = membersOf(whole[:1024+100], Options{})
	if len(got) != 1 || err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("%v, %q", err, got)
	}
	stop := errors.New("enough")
	if err := Members(whole, Options{}, func(m Member) error { return errors.Join(stop, m.File.Close()) }); !errors.Is(err, stop) {
		t.Errorf("%v, expected the caller's error", err)
	}
	if err := Members([]byte("no archive"), Options{}, nil); err == nil {
		t.Error("text is an archive")
	}
}

func FuzzMembers(f *testing.F) {
	one := []entry{{name: "a", data: "first"}, {name: "../b", data: strings.Repeat("b", 600)}}
	f.Add(tarOf(f, one...))
	f.Add(zipOf(f, one...))
	f.Add(zipOf(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 || !IsArchive(data) {
			return
		}
		var total int64
		_ = Members(data, Options{MaxBytes: 1 << 20}, func(m Member) error {
			if strings.HasPrefix(m.Name, "/") || strings.HasPrefix(m.Name, "..") || m.Name == "" || (m.File == nil) == (m.Err == nil) {
				return fmt.Errorf("a member %q", m.Name)
			}
			if m.File == nil {
				return nil
			}
			info, err := m.File.Stat()
			if err != nil {
				t.Fatal(err)
			}
			if total += info.Size(); total > 1<<20 {
				t.Fatalf("%d bytes", total)
			}
			return m.File.Close()
		})
	})
}
