// SPDX-License-Identifier: Apache-2.0

package debuginfod

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/unwindd/unwindd/engine/internal/download"
	"github.com/unwindd/unwindd/engine/object"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// program is a code object with its build ID.
func program(t testing.TB) (data, id []byte) {
	t.Helper()
	data, err := os.ReadFile("../../../examples/crash/server")
	if err != nil {
		t.Fatal(err)
	}
	o, err := object.New("server", data)
	if err != nil {
		t.Fatal(err)
	}
	return data, o.BuildID()
}

// A fixture is a client of servers.
type fixture struct {
	*Client
	t     *testing.T
	cache string
}

func newClient(t *testing.T, change func(*Options), servers ...string) *fixture {
	t.Helper()
	o := Options{Cache: filepath.Join(t.TempDir(), "cache"), Timeout: 5 * time.Second}
	for _, s := range servers {
		u, err := ParseURL(s)
		if err != nil {
			t.Fatal(err)
		}
		o.URLs = append(o.URLs, u)
	}
	if change != nil {
		change(&o)
	}
	f := &fixture{New(o), t, o.Cache}
	t.Cleanup(f.Close)
	return f
}

// serve starts a server, which counts its requests.
func serve(t *testing.T, handle http.HandlerFunc) (at string, requests *atomic.Int64) {
	t.Helper()
	requests = &atomic.Int64{}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		handle(w, r)
	}))
	s.Config.ErrorLog = nil
	s.Start()
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL, requests
}

// says serves bytes.
func says(data []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
		_, _ = w.Write(data)
	}
}

