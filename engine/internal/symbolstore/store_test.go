// SPDX-License-Identifier: Apache-2.0

package symbolstore

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"

	"github.com/unwindd/unwindd/engine/internal/download"
	"github.com/unwindd/unwindd/engine/object"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	name    = "kernel32.pdb"
	id      = "5A9832E5287241C1838ED98914E9B7FFa"
	otherID = "00000000000000000000000000000001"
)

var symbols = object.RemoteFile{Kind: object.RemoteSymbols, Name: name, ID: id}

// symbolFile is one of about a size.
func symbolFile(id string, size int) []byte {
	text := fmt.Sprintf("MODULE windows x86_64 %s %s\nFUNC 1000 10 0 f\n", id, name)
	return append([]byte(text), bytes.Repeat([]byte("PUBLIC 2000 0 g\n"), size/16)...)
}

// client is one of stores, with a cache of its own.
func client(t *testing.T, change func(*download.Options), stores ...string) Client {
	t.Helper()
	o := download.Options{Cache: t.TempDir(), Timeout: 5 * time.Second}
	if change != nil {
		change(&o)
	}
	c, err := New(stores, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// put writes a file of a store.
func put(t *testing.T, dir, place string, data []byte) {
	t.Helper()
	place = filepath.Join(dir, place)
	if err := os.MkdirAll(filepath.Dir(place), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(place, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// gets fails where the stores have not a file, or other bytes.
func gets(t *testing.T, c Client, of object.RemoteFile, want []byte) (path string) {
	t.Helper()
	path, tried := c.Fetch(of)
	if path == "" {
		t.Errorf("%s %s is not found: %v", of.Name, of.ID, tried)
		return ""
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s has %d bytes, expected %d: %v", path, len(got), len(want), err)
	}
	return path
}

// refuses fails where the stores have a file, or have it not for another reason.
func refuses(t *testing.T, c Client, of object.RemoteFile, kind object.AttemptKind, reason string) {
	t.Helper()
	path, tried := c.Fetch(of)
	if path != "" || len(tried) == 0 {
		t.Errorf("%q %q is found at %q, expected that it is not: %q; tried %v", of.Name, of.ID, path, reason, tried)
		return
	}
	if last := tried[len(tried)-1]; last.Kind != kind || !strings.Contains(last.Reason, reason) {
		t.Errorf("%q %q: %+v, expected kind %d, %q", of.Name, of.ID, last, kind, reason)
	}
}

// TestLayouts finds each kind of file in each place that writers of stores put it at.
func TestLayouts(t *testing.T) {
	sym := symbolFile(id, 0)
	exe := peFile(0x590285e9, 0xe0000)
	elf, err := os.ReadFile("../../../examples/crash/server")
	if err != nil {
		t.Fatal(err)
	}
	o, err := object.New("server", elf)
	if err != nil {
		t.Fatal(err)
	}
	elfID := fmt.Sprintf("%x", o.BuildID())
	code := object.RemoteFile{Kind: object.RemoteCode, Name: "Kernel32.dll", ID: "590285E9e0000"}
	server := object.RemoteFile{Kind: object.RemoteExecutable, Name: "server", BuildID: o.BuildID()}
	tests := []struct {
		of    object.RemoteFile
		place string
		data  []byte
	}{
		{symbols, "kernel32.pdb/" + id + "/kernel32.sym", sym},
		{symbols, "kernel32.pdb/" + strings.ToUpper(id) + "/kernel32.sym", sym},
		{symbols, "kernel32.pdb/" + strings.ToLower(id) + "/kernel32.sym", sym},
		{symbols, "kernel32.sym", sym},
		{object.RemoteFile{Kind: object.RemoteSymbols, Name: name, ID: strings.ToLower(id)}, "kernel32.pdb/" + id + "/kernel32.sym", sym},
		{object.RemoteFile{Kind: object.RemoteSymbols, Name: "libc.so.6", ID: id}, "libc.so.6/" + id + "/libc.so.6.sym", sym},
		{code, "Kernel32.dll/590285E9e0000/Kernel32.dll", exe},
		{code, "Kernel32.dll/590285E9E0000/Kernel32.dll", exe},
		{code, "kernel32.dll/590285e9e0000/kernel32.dll", exe},
		{object.RemoteFile{Kind: object.RemoteCode, Name: "server", ID: elfID}, "server/" + elfID + "/server", elf},
		{server, "server/elf-buildid-" + elfID + "/server", elf},
		{object.RemoteFile{Kind: object.RemoteDebuginfo, BuildID: o.BuildID()}, "_.debug/elf-buildid-sym-" + elfID + "/_.debug", elf},
	}
	for _, tt := range tests {
		dir := t.TempDir()
		put(t, dir, tt.place, tt.data)
		gets(t, client(t, nil, dir), tt.of, tt.data)
		gets(t, client(t, nil, "file://"+dir), tt.of, tt.data)
		if strings.Contains(tt.place, "/") {
			s := httptest.NewServer(http.FileServer(http.Dir(dir)))
			c := client(t, nil, s.URL)
			gets(t, c, tt.of, tt.data)
			s.Close()
			gets(t, c, tt.of, tt.data) // from the cache
		}
		other := tt.of
		other.BuildID, other.ID = bytes.Clone(other.BuildID), otherID
		if len(other.BuildID) > 0 {
			other.BuildID[0]++
		}
		if path, _ := client(t, nil, dir).Fetch(other); path != "" {
			t.Errorf("%s is found for another build", tt.place)
		}
	}
}

// peFile is the headers of a PE file with a time and a size.
func peFile(time, size uint32) []byte {
	b := make([]byte, 0x400)
	copy(b, "MZ")
	b[0x3c] = 0x80
	copy(b[0x80:], "PE\x00\x00\x64\x86")
	binary.LittleEndian.PutUint32(b[0x88:], time)
	b[0x94] = 0xf0 // the optional header
	b[0x96] = 0x22
	h := b[0x98:]
	binary.LittleEndian.PutUint16(h, 0x20b)
	binary.LittleEndian.PutUint64(h[24:], 0x140000000)
	binary.LittleEndian.PutUint32(h[32:], 0x1000)
	binary.LittleEndian.PutUint32(h[36:], 0x200)
	binary.LittleEndian.PutUint32(h[56:], size)
	binary.LittleEndian.PutUint32(h[60:], 0x400)
	binary.LittleEndian.PutUint32(h[108:], 16)
	return b
}

// hostileNames are what a dump may call its modules.
var hostileNames = []string{
	"", ".", "..", "../kernel32.pdb", "a/b", `a\b`, `..\kernel32.pdb`, "/etc/passwd", `C:\x.pdb`, "a\x00b", "a\nb", "a\x7fb", "\xff",
	strings.Repeat("a", 300),
}

// TestNamesThatLeadElsewhere asks for names that are paths, and identifiers that are none.
// Nobody is asked for them.
func TestNamesThatLeadElsewhere(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "kernel32.sym", symbolFile(id, 0))
	store := filepath.Join(dir, "store")
	put(t, store, "readme", nil)
	var requests atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	defer s.Close()
	for _, kind := range []object.RemoteKind{object.RemoteSymbols, object.RemoteCode, object.RemoteExecutable} {
		for _, name := range hostileNames {
			of := object.RemoteFile{Kind: kind, Name: name, ID: id, BuildID: []byte{1, 2, 3}}
			refuses(t, client(t, nil, store), of, object.Unreadable, "not asked")
			refuses(t, client(t, nil, s.URL), of, object.Unreadable, "not asked")
		}
	}
	for _, id := range []string{"", "..", "../..", "5A98/", "xyz", strings.Repeat("a", 200)} {
		of := object.RemoteFile{Kind: object.RemoteSymbols, Name: name, ID: id}
		refuses(t, client(t, nil, store), of, object.Unreadable, "no identifier")
		refuses(t, client(t, nil, s.URL), of, object.Unreadable, "no identifier")
	}
	if n := requests.Load(); n > 0 {
		t.Errorf("%d requests, expected none", n)
	}
	// A link in the store does not lead out of it.
	if err := os.Symlink("../kernel32.sym", filepath.Join(store, "kernel32.sym")); err != nil {
		t.Fatal(err)
	}
	if path, _ := client(t, nil, store).Fetch(symbols); path != "" {
		t.Errorf("a link leads to %s", path)
	}
}

// TestAnswersOfServers takes what is whole and right, and keeps nothing else.
func TestAnswersOfServers(t *testing.T) {
	sym := symbolFile(id, 1<<20)
	var zipped, packed bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write(sym)
	_ = z.Close()
	p, _ := zstd.NewWriter(&packed)
	_, _ = p.Write(sym)
	_ = p.Close()
	encoded := func(encoding string, data []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", encoding)
			_, _ = w.Write(data)
		}
	}
	tests := []struct {
		name   string
		answer http.HandlerFunc
		kind   object.AttemptKind
		reason string // "": it is taken
	}{
		{"plain", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(sym) }, 0, ""},
		{"gzip", encoded("gzip", zipped.Bytes()), 0, ""},
		{"zstd", encoded("zstd", packed.Bytes()), 0, ""},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/elsewhere" {
				http.Redirect(w, r, "/elsewhere", http.StatusFound)
				return
			}
			_, _ = w.Write(sym)
		}, 0, ""},
		{"none", http.NotFound, object.Absent, "does not have it"},
		{"endless redirects", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path+"a", http.StatusFound) }, object.Unreadable, "redirects more than"},
		{"other scheme", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "file:///etc/passwd")
			w.WriteHeader(http.StatusFound)
		}, object.Unreadable, "redirects to file:"},
		{"forbidden", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, object.Unreadable, "403"},
		{"other build", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(symbolFile(otherID, 0)) }, object.Mismatched, "expected " + id},
		{"no symbols", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>sign in</html>")) }, object.Unreadable, "no symbol file"},
		{"empty", func(http.ResponseWriter, *http.Request) {}, object.Unreadable, "empty"},
		{"cut", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(sym)))
			_, _ = w.Write(sym[:1<<19])
		}, object.Unreadable, "cut"},
		{"cut gzip", encoded("gzip", zipped.Bytes()[:zipped.Len()-20]), object.Unreadable, "cut"},
		{"cut zstd", encoded("zstd", packed.Bytes()[:packed.Len()-20]), object.Unreadable, "cut"},
		{"no gzip", encoded("gzip", sym), object.Unreadable, "no gzip"},
		{"other encoding", encoded("br", sym), object.Unreadable, `encoding "br"`},
		{"huge", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "9000000000")
			w.WriteHeader(http.StatusOK)
		}, object.Unreadable, "expected at most"},
		{"endless", encoded("zstd", endless()), object.Unreadable, "more than"},
		{"slow", func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write(sym[:100])
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, object.Unreadable, "too slow"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := httptest.NewServer(tt.answer)
			defer s.Close()
			var cache string
			c := client(t, func(o *download.Options) {
				o.Timeout, o.MaxSize, cache = 500*time.Millisecond, 4<<20, o.Cache
			}, s.URL)
			if tt.reason == "" {
				if path := gets(t, c, symbols, sym); !strings.HasPrefix(path, cache) {
					t.Errorf("it is at %s, expected in the cache %s", path, cache)
				}
				return
			}
			refuses(t, c, symbols, tt.kind, tt.reason)
			if kept := bytesIn(t, cache); kept > 0 {
				t.Errorf("%d bytes are kept", kept)
			}
		})
	}
}

