// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
	"golang.org/x/sys/unix"

	"github.com/unwindd/unwindd/internal/oracle"
)

// This file sends a server files that were made to harm it.

// A canary is files that no server has a reason to open.
type canary struct {
	watch int // of inotify
}

// newCanary watches files.
func newCanary(t *testing.T, paths ...string) *canary {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	for _, path := range paths {
		if _, err := unix.InotifyAddWatch(fd, path, unix.IN_OPEN|unix.IN_ACCESS); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	return &canary{fd}
}

// isDead says whether a file was opened since it was last asked.
func (c *canary) isDead() bool {
	n, err := unix.Read(c.watch, make([]byte, 4096))
	return err == nil && n > 0
}

// aSnapshot is a snapshot of one module and one thread in it. path and file are the module's.
func aSnapshot(t *testing.T, path, file string, more ...zipMember) []byte {
	t.Helper()
	b, err := json.Marshal(map[string]any{
		"format_version": 1,
		"modules": []any{map[string]any{
			"path": path, "build_id": "01092ed6fbfc989c60cdda4dd2cc30a56e23db6d", "arch": "x86_64", "file": file, "source_module": file,
			"segments": []any{map[string]any{"address": "0x401000", "size": "0x80000", "start": "0x401000"}},
		}},
		"threads": []any{map[string]any{"id": "1", "arch": "x86_64", "registers": map[string]string{"rip": "0x401941", "rsp": "0x7ff000"}}},
		"memory":  []any{map[string]any{"address": "0x7ff000", "file": file}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return zipped(t, append([]zipMember{{"snapshot.json", b}}, more...))
}

// TestServeOpensNoFileThatIsNamed has files that name others of the server's machine, everywhere
// where a file names one: none is opened, and nothing of any is in an answer.
func TestServeOpensNoFileThatIsNamed(t *testing.T) {
	oracle.Tool(t, "objcopy")
	dir, err := os.MkdirTemp("/tmp", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	// The folder of its source files has a name of 8 bytes in the debug information.
	sources := filepath.Join("/tmp", filepath.Base(dir)[:3])
	if err := os.Symlink(dir, sources); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(sources) })
	exe, source := filepath.Join(dir, "server"), filepath.Join(dir, "server.c")
	copyFile(t, "server", exe, nil)
	copyFile(t, "server.c", source, nil)
	d := startDaemon(t, shortDir(t), nil, "--workers", "1")
	put := namesFiles(t, dir, sources, exe)
	c := newCanary(t, exe, source)
	if b, err := os.ReadFile(exe); err != nil || !c.isDead() {
		t.Fatalf("%v: that a file of %d bytes is read is not seen", err, len(b))
	}
	id := hex.EncodeToString(noteID(put))
	up := strings.Repeat("../", 12) + strings.TrimPrefix(exe, "/")
	corrupt := bytes.ReplaceAll(core(t), []byte("/srv/example/server\x00"), append([]byte(sources+"/server\x00"), make([]byte, 4)...))
	requests := []struct {
		method, path string
		body         []byte
	}{
		{"POST", "/v1/stack?format=text&source=5&locals", aSnapshot(t, exe, exe)},
		{"POST", "/v1/stack?format=text&source=5&locals", aSnapshot(t, up, up)},
		{"POST", "/v1/stack?format=text", aSnapshot(t, exe, up, zipMember{up, []byte("x")})},
		{"POST", "/v1/snapshot?files", aSnapshot(t, exe, "file://"+exe)},
		{"POST", "/v1/stack?format=text&name=" + exe, corrupt},
		{"POST", "/v1/stack?format=text&globals=" + exe + "&thread=" + exe, corrupt},
		{"POST", "/v1/eval?arch=" + exe + "&expr=" + exe, nil},
		{"PUT", "/v1/objects/" + id, put},
		{"POST", "/v1/symbolize?build-id=" + id, []byte(`{"addresses":["0x401941"]}`)},
		{"POST", "/v1/stack?format=text&source=9&locals&crashed", core(t)},
		{"POST", "/v1/stack?format=html&source=9&code=9&crashed", core(t)},
	}
	for _, r := range requests {
		_, text := d.request(t, r.method, r.path, bytes.NewReader(r.body))
		if c.isDead() {
			t.Errorf("%s %s: a file was opened that only it names:\n%.2000s", r.method, r.path, text)
		}
		if strings.Contains(text, "strtol(h->value") || strings.Contains(text, "headers[i].value") {
			t.Errorf("%s %s: a line of a file of the server:\n%.2000s", r.method, r.path, text)
		}
	}
	if _, text := d.request(t, "POST", "/v1/stack?format=text&crashed", bytes.NewReader(core(t))); !strings.Contains(text, "content_length "+sources+"/server.c") {
		t.Errorf("what was put is not used:\n%s", text)
	}
	d.mustBeClean(t)
}

// namesFiles is the example's executable, whose source files, debug file and supplementary file
// are in a folder.
func namesFiles(t *testing.T, dir, sources, exe string) []byte {
	t.Helper()
	made := filepath.Join(t.TempDir(), "made")
	copyFile(t, "server", made, func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("/example\x00"), []byte(sources+"\x00")) })
	link, alt := filepath.Join(t.TempDir(), "link"), filepath.Join(t.TempDir(), "alt")
	name := append([]byte(strings.Repeat("../", 12)+strings.TrimPrefix(exe, "/")), 0)
	name = append(name, make([]byte, (4-len(name)%4)%4+4)...)
	if err := os.WriteFile(link, name, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(alt, append(append([]byte(exe), 0), bytes.Repeat([]byte{7}, 20)...), 0o600); err != nil {
		t.Fatal(err)
	}
	oracle.Run(t, "objcopy", "--add-section", ".gnu_debuglink="+link, "--add-section", ".gnu_debugaltlink="+alt, made)
	b, err := os.ReadFile(made)
	if err != nil || !bytes.Contains(b, []byte(dir+"/server\x00")) || !bytes.Contains(b, []byte(sources+"\x00")) {
		t.Fatalf("%v: it names no file", err)
	}
	return b
}

// bomb is a file of zeros behind a head, packed; twice where it is packed in a packed one.
func bomb(t *testing.T, form string, head []byte, size int64) []byte {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser
	var err error
	switch form {
	case "gzip":
		w = gzip.NewWriter(&out)
	case "zstd":
		w, err = zstd.NewWriter(&out)
	case "xz":
		w, err = xz.NewWriter(&out)
	}
	if err == nil {
		_, err = w.Write(head)
	}
	zeros := make([]byte, 1<<20)
	for n := int64(0); n < size && err == nil; n += int64(len(zeros)) {
		_, err = w.Write(zeros)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// overlapping is a snapshot whose directory has every member at the place of the first.
func overlapping(t *testing.T, snapshot []byte) []byte {
	t.Helper()
	b := bytes.Clone(snapshot)
	head := []byte("PK\x01\x02")
	for at := bytes.Index(b, head); at >= 0; {
		binary.LittleEndian.PutUint32(b[at+42:], 0)
		next := bytes.Index(b[at+4:], head)
		if next < 0 {
			break
		}
		at += 4 + next
	}
	return b
}

// TestServeOutlivesBombs has files that unpack to more than they may, that nest, and that say that
// they have more than there is: each is refused in time, or walked as far as it goes, and leaves
// nothing.
func TestServeOutlivesBombs(t *testing.T) {
	oracle.All(t)
	long(t)
	const most = 96 << 20 // of --max-unpacked
	d := startDaemon(t, shortDir(t), nil, "--workers", "1", "--max-unpacked", "96M", "--max-memory", "1G", "--max-time", "20s")
	d.putServer(t)
	_, want := d.request(t, "POST", "/v1/stack?format=text", bytes.NewReader(core(t)))
	whole, err := os.ReadFile(mixed)
	if err != nil {
		t.Fatal(err)
	}
	nested := bomb(t, "gzip", bomb(t, "gzip", bomb(t, "gzip", core(t), most), 0), 0)
	huge := aSnapshot(t, "/x", "m", zipMember{"m", append([]byte("\x7fELF"), make([]byte, 2*most)...)})
	deep := zipped(t, []zipMember{{"snapshot.json", []byte(`{"format_version":1,"x":` + strings.Repeat("[", 1<<20) + strings.Repeat("]", 1<<20) + "}")}})
	spaces := zipped(t, []zipMember{{"snapshot.json", []byte(`{"format_version":1,` + strings.Repeat(" ", most) + `"threads":[]}`)}})
	for name, b := range map[string][]byte{
		"gzip": bomb(t, "gzip", core(t), 2*most), "zstd": bomb(t, "zstd", core(t), 2*most), "xz": bomb(t, "xz", core(t), 2*most), "nested": nested,
		"a member": huge, "members over one another": overlapping(t, whole), "nested JSON": deep, "spaces": spaces,
		"a dump of 2^32 streams": append([]byte("MDMP\x93\xa7\x00\x00\xff\xff\xff\xff\x20\x00\x00\x00"), make([]byte, 4096)...),
		"perf.data of 2^64":      append([]byte("PERFILE2\x68\x00\x00\x00\x00\x00\x00\x00"), bytes.Repeat([]byte{0xff}, 4096)...),
		"poison":                 readAll(t, poisonedSnapshot(t)),
	} {
		for _, path := range []string{"/v1/stack", "/v1/stack?format=text&lanes", "/v1/stack?format=html", "/v1/stack?format=breakpad", "/v1/profile", "/v1/snapshot"} {
			began := time.Now()
			how, problem, text := d.askWhatIsDamaged(http.MethodPost, path, b)
			if problem != "" {
				t.Errorf("%s to %s: %s", name, path, problem)
			}
			if took := time.Since(began); took > 25*time.Second {
				t.Errorf("%s to %s: %s after %v", name, path, how, took)
			}
			if isPacked := name == "gzip" || name == "zstd" || name == "xz" || name == "nested"; isPacked && path == "/v1/stack" && !strings.Contains(text, "100663296") {
				t.Errorf("%s to %s: %s, expected that it unpacks to too much:\n%.1000s", name, path, how, text)
			}
		}
		if _, got := d.request(t, "POST", "/v1/stack?format=text", bytes.NewReader(core(t))); got != want {
			t.Errorf("after %s:\n%s\nexpected\n%s", name, got, want)
		}
	}
	_, text := d.request(t, "POST", "/v1/stack?format=text&lanes", bytes.NewReader(readAll(t, poisonedSnapshot(t))))
	mustBePlain(t, "the text of a server", text)
	d.mustBeClean(t)
}

func readAll(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestServeBoundsManyThreads has threads over one looping stack, whose report is bounded.
func TestServeBoundsManyThreads(t *testing.T) {
	d := startDaemon(t, shortDir(t), nil, "--workers", "1", "--max-memory", "1G", "--max-time", "20s", "--max-answer", "4M")
	var threads []string
	for i := range 20_000 {
		threads = append(threads, fmt.Sprintf(`{"id":"%d","arch":"x86_64","registers":{"rip":"0x401010","rsp":"0x7ff000","rbp":"0x7ff000"}}`, i+1))
	}
	loop := make([]byte, 1<<16)
	for i := 0; i < len(loop); i += 8 {
		binary.LittleEndian.PutUint64(loop[i:], 0x401010)
	}
	b := zipped(t, []zipMember{{"snapshot.json", []byte(`{"format_version":1,"modules":[],"threads":[` + strings.Join(threads, ",") + `],"memory":[{"address":"0x7ff000","file":"m"}]}`)}, {"m", loop}})
	for _, path := range []string{"/v1/stack?no-fold", "/v1/stack?format=text", "/v1/stack?format=html&no-fold", "/v1/stack?format=breakpad"} {
		began := time.Now()
		a, err := d.client.Post("http://localhost"+path, "", bytes.NewReader(b)) //nolint:noctx // the test has a limit
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(a.Body) // one that is too large breaks off
		_ = a.Body.Close()
		if took := time.Since(began); took > 25*time.Second || len(text) > 4<<20+1 || err == nil && a.StatusCode != http.StatusOK && a.StatusCode != http.StatusInsufficientStorage {
			t.Errorf("%s: %s, %d bytes, %v after %v", path, a.Status, len(text), err, took)
		}
	}
	d.walk(t)
}