// holds fails where the cache has other files than those, beside its settings.
func (f *fixture) holds(want ...string) {
	f.t.Helper()
	var got []string
	err := filepath.WalkDir(f.cache, func(path string, d os.DirEntry, err error) error {
		if err == nil && filepath.Dir(path) != f.cache && !d.IsDir() {
			info, _ := d.Info()
			name := filepath.Base(path)
			if info.Size() == 0 {
				name += " (none)"
			}
			got = append(got, name)
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		f.t.Fatal(err)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		f.t.Errorf("the cache has %q, expected %q", got, want)
	}
}

// refuses fails where a file is got, or is not for that reason, or anything is kept.
func (f *fixture) refuses(of object.RemoteFile, kind object.AttemptKind, reason string) {
	f.t.Helper()
	path, tried := f.Fetch(of)
	if path != "" || len(tried) == 0 {
		f.t.Fatalf("got %q, tried %v", path, tried)
	}
	if last := tried[len(tried)-1]; last.Kind != kind || !strings.Contains(last.Reason, reason) {
		f.t.Errorf("%v, expected %q of kind %d", tried, reason, kind)
	}
}

// gets fails where a file is not got.
func (f *fixture) gets(of object.RemoteFile, want []byte) {
	f.t.Helper()
	path, tried := f.Fetch(of)
	if path == "" {
		f.t.Fatalf("tried %v", tried)
	}
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		f.t.Errorf("%s has %d bytes, %v, expected %d", path, len(got), err, len(want))
	}
}

func TestWhatWasGotIsKept(t *testing.T) {
	data, id := program(t)
	modified := time.Date(2020, 2, 3, 4, 5, 6, 0, time.UTC)
	at, requests := serve(t, func(w http.ResponseWriter, r *http.Request) {
		want := fmt.Sprintf("/prefix/buildid/%x/", id)
		rest, ok := strings.CutPrefix(r.URL.Path, want)
		w.Header().Set("Last-Modified", modified.Format(http.TimeFormat))
		switch {
		case ok && (rest == "executable" || rest == "debuginfo"):
			_, _ = w.Write(data)
		case r.RequestURI == want+"source/a/../b%20c%23%25%2B.c":
			_, _ = io.WriteString(w, "int x;\n")
		default:
			t.Errorf("asked for %s", r.RequestURI)
		}
	})
	f := newClient(t, nil, at+"/prefix/")
	source := object.RemoteFile{Kind: object.RemoteSource, BuildID: id, Source: "/a/../b c#%+.c"}
	for range 2 {
		f.gets(object.RemoteFile{Kind: object.RemoteExecutable, BuildID: id}, data)
		f.gets(object.RemoteFile{Kind: object.RemoteDebuginfo, BuildID: id}, data)
		f.gets(source, []byte("int x;\n"))
	}
	if n := requests.Load(); n != 3 {
		t.Errorf("%d requests, expected 3", n)
	}
	f.holds("executable", "debuginfo", "source##a##..##b c#_%+.c", "source-0a40df38-#a#..#b#c###.c")
	path, _ := f.Fetch(source)
	info, err := os.Stat(path)
	if err != nil || !info.ModTime().Equal(modified) || info.Mode() != 0o400 {
		t.Errorf("%v %v %v", err, info.ModTime(), info.Mode())
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", err, info.Mode())
	}
}

func TestThatNobodyHasAFileIsRemembered(t *testing.T) {
	_, id := program(t)
	at, requests := serve(t, http.NotFound)
	f := newClient(t, nil, at, at+"/other")
	of := object.RemoteFile{Kind: object.RemoteDebuginfo, BuildID: id}
	f.refuses(of, object.Absent, "does not have it")
	f.refuses(of, object.Absent, "a short time ago")
	f.holds("debuginfo (none)")
	if n := requests.Load(); n != 2 {
		t.Errorf("%d requests, expected 2", n)
	}
	// It is asked for again when that is old, by the setting of the cache.
	entry := filepath.Join(f.cache, fmt.Sprintf("%x", id), "debuginfo")
	age := func(by time.Duration) {
		t.Helper()
		if err := os.Chtimes(entry, time.Time{}, time.Now().Add(-by)); err != nil {
			t.Fatal(err)
		}
	}
	age(9 * time.Minute)
	f.refuses(of, object.Absent, "a short time ago")
	age(11 * time.Minute)
	f.refuses(of, object.Absent, "does not have it")
	if err := os.WriteFile(filepath.Join(f.cache, "cache_miss_s"), []byte("30\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	age(time.Minute)
	f.refuses(of, object.Absent, "does not have it")
	if n := requests.Load(); n != 6 {
		t.Errorf("%d requests, expected 6", n)
	}
	// Older clients took all rights from such a file.
	if err := os.Chmod(entry, 0); err != nil {
		t.Fatal(err)
	}
	f.refuses(of, object.Absent, "a short time ago")
}

// TestOnlyServersThatAnswerSayThatThereIsNone: where one of them could not say it,
// nothing is remembered.
func TestOnlyServersThatAnswerSayThatThereIsNone(t *testing.T) {
	_, id := program(t)
	none, _ := serve(t, http.NotFound)
	for _, status := range []int{500, 503, 403, 204} {
		broken, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		f := newClient(t, nil, broken, none)
		f.refuses(object.RemoteFile{Kind: object.RemoteDebuginfo, BuildID: id}, object.Absent, "does not have it")
		f.holds()
	}
}

func TestWrongAnswersAreRefusedAndNotKept(t *testing.T) {
	data, id := program(t)
	other := bytes.ReplaceAll(data, id, bytes.Repeat([]byte{7}, len(id)))
	code := object.RemoteFile{Kind: object.RemoteDebuginfo, BuildID: id}
	source := object.RemoteFile{Kind: object.RemoteSource, BuildID: id, Source: "/a.c"}
	// closing sends bytes without saying how many, and closes the connection.
	closing := func(b []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			c, out, _ := w.(http.Hijacker).Hijack()
			_, _ = out.WriteString("HTTP/1.0 200 OK\r\n\r\n")
			_, _ = out.Write(b)
			_ = out.Flush()
			_ = c.Close()
		}
	}
	header := func(name, value string, b []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(name, value)
			_, _ = w.Write(b)
		}
	}
	raw := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			c, out, _ := w.(http.Hijacker).Hijack()
			_, _ = out.WriteString(text)
			_ = out.Flush()
			_ = c.Close()
		}
	}
	for _, c := range []struct {
		name   string
		handle http.HandlerFunc
		of     object.RemoteFile
		kind   object.AttemptKind
		reason string
	}{
		{"another build ID", says(other), code, object.Mismatched, "build ID is 07070707"},
		{"no ELF file", says([]byte("<html>Welcome to the hotel</html>")), code, object.Unreadable, "not an ELF file"},
		{"nothing", says(nil), code, object.Unreadable, "empty"},
		{"an empty source file", says(nil), source, object.Unreadable, "empty"},
		{"fewer bytes than it says", header("Content-Length", strconv.Itoa(len(data)), data[:len(data)-1]), code, object.Unreadable, "was cut after"},
		{"a cut source file", header("Content-Length", "10", []byte("int x;")), source, object.Unreadable, "was cut after 6 bytes"},
		{"a cut file of no told length", closing(data[:len(data)-1]), code, object.Unreadable, "damaged"},
		{"a source file of no told length", closing([]byte("int x;")), source, object.Unreadable, "says nowhere how long"},
		{"another size than the server's header says", header("X-Debuginfod-Size", "7", []byte("int x;")), source, object.Unreadable, "has 6 bytes, expected 7"},
		{"compressed and cut", header("Content-Encoding", "gzip", zipped(data)[:len(data)/4]), code, object.Unreadable, "was cut"},
		{"more compressed bytes than the bound", header("Content-Encoding", "gzip", zipped(make([]byte, 70<<20))), source, object.Unreadable, "more than 67108864 bytes"},
		{"no HTTP", raw("HELO\r\n\r\n"), code, object.Unreadable, "malformed HTTP"},
		{"a cut header", raw("HTTP/1.1 200 OK\r\nContent-Le"), code, object.Unreadable, "malformed MIME header"},
		{"headers without end", raw("HTTP/1.1 200 OK\r\nA: " + strings.Repeat("a", 10<<20)), code, object.Unreadable, "headers exceeded"},
		{"a negative length", raw("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n"), code, object.Unreadable, "bad Content-Length"},
		{"a length beyond all files", raw("HTTP/1.1 200 OK\r\nContent-Length: 9000000000000000000\r\n\r\n"), code, object.Unreadable, "expected at most"},
		{"part of a file", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(data)
		}, code, object.Unreadable, "206"},
		{"a redirection to itself", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }, code, object.Unreadable, "redirects more than 10 times"},
		{"a redirection to a file", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		}, source, object.Unreadable, "redirects to file:"},
		{"a redirection to nowhere", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusFound) }, code, object.Unreadable, "302"},
	} {
		t.Run(c.name, func(t *testing.T) {
			at, _ := serve(t, c.handle)
			f := newClient(t, nil, at)
			f.refuses(c.of, c.kind, c.reason)
			f.holds()
		})
	}
	t.Run("too large", func(t *testing.T) {
		at, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Debuginfod-Maxsize") != "1000" {
				t.Error("the bound is not told")
			}
			says(data)(w, r)
		})
		f := newClient(t, func(o *Options) { o.MaxSize = 1000 }, at)
		f.refuses(code, object.Unreadable, fmt.Sprintf("the file has %d bytes, expected at most 1000", len(data)))
		f.holds()
	})
}