// endless are 16 GB of zeros.
func endless() []byte {
	var b bytes.Buffer
	z, _ := zstd.NewWriter(&b)
	chunk := make([]byte, 16<<20)
	for range 64 {
		_, _ = z.Write(chunk)
	}
	_ = z.Close()
	return b.Bytes()
}

// bytesIn is how many bytes the files of the cache have, beside its settings.
func bytesIn(t *testing.T, dir string) (size int64) {
	t.Helper()
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() && !strings.HasSuffix(path, "_s") {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return size
}

// TestStoresAreAskedInTheirOrder takes the first that has a file, and what one server does
// not have from the next. That none has it is remembered.
func TestStoresAreAskedInTheirOrder(t *testing.T) {
	sym := symbolFile(id, 0)
	var asked []string
	serve := func(name string, has bool) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked = append(asked, name)
			if !has {
				http.NotFound(w, r)
				return
			}
			_, _ = w.Write(sym)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	empty, full := t.TempDir(), t.TempDir()
	put(t, full, "kernel32.sym", sym)
	c := client(t, nil, empty, serve("a", false), serve("b", true), full)
	path := gets(t, c, symbols, sym)
	if strings.HasPrefix(path, full) || !slices.Equal(slices.Compact(asked), []string{"a", "b"}) {
		t.Errorf("%s is taken, %v were asked", path, asked)
	}
	asked = nil
	if gets(t, c, symbols, sym); len(asked) > 0 {
		t.Errorf("%v were asked again", asked)
	}
	if path := gets(t, client(t, nil, full, serve("c", true)), symbols, sym); path != filepath.Join(full, "kernel32.sym") || len(asked) > 0 {
		t.Errorf("%s is taken, %v were asked", path, asked)
	}
}

// TestSingleFiles is of a symbol file that the user names.
func TestSingleFiles(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "any", symbolFile(id, 0))
	c := client(t, nil, filepath.Join(dir, "any"))
	gets(t, c, symbols, symbolFile(id, 0))
	refuses(t, c, object.RemoteFile{Kind: object.RemoteSymbols, Name: name, ID: otherID}, object.Mismatched, "expected "+otherID)
	refuses(t, c, object.RemoteFile{Kind: object.RemoteSymbols, Name: "ntdll.pdb", ID: otherID}, object.Absent, "expected "+otherID)
}

