// SPDX-License-Identifier: Apache-2.0

//go:build linux

package service

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
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
	"golang.org/x/sys/unix"

	"github.com/unwindd/unwindd/internal/oracle"
)

// This file sends a server files that were made to harm it.

// oneWorker are the options of a server with one worker.
func oneWorker(t *testing.T) Options {
	o := testOptions(t)
	o.Workers = 1
	return o
}

// copyExample copies a file; change, where it is not nil, changes what it has.
func copyExample(t *testing.T, from, to string, change func([]byte) []byte) {
	t.Helper()
	b := file(t, from)
	if change != nil {
		b = change(b)
	}
	if err := os.WriteFile(to, b, 0o700); err != nil { //nolint:gosec // an executable among them
		t.Fatal(err)
	}
}

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

// isDead reports whether a file was opened since the last call.
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
	copyExample(t, crashExe, exe, nil)
	copyExample(t, crashExe+".c", source, nil)
	s := start(t, oneWorker(t))
	put := namesFiles(t, dir, sources, exe)
	c := newCanary(t, exe, source)
	if b, err := os.ReadFile(exe); err != nil || !c.isDead() {
		t.Fatalf("%v: that a file of %d bytes is read is not seen", err, len(b))
	}
	id := hex.EncodeToString(noteID(put))
	up := strings.Repeat("../", 12) + strings.TrimPrefix(exe, "/")
	corrupt := bytes.ReplaceAll(file(t, crashCore), []byte("/srv/example/server\x00"), append([]byte(sources+"/server\x00"), make([]byte, 4)...))
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
		{"POST", "/v1/stack?format=text&source=9&locals&crashed", file(t, crashCore)},
		{"POST", "/v1/stack?format=html&source=9&code=9&crashed", file(t, crashCore)},
	}
	for _, r := range requests {
		_, text := s.ask(t, r.method, r.path, bytes.NewReader(r.body))
		if c.isDead() {
			t.Errorf("%s %s: a file was opened that only it names:\n%.2000s", r.method, r.path, text)
		}
		if strings.Contains(text, "strtol(h->value") || strings.Contains(text, "headers[i].value") {
			t.Errorf("%s %s: a line of a file of the server:\n%.2000s", r.method, r.path, text)
		}
	}
	if _, text := s.ask(t, "POST", "/v1/stack?format=text&crashed", bytes.NewReader(file(t, crashCore))); !strings.Contains(text, "content_length "+sources+"/server.c") {
		t.Errorf("what was put is not used:\n%s", text)
	}
	s.mustBeClean(t)
}

// namesFiles is the example's executable, whose source files, debug file and supplementary file
// are in a folder.
func namesFiles(t *testing.T, dir, sources, exe string) []byte {
	t.Helper()
	made := filepath.Join(t.TempDir(), "made")
	copyExample(t, crashExe, made, func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("/example\x00"), []byte(sources+"\x00")) })
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
	for entry := bytes.Index(b, head); entry >= 0; {
		binary.LittleEndian.PutUint32(b[entry+42:], 0)
		next := bytes.Index(b[entry+4:], head)
		if next < 0 {
			break
		}
		entry += 4 + next
	}
	return b
}

// poisoned is the mixed example with what a terminal obeys in its names.
func poisoned(t *testing.T) []byte {
	t.Helper()
	members := membersOf(t, file(t, mixed))
	poison := regexp.MustCompile(`"(name|path|agent|queue|dispatch|kernel|thread)":\s*"`)
	for i := range members {
		if members[i].name == "snapshot.json" {
			members[i].content = poison.ReplaceAll(members[i].content, []byte(`$0\u001b[31m\rFORGED\nFORGED\t\u0007\u202e\u2028\u009b`))
		}
	}
	return zipped(t, members)
}

const (
	// patience is how long a request may take on a machine that is busy; what counts is
	// mostWork, the time of a processor.
	patience = 10 * time.Minute
	mostWork = 20 * time.Second
)

// worked is how long processors have worked for the workers of this process.
func worked(t *testing.T) (all time.Duration) {
	t.Helper()
	const tick = 10 * time.Millisecond // of USER_HZ, which is 100 everywhere
	for _, pid := range workers(t) {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // it may be gone
		fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		for i := 11; i < 13 && i < len(fields); i++ { // utime and stime
			ticks, _ := strconv.Atoi(fields[i])
			all += time.Duration(ticks) * tick
		}
	}
	return all
}