func zipped(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(b)
	_ = w.Close()
	return out.Bytes()
}

// TestNoPartIsTakenForTheWhole: a code object that is cut anywhere is refused, even where
// nothing says how long it should be.
func TestNoPartIsTakenForTheWhole(t *testing.T) {
	data, id := program(t)
	of := object.RemoteFile{Kind: object.RemoteDebuginfo, BuildID: id}
	path := filepath.Join(t.TempDir(), "part")
	for n := len(data); n > 0; n -= 1 + n/50 {
		if err := os.WriteFile(path, data[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		if err := check(path, of); (err == nil) != (n == len(data)) {
			t.Errorf("%d of %d bytes: %v", n, len(data), err)
		}
	}
}

func TestCompressedAndRedirectedAnswersAreTaken(t *testing.T) {
	data, id := program(t)
	of := object.RemoteFile{Kind: object.RemoteDebuginfo, BuildID: id}
	secret := http.Header{"X-Token": {"secret"}}
	there, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Token") != "" {
			t.Error("another host is told the user's headers")
		}
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("X-Debuginfod-Size", strconv.Itoa(len(data)))
		_, _ = w.Write(zipped(data))
	})
	here, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Token") != "secret" {
			t.Error("the server is not told the user's headers")
		}
		http.Redirect(w, r, there+"/x", http.StatusFound)
	})
	f := newClient(t, func(o *Options) { o.Headers = secret }, here)
	f.gets(of, data)
	f.holds("debuginfo")
}

