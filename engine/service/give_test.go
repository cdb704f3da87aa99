// SPDX-License-Identifier: Apache-2.0

//go:build linux

package service

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/debuginfod"
	"github.com/unwindd/unwindd/engine/internal/download"
	"github.com/unwindd/unwindd/engine/internal/symbolstore"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/oracle"
)

// crashSource is the source file of the executable of the core, as its debug information has it.
const crashSource = "/example/server.c"

// rooted are options of a server whose sysroot has the executable of the core, with its source.
func rooted(t *testing.T) Options {
	t.Helper()
	o := testOptions(t)
	o.Sysroot = filepath.Join(filepath.Dir(o.State), "root")
	for _, f := range []struct{ path, from string }{{"/srv/server", crashExe}, {crashSource, examples + "crash/server.c"}, {"/etc/shadow", crashCore}} {
		place := filepath.Join(o.Sysroot, f.path)
		if err := os.MkdirAll(filepath.Dir(place), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(place, file(t, f.from), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// TestFilesThatWerePutAreGivenByBuildID puts the executable of the core, and asks for it as the clients
// of debuginfod do.
func TestFilesThatWerePutAreGivenByBuildID(t *testing.T) {
	s := start(t, testOptions(t))
	at := buildIDPath + crashID
	answer, text := s.ask(t, http.MethodGet, at+"/executable", nil)
	wantProblem(t, answer, text, notFound, "nobody here has the executable")
	s.putCrash(t)
	exe := string(file(t, crashExe))
	for _, kind := range []string{"executable", "debuginfo"} {
		answer, text := s.ask(t, http.MethodGet, at+"/"+kind, nil, "Accept-Encoding", "identity")
		if answer.StatusCode != http.StatusOK || text != exe || answer.Header.Get(headerSize) != fmt.Sprint(len(exe)) || answer.ContentLength != int64(len(exe)) {
			t.Errorf("%s: %s, %d bytes, %v", kind, answer.Status, len(text), answer.Header)
		}
	}
	if answer, text := s.ask(t, http.MethodHead, at+"/debuginfo", nil); answer.StatusCode != http.StatusOK || text != "" || answer.ContentLength != int64(len(exe)) {
		t.Errorf("HEAD: %s, %d bytes, %v", answer.Status, len(text), answer.Header)
	}
	if answer, text := s.ask(t, http.MethodGet, at+"/executable", nil, "Range", "bytes=16-31"); answer.StatusCode != http.StatusPartialContent || text != exe[16:32] {
		t.Errorf("a part: %s, %q", answer.Status, text)
	}
	answer, text = s.ask(t, http.MethodGet, at+"/executable", nil, headerMaxSize, "1000")
	wantProblem(t, answer, text, unwanted, "takes at most 1000")
	answer, _ = s.ask(t, http.MethodGet, at+"/executable", nil, "Accept-Encoding", "gzip;q=0")
	if answer.Header.Get("Content-Encoding") != "" {
		t.Error("who refuses gzip gets it")
	}
	answer, text = s.ask(t, http.MethodGet, at+"/executable", nil, "Accept-Encoding", "zstd, gzip")
	z, err := gzip.NewReader(strings.NewReader(text))
	if err != nil {
		t.Fatal(answer.Header, err)
	}
	if got, err := io.ReadAll(z); err != nil || string(got) != exe || len(text) > len(exe)*2/3 || answer.Header.Get(headerSize) != fmt.Sprint(len(exe)) {
		t.Errorf("packed: %d bytes of %d, %v, %v", len(text), len(got), err, answer.Header)
	}
}

// TestSectionsAreGiven asks for sections, whose place a worker reads.
func TestSectionsAreGiven(t *testing.T) {
	s := start(t, testOptions(t))
	s.putCrash(t)
	at := buildIDPath + crashID + "/section/"
	for _, c := range []struct {
		name         string
		offset, size int // as readelf has them
	}{{".debug_line", 0xbe2de, 0x28a}, {".text", 0x1100, 0x8afdf}, {".shstrtab", 0xd5e32, 0x1ab}} {
		answer, text := s.ask(t, http.MethodGet, at+c.name, nil)
		if answer.StatusCode != http.StatusOK || text != string(file(t, crashExe)[c.offset:c.offset+c.size]) || answer.Header.Get(headerSize) != fmt.Sprint(c.size) {
			t.Errorf("%s: %s, %d bytes, expected %d", c.name, answer.Status, len(text), c.size)
		}
	}
	for _, name := range []string{".bss", ".gdb_index", "%2e%2e%2fpasswd", strings.Repeat("a", 5000)} {
		answer, text := s.ask(t, http.MethodGet, at+name, nil)
		wantProblem(t, answer, text, notFound, "has section")
	}
}

// TestFilesOfFoldersAreGivenByBuildID has nothing put, but a sysroot with a file that nothing names by a
// build ID, and with its source.
func TestFilesOfFoldersAreGivenByBuildID(t *testing.T) {
	s := start(t, rooted(t))
	at := buildIDPath + crashID
	for _, c := range []struct{ path, from, name string }{
		{"/executable", crashExe, "server"}, {"/debuginfo", crashExe, "server"},
		{"/source" + crashSource, examples + "crash/server.c", "server.c"}, {"/source/%2Fexample%2Fserver.c", examples + "crash/server.c", "server.c"},
		{"/source//example/../example/./server.c", examples + "crash/server.c", "server.c"},
	} {
		answer, text := s.ask(t, http.MethodGet, at+c.path, nil)
		if answer.StatusCode != http.StatusOK || text != string(file(t, c.from)) || answer.Header.Get(headerFile) != c.name {
			t.Errorf("%s: %s, %d bytes, %v", c.path, answer.Status, len(text), answer.Header)
		}
	}
	// A path that no line table has, whether there is a file or not, and those that lead out.
	for _, source := range []string{"/etc/shadow", "/etc/none", "/example/../etc/shadow", "/example/server.c/../../etc/shadow", "/../../etc/passwd"} {
		answer, text := s.ask(t, http.MethodGet, at+"/source"+source, nil)
		wantProblem(t, answer, text, notFound, "no source file of this path")
	}
	s.wantMetrics(t, `unwindd_provided_files_total{kind="source",place="folders"} 3`, `unwindd_provided_files_total{kind="executable",place="folders"} 1`)
}

// TestDebugInformationThatWasPutOpensNoSource puts a file whose debug information names a file of the
// sysroot: only debug information of the administrator does.
func TestDebugInformationThatWasPutOpensNoSource(t *testing.T) {
	o := rooted(t)
	if err := os.Remove(filepath.Join(o.Sysroot, "srv/server")); err != nil {
		t.Fatal(err)
	}
	s := start(t, o)
	s.putCrash(t)
	answer, text := s.ask(t, http.MethodGet, buildIDPath+crashID+"/source"+crashSource, nil)
	wantProblem(t, answer, text, notFound, "no source file of this path")
}

// TestPathsOfBuildIDsThatMeanNothing asks for what there is not.
func TestPathsOfBuildIDsThatMeanNothing(t *testing.T) {
	s := start(t, testOptions(t))
	for path, kind := range map[string]*problemKind{
		"xyz/executable": badRequest, "01/executable": badRequest, strings.Repeat("ab", 65) + "/debuginfo": badRequest, "/debuginfo": badRequest,
		"0102": notFound, "0102/": notFound, "0102/other": notFound, "0102/debuginfo/x": notFound, "0102/source": notFound, "0102/source/": notFound, "0102/section/": notFound,
		"0102/executable": notFound, "0102/source/a": notFound, "0102/section/.text": notFound,
	} {
		answer, text := s.ask(t, http.MethodGet, buildIDPath+path, nil)
		wantProblem(t, answer, text, kind, "")
	}
	answer, text := s.ask(t, http.MethodPost, buildIDPath+crashID+"/debuginfo", strings.NewReader("x"))
	wantProblem(t, answer, text, notFound, "there is nothing at POST")
}

// federated is a client of debuginfod for a server.
func federated(t *testing.T, at, cache string) object.Remote {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	return debuginfod.New(debuginfod.Options{URLs: []*url.URL{u}, Cache: cache, Headers: http.Header{"Via": {Via}}})
}

// TestFilesOfOtherServersAreGiven has one server ask another, which has the executable of the core, and
// then be without it.
func TestFilesOfOtherServersAreGiven(t *testing.T) {
	far := start(t, rooted(t))
	o := testOptions(t)
	o.Remote = federated(t, far.url, filepath.Join(filepath.Dir(o.State), "cache"))
	near := start(t, o)
	for _, path := range []string{"/executable", "/source" + crashSource, "/section/.debug_line"} {
		_, want := far.ask(t, http.MethodGet, buildIDPath+crashID+path, nil)
		answer, got := near.ask(t, http.MethodGet, buildIDPath+crashID+path, nil)
		if answer.StatusCode != http.StatusOK || got != want || len(got) < 100 {
			t.Errorf("%s: %s, %d bytes, expected %d", path, answer.Status, len(got), len(want))
		}
	}
	answer, text := near.ask(t, http.MethodGet, buildIDPath+"0102/executable", nil)
	wantProblem(t, answer, text, notFound, "nobody here has the executable")
	near.wantMetrics(t, `unwindd_provided_files_total{kind="executable",place="servers"} 1`, `unwindd_provided_files_total{kind="executable",place="nowhere"} 1`)
}

// TestServersThatAskEachOtherDoNotWaitForEachOther has two servers that ask each other for a file that
// neither has, and one whose other server fails.
func TestServersThatAskEachOtherDoNotWaitForEachOther(t *testing.T) {
	var first, second *testServer
	to := func(s **testServer) string {
		relay := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			answer, text := (*s).ask(t, r.Method, r.URL.EscapedPath(), nil, "Via", r.Header.Get("Via"))
			w.WriteHeader(answer.StatusCode)
			_, _ = io.WriteString(w, text)
		}))
		t.Cleanup(relay.Close)
		return relay.URL
	}
	a, b := testOptions(t), testOptions(t)
	a.Remote = federated(t, to(&second), filepath.Join(filepath.Dir(a.State), "cache"))
	b.Remote = federated(t, to(&first), filepath.Join(filepath.Dir(b.State), "cache"))
	first, second = start(t, a), start(t, b)
	answer, text := first.ask(t, http.MethodGet, buildIDPath+crashID+"/executable", nil)
	wantProblem(t, answer, text, notFound, "nobody here has the executable")

	failing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	defer failing.Close()
	o := testOptions(t)
	o.Remote = federated(t, failing.URL, filepath.Join(filepath.Dir(o.State), "cache"))
	answer, text = start(t, o).ask(t, http.MethodGet, buildIDPath+crashID+"/executable", nil)
	wantProblem(t, answer, text, unreached, "does not give it")
	if strings.Contains(text, failing.URL) {
		t.Errorf("it tells which servers it asks: %s", text)
	}
}

// TestOurOwnStoresReadFromAServer has the reader of symbol stores fetch what was put.
func TestOurOwnStoresReadFromAServer(t *testing.T) {
	s := start(t, testOptions(t))
	s.putCrash(t)
	stores, err := symbolstore.New([]string{s.url}, download.Options{Cache: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer stores.Close()
	id, err := hex.DecodeString(crashID)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []object.RemoteFile{{Kind: object.RemoteExecutable, BuildID: id, Name: "server"}, {Kind: object.RemoteDebuginfo, BuildID: id}} {
		path, tried := stores.Fetch(f)
		if path == "" || !bytes.Equal(file(t, path), file(t, crashExe)) {
			t.Errorf("%s: %q, %v", f.Kind, path, tried)
		}
	}
	if path, tried := stores.Fetch(object.RemoteFile{Kind: object.RemoteSymbols, Name: "server", ID: "D62E0901FCFB9C9860CDDA4DD2CC30A50"}); path != "" || len(tried) != 1 || tried[0].Kind != object.Absent {
		t.Errorf("%q, %v", path, tried)
	}
	answer, text := s.ask(t, http.MethodGet, "/server/elf-buildid-xy/server", nil)
	wantProblem(t, answer, text, badRequest, "expected 2 to 64 bytes")
}

// TestDebuginfodAnswersTheSame asks elfutils' own server and ours, of the same folder, for the same.
func TestDebuginfodAnswersTheSame(t *testing.T) {
	oracle.Tools(t, "gcc", "objcopy", "debuginfod")
	o := testOptions(t)
	o.Sysroot = filepath.Join(filepath.Dir(o.State), "root")
	id := buildApart(t, o.Sysroot, "none=")
	at := buildIDPath + id
	source := filepath.Join(o.Sysroot, "src/main.c") // is so in the debug information
	if err := os.CopyFS(filepath.Join(o.Sysroot, source, ".."), os.DirFS(filepath.Dir(source))); err != nil {
		t.Fatal(err)
	}
	peer := oracle.StartDebuginfod(t, o.Sysroot, at[1:]+"/debuginfo", at[1:]+"/executable")
	s := start(t, o)
	for _, c := range []struct {
		method, path string
		headers      []string
	}{
		{method: "GET", path: at + "/debuginfo"}, {method: "GET", path: at + "/executable"},
		{method: "GET", path: at + "/source" + source}, {method: "GET", path: at + "/source/none.c"},
		{method: "GET", path: at + "/section/.debug_info"}, {method: "GET", path: at + "/section/.text"}, {method: "GET", path: at + "/section/.debug_line"},
		{method: "GET", path: at + "/section/.none"}, {method: "GET", path: at + "/section/.symtab"},
		{method: "GET", path: buildIDPath + "0123456789/debuginfo"}, {method: "GET", path: buildIDPath + "0123456789/executable"},
		{method: "GET", path: buildIDPath + "0123456789/source/a.c"}, {method: "GET", path: buildIDPath + "0123456789/section/.text"},
		{method: "GET", path: at + "/debuginfo", headers: []string{headerMaxSize, "10"}},
		{method: "GET", path: at + "/executable", headers: []string{headerMaxSize, "1000000000"}},
	} {
		headers := append([]string{"Accept-Encoding", "identity"}, c.headers...)
		ours, text := s.ask(t, c.method, c.path, nil, headers...)
		there := *s
		there.url = peer.URL
		theirs, want := there.ask(t, c.method, c.path, nil, headers...)
		isSame := ours.StatusCode == theirs.StatusCode
		if theirs.StatusCode == http.StatusOK {
			isSame = isSame && text == want && ours.ContentLength == theirs.ContentLength && ours.Header.Get("Content-Type") == theirs.Header.Get("Content-Type")
			for _, name := range []string{headerSize, "Cache-Control"} {
				isSame = isSame && ours.Header.Get(name) == theirs.Header.Get(name)
			}
		}
		if !isSame {
			t.Errorf("%s %s %v: %s, %d bytes, %v\ndebuginfod: %s, %d bytes, %v", c.method, c.path, c.headers, ours.Status, len(text), ours.Header, theirs.Status, len(want), theirs.Header)
		}
	}
}

// buildApart makes a program beneath a folder, with its debug information in a file of its own, and
// returns its build ID. prefixes maps the paths of sources.
func buildApart(t *testing.T, root, prefixes string) (id string) {
	t.Helper()
	src := filepath.Join(root, "src")
	if err := os.MkdirAll(src, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(src, "main.c"), []byte("int twice(int n) { return 2 * n; }\nint main(void) { return twice(21); }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	id = "00112233445566778899aabbccddeeff00112233"
	in := oracle.With{Dir: root}
	in.Run(t, "gcc", "-g", "-O0", "-Wl,--build-id=0x"+id, "-fdebug-prefix-map="+prefixes, "-o", "program", filepath.Join(src, "main.c"))
	in.Run(t, "objcopy", "--only-keep-debug", "program", "program.debug")
	in.Run(t, "objcopy", "--strip-debug", "program")
	return id
}

// TestClientsOfDebuginfodReadFromAServer has debuggers and symbolizers fetch from a server that has the
// files beneath its sysroot, while they have a stripped program alone.
func TestClientsOfDebuginfodReadFromAServer(t *testing.T) {
	oracle.Tools(t, "gcc", "objcopy", "nm", "debuginfod-find", "gdb", "eu-addr2line", "llvm-symbolizer-22", "lldb-22")
	o := testOptions(t)
	o.Sysroot = filepath.Join(filepath.Dir(o.State), "root")
	id := buildApart(t, o.Sysroot, o.Sysroot+"=")
	s := start(t, o)
	home := t.TempDir()
	env := []string{"DEBUGINFOD_URLS=" + s.url, "DEBUGINFOD_CACHE_PATH=" + filepath.Join(home, "cache"), "HOME=" + home, "LLVM_DEBUGINFOD_CACHE_PATH=" + filepath.Join(home, "cache")}
	with := oracle.With{Env: env, Dir: home}
	for _, c := range [][]string{
		{"program.debug", "debuginfo", id}, {"program", "executable", id}, {"src/main.c", "source", id, "/src/main.c"},
	} {
		path := strings.TrimSpace(with.Run(t, "debuginfod-find", c[1:]...))
		if !bytes.Equal(file(t, path), file(t, filepath.Join(o.Sysroot, c[0]))) {
			t.Errorf("debuginfod-find %v: %s is another file", c[1:], path)
		}
	}
	alone := filepath.Join(home, "alone")
	with.Run(t, "objcopy", "--strip-all", filepath.Join(o.Sysroot, "program"), alone)
	address, _, _ := strings.Cut(with.Run(t, "sh", "-c", "nm "+filepath.Join(o.Sysroot, "program")+" | grep twice"), " ")
	for _, c := range []struct {
		want    string
		command []string
	}{
		{"return 2 * n", []string{"gdb", "-nx", "-batch", "-iex", "set debuginfod enabled on", "-ex", "list twice", alone}},
		{"/src/main.c:1", []string{"eu-addr2line", "-e", alone, "0x" + address}},
		{"/src/main.c:1:", []string{"llvm-symbolizer-22", "--debuginfod", "--obj=" + alone, "0x" + address}},
		{"twice at main.c:1", []string{"lldb-22", "-b", "-o", "settings set plugin.symbol-locator.debuginfod.server-urls " + s.url,
			"-o", "settings set symbols.enable-external-lookup true", "-o", "target create " + alone, "-o", "image lookup -n twice"}},
	} {
		if err := os.RemoveAll(filepath.Join(home, "cache")); err != nil { // each fetches itself
			t.Fatal(err)
		}
		if said := with.Run(t, c.command[0], c.command[1:]...); !strings.Contains(said, c.want) {
			t.Errorf("%s says %s", c.command[0], said)
		}
	}
}

// FuzzWantedByID reads paths of requests.
func FuzzWantedByID(f *testing.F) {
	f.Add("/buildid/0102/source/%2Fa/../b.c")
	f.Add("/buildid/0102/section/.text")
	f.Add("/buildid/0102/debuginfo")
	f.Fuzz(func(t *testing.T, path string) {
		w, err := wantedByID(path)
		if err != nil {
			return
		}
		if n := len(w.BuildID); n < 2 || n > 64 || (w.Kind == object.RemoteSource) != strings.HasPrefix(w.Source, "/") || (w.Kind == aSection) != (w.section != "") {
			t.Errorf("%q: %+v", path, w)
		}
	})
}