// TestServeOutlivesBombs has files that unpack to more than they may, that nest, and that say that
// they have more than there is: each is refused in time, or walked as far as it goes, and leaves
// nothing.
func TestServeOutlivesBombs(t *testing.T) {
	oracle.All(t)
	if testing.Short() {
		t.Skip("unpacks for long")
	}
	const most = 24 << 20 // bytes that a target may unpack to
	o := oneWorker(t)
	o.Unpack, o.Memory, o.Time = most, 1<<30, patience
	s := start(t, o)
	s.putCrash(t)
	_, want := s.ask(t, "POST", "/v1/stack?format=text", bytes.NewReader(file(t, crashCore)))
	whole := file(t, mixed)
	nested := bomb(t, "gzip", bomb(t, "gzip", bomb(t, "gzip", file(t, crashCore), most), 0), 0)
	huge := aSnapshot(t, "/x", "m", zipMember{"m", append([]byte("\x7fELF"), make([]byte, 2*most)...)})
	deep := zipped(t, []zipMember{{"snapshot.json", []byte(`{"format_version":1,"x":` + strings.Repeat("[", 1<<20) + strings.Repeat("]", 1<<20) + "}")}})
	spaces := zipped(t, []zipMember{{"snapshot.json", []byte(`{"format_version":1,` + strings.Repeat(" ", most) + `"threads":[]}`)}})
	for name, b := range map[string][]byte{
		"gzip": bomb(t, "gzip", file(t, crashCore), 2*most), "zstd": bomb(t, "zstd", file(t, crashCore), 2*most), "xz": bomb(t, "xz", file(t, crashCore), 2*most), "nested": nested,
		"a member": huge, "members over one another": overlapping(t, whole), "nested JSON": deep, "spaces": spaces,
		"a dump of 2^32 streams": append([]byte("MDMP\x93\xa7\x00\x00\xff\xff\xff\xff\x20\x00\x00\x00"), make([]byte, 4096)...),
		"perf.data of 2^64":      append([]byte("PERFILE2\x68\x00\x00\x00\x00\x00\x00\x00"), bytes.Repeat([]byte{0xff}, 4096)...),
		"poison":                 poisoned(t),
	} {
		for _, path := range []string{"/v1/stack", "/v1/stack?format=text&lanes", "/v1/stack?format=html", "/v1/stack?format=breakpad", "/v1/profile", "/v1/snapshot"} {
			before := worked(t)
			how, problem, text := s.askWhatIsDamaged(http.MethodPost, path, b)
			if problem != "" {
				t.Errorf("%s to %s: %s", name, path, problem)
			}
			if took := worked(t) - before; took > mostWork {
				t.Errorf("%s to %s: %s after %v of a processor", name, path, how, took)
			}
			if isPacked := name == "gzip" || name == "zstd" || name == "xz" || name == "nested"; isPacked && path == "/v1/stack" && !strings.Contains(text, fmt.Sprint(most)) {
				t.Errorf("%s to %s: %s, expected that it unpacks to too much:\n%.1000s", name, path, how, text)
			}
		}
		if _, got := s.ask(t, "POST", "/v1/stack?format=text", bytes.NewReader(file(t, crashCore))); got != want {
			t.Errorf("after %s:\n%s\nexpected\n%s", name, got, want)
		}
	}
	text := s.post(t, "/v1/stack?format=text&lanes", poisoned(t))
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "FORGED") || strings.ContainsFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("a terminal obeys what a file has in it: %q", line)
		}
	}
	s.mustBeClean(t)
}

// TestServeBoundsManyThreads has threads over one looping stack, whose report is bounded.
func TestServeBoundsManyThreads(t *testing.T) {
	if testing.Short() {
		t.Skip("walks for long")
	}
	o := oneWorker(t)
	o.Memory, o.Time, o.Answer = 1<<30, patience, 4<<20
	s := start(t, o)
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
		before := worked(t)
		a, err := s.client.Post(s.url+path, "", bytes.NewReader(b)) //nolint:noctx // the test has a limit
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(a.Body) // one that is too large breaks off
		_ = a.Body.Close()
		if took := worked(t) - before; took > mostWork || len(text) > 4<<20+1 || err == nil && a.StatusCode != http.StatusOK && a.StatusCode != http.StatusInsufficientStorage {
			t.Errorf("%s: %s, %d bytes, %v after %v", path, a.Status, len(text), err, took)
		}
	}
	s.post(t, "/v1/stack", file(t, crashCore))
}