// TestServersAreAskedInTheirOrder, the next one where one has nothing or what is wrong.
func TestServersAreAskedInTheirOrder(t *testing.T) {
	data, id := program(t)
	var order []string
	note := func(name string, handle http.HandlerFunc) string {
		at, _ := serve(t, func(w http.ResponseWriter, r *http.Request) { order = append(order, name); handle(w, r) })
		return at
	}
	none := note("none", http.NotFound)
	wrong := note("wrong", says(bytes.ReplaceAll(data, id, bytes.Repeat([]byte{7}, len(id)))))
	right, after := note("right", says(data)), note("after", says(data))
	f := newClient(t, nil, none, none, wrong, right, after)
	f.gets(object.RemoteFile{Kind: object.RemoteDebuginfo, BuildID: id}, data)
	if got := strings.Join(order, " "); got != "none wrong right" {
		t.Errorf("asked %s", got)
	}
	f.holds("debuginfo")
}

func TestAnswersThatDoNotComeAreAskedForAgain(t *testing.T) {
	data, id := program(t)
	of := object.RemoteFile{Kind: object.RemoteDebuginfo, BuildID: id}
	fail := atomic.Int64{}
	at, requests := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if fail.Add(-1) >= 0 {
			w.Header().Set("Content-Length", strconv.Itoa(len(data)))
			_, _ = w.Write(data[:100])
			return
		}
		_, _ = w.Write(data)
	})
	f := newClient(t, func(o *Options) { o.Retries = 2 }, at)
	fail.Store(3)
	f.refuses(of, object.Unreadable, "was cut after 100 bytes")
	if n := requests.Load(); n != 3 {
		t.Errorf("%d requests, expected 3", n)
	}
	fail.Store(2)
	f.gets(of, data)
	f.holds("debuginfo")
}