// TestBadCabinetsAreSaid is of code that a store has compressed.
func TestBadCabinetsAreSaid(t *testing.T) {
	of := object.RemoteFile{Kind: object.RemoteCode, Name: "kernel32.dll", ID: "590285E9e0000"}
	dir := t.TempDir()
	put(t, dir, "kernel32.dll/590285E9e0000/kernel32.dl_", []byte("MSCF"))
	refuses(t, client(t, nil, dir), of, object.Unreadable, "cabinet")
	s := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer s.Close()
	refuses(t, client(t, nil, s.URL), of, object.Unreadable, "cabinet")
	put(t, dir, "kernel32.dll/590285E9e0000/kernel32.dll", []byte("MSCF"))
	refuses(t, client(t, nil, dir), of, object.Unreadable, "cabinet")
}

func TestStoresThatAreNone(t *testing.T) {
	for _, text := range []string{"ftp://host/", "http://", "/no/such/directory", "/dev/null", "http://a b/"} {
		if _, err := New([]string{text}, download.Options{}); err == nil {
			t.Errorf("%s is a store", text)
		}
	}
}

func FuzzKeys(f *testing.F) {
	f.Add("symbols", name, id, []byte{1})
	for _, name := range hostileNames {
		f.Add("code", name, "1a", []byte{})
	}
	f.Fuzz(func(t *testing.T, kind, name, id string, buildID []byte) {
		keys, err := keysOf(object.RemoteFile{Kind: object.RemoteKind(kind), Name: name, ID: id, BuildID: buildID})
		if err != nil {
			return
		}
		for i := range keys {
			for _, part := range keys[i].parts() {
				if part == "" || part == "." || part == ".." || strings.ContainsAny(part, "/\\\x00\n") || len(part) > 255 {
					t.Errorf("%q of %q %q", part, name, id)
				}
			}
		}
	})
}