// TestSlowServers: one that sends nothing, and one that sends little, are given up, and
// not asked for other files.
func TestSlowServers(t *testing.T) {
	data, id := program(t)
	end := make(chan struct{})
	defer close(end)
	for name, handle := range map[string]http.HandlerFunc{
		"nothing": func(http.ResponseWriter, *http.Request) { <-end },
		"headers": func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush(); <-end },
		"little": func(w http.ResponseWriter, _ *http.Request) {
			for i := range data {
				_, _ = w.Write(data[i : i+1])
				w.(http.Flusher).Flush()
				select {
				case <-end:
					return
				case <-time.After(10 * time.Millisecond):
				}
			}
		},
	} {
		at, requests := serve(t, handle)
		f := newClient(t, func(o *Options) { o.Timeout = 200 * time.Millisecond }, at)
		start := time.Now()
		f.refuses(object.RemoteFile{Kind: object.RemoteDebuginfo, BuildID: id}, object.Unreadable, "(DEBUGINFOD_TIMEOUT)")
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%s: it took %v", name, took)
		}
		f.refuses(object.RemoteFile{Kind: object.RemoteExecutable, BuildID: id}, object.Unreadable, "not asked again, since it did not answer")
		if n := requests.Load(); n != 1 {
			t.Errorf("%s: %d requests, expected 1", name, n)
		}
		f.holds()
	}
	// One that sends enough in its time may take any time, but for DEBUGINFOD_MAXTIME.
	const parts = 20
	at, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for range parts {
			_, _ = w.Write(make([]byte, download.LeastBytes))
			w.(http.Flusher).Flush()
			time.Sleep(100 * time.Millisecond)
		}
	})
	f := newClient(t, func(o *Options) { o.Timeout = 1500 * time.Millisecond }, at)
	f.gets(object.RemoteFile{Kind: object.RemoteSource, BuildID: id, Source: "/a"}, make([]byte, parts*download.LeastBytes))
	f = newClient(t, func(o *Options) { o.MaxTime = 300 * time.Millisecond; o.Retries = 5 }, at)
	f.refuses(object.RemoteFile{Kind: object.RemoteSource, BuildID: id, Source: "/a"}, object.Unreadable, "(DEBUGINFOD_MAXTIME)")
	f.holds()
}

func TestServersThatCannotBeReached(t *testing.T) {
	data, id := program(t)
	at, _ := serve(t, says(data))
	f := newClient(t, func(o *Options) { o.Retries = 1 }, "localhost:1", "127.0.0.1:1", at)
	f.gets(object.RemoteFile{Kind: object.RemoteDebuginfo, BuildID: id}, data)
	start := time.Now()
	_, tried := f.Fetch(object.RemoteFile{Kind: object.RemoteExecutable, BuildID: id})
	if len(tried) != 2 || !strings.Contains(tried[0].Reason, "not asked again") || !strings.Contains(tried[0].Reason, "refused") ||
		!strings.Contains(tried[1].Reason, "not asked again") || time.Since(start) > 5*time.Second {
		t.Errorf("%v after %v", tried, time.Since(start))
	}
}

// TestClientsAtOnce: goroutines of one client ask once; processes do not disturb each
// other.
func TestClientsAtOnce(t *testing.T) {
	data, id := program(t)
	of := object.RemoteFile{Kind: object.RemoteDebuginfo, BuildID: id}
	at, requests := serve(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(50 * time.Millisecond)
		says(data)(w, r)
	})
	one := newClient(t, nil, at)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() { one.gets(of, data) })
	}
	all.Wait()
	if n := requests.Load(); n != 1 {
		t.Errorf("%d requests, expected 1", n)
	}
	cache := filepath.Join(t.TempDir(), "shared")
	for range 8 {
		f := newClient(t, func(o *Options) { o.Cache = cache }, at)
		all.Go(func() {
			f.gets(of, data)
			f.gets(object.RemoteFile{Kind: object.RemoteSource, BuildID: id, Source: "/a.c"}, data)
		})
	}
	all.Wait()
	newClient(t, func(o *Options) { o.Cache = cache }).holds("debuginfo", "source##a.c", "source-"+hashed("/a.c"))
}

func TestFilesOfDirectories(t *testing.T) {
	data, id := program(t)
	dir := t.TempDir()
	at := filepath.Join(dir, "buildid", fmt.Sprintf("%x", id))
	if err := os.MkdirAll(filepath.Join(at, "source"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"executable": data, "source/a b.c": []byte("int x;")} {
		if err := os.WriteFile(filepath.Join(at, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(at, "source/d"), 0o755); err != nil {
		t.Fatal(err)
	}
	f := newClient(t, nil, "file://"+dir)
	f.gets(object.RemoteFile{Kind: object.RemoteExecutable, BuildID: id}, data)
	f.gets(object.RemoteFile{Kind: object.RemoteSource, BuildID: id, Source: "/a b.c"}, []byte("int x;"))
	f.refuses(object.RemoteFile{Kind: object.RemoteDebuginfo, BuildID: id}, object.Absent, "does not have it")
	f.refuses(object.RemoteFile{Kind: object.RemoteSource, BuildID: id, Source: "/d"}, object.Unreadable, "not a regular file")
	f.holds("executable", "debuginfo (none)", "source##a b.c", "source-"+hashed("/a b.c"))
}

// TestWhatIsWrongInTheCacheIsReplaced: other clients keep what they got.
func TestWhatIsWrongInTheCacheIsReplaced(t *testing.T) {
	data, id := program(t)
	of := object.RemoteFile{Kind: object.RemoteDebuginfo, BuildID: id}
	at, _ := serve(t, says(data))
	for _, wrong := range [][]byte{data[:1000], []byte("<html>"), bytes.ReplaceAll(data, id, bytes.Repeat([]byte{7}, len(id)))} {
		f := newClient(t, nil, at)
		dir := filepath.Join(f.cache, fmt.Sprintf("%x", id))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "debuginfo"), wrong, 0o400); err != nil {
			t.Fatal(err)
		}
		f.gets(of, data)
		f.holds("debuginfo")
	}
}

func TestNobodyIsAskedWithoutAServer(t *testing.T) {
	_, id := program(t)
	f := newClient(t, nil)
	if path, tried := f.Fetch(object.RemoteFile{Kind: object.RemoteDebuginfo, BuildID: id}); path != "" || tried != nil {
		t.Errorf("%q %v", path, tried)
	}
	if _, err := os.Stat(f.cache); err == nil {
		t.Error("a cache was made")
	}
	f = newClient(t, func(o *Options) { o.Cache = "" }, "http://localhost:1")
	f.refuses(object.RemoteFile{Kind: object.RemoteDebuginfo, BuildID: id}, object.Unreadable, "no cache for debuginfod")
	f = newClient(t, nil, "http://localhost:1")
	for _, bad := range []object.RemoteFile{
		{Kind: object.RemoteDebuginfo}, {Kind: object.RemoteDebuginfo, BuildID: make([]byte, 64)}, {Kind: "section", BuildID: id},
		{Kind: object.RemoteSource, BuildID: id, Source: "a.c"}, {Kind: object.RemoteSource, BuildID: id, Source: "/a\x00.c"},
		{Kind: object.RemoteSource, BuildID: id, Source: "/" + strings.Repeat("a", 5000)},
	} {
		f.refuses(bad, object.Unreadable, "")
	}
	f.holds()
}

func TestProgressIsTold(t *testing.T) {
	data, id := program(t)
	at, _ := serve(t, says(data))
	var list []Transfer
	f := newClient(t, func(o *Options) { o.Progress = func(t Transfer) { list = append(list, t) } }, at)
	f.gets(object.RemoteFile{Kind: object.RemoteDebuginfo, BuildID: id}, data)
	u, _ := url.Parse(at)
	if len(list) < 3 || list[0].Bytes != 0 || list[0].Size != int64(len(data)) || list[0].Server != u.Host {
		t.Fatalf("%+v", list)
	}
	if last := list[len(list)-1]; !last.Done || last.Bytes != int64(len(data)) {
		t.Errorf("%+v", last)
	}
}

func TestPasswordsAreNotTold(t *testing.T) {
	_, id := program(t)
	f := newClient(t, nil, "http://user:secret@localhost:1")
	_, tried := f.Fetch(object.RemoteFile{Kind: object.RemoteDebuginfo, BuildID: id})
	if text := fmt.Sprint(tried); strings.Contains(text, "secret") || !strings.Contains(text, "user") {
		t.Error(text)
	}
	if _, err := ParseURL("http://user:secret@[bad"); err == nil || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
}

func mustParse(t testing.TB, text string) *url.URL {
	t.Helper()
	u, err := ParseURL(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
