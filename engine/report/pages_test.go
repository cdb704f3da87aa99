// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/trace"
)

// servePages serves the pages of a profile until the test ends, which must be well.
func servePages(t *testing.T, r *Profile, o ServeOptions) (url string) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	o.Host = "localhost"
	o.Problem = func(problem string) { t.Errorf("pprof: %s", problem) }
	ctx, end := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- r.Serve(ctx, l, o) }()
	t.Cleanup(func() {
		end()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String()
}

func TestProfilePagesAreServed(t *testing.T) {
	url := servePages(t, wordsProfile(t), ServeOptions{})
	for _, c := range []struct {
		page   string
		status int
		says   []string
	}{
		{"/", http.StatusOK, []string{"insert(Node*, unsigned int)"}}, // the flame graph
		{"/ui/flamegraph?si=page-faults", http.StatusOK, []string{"make", "page-faults"}},
		{"/ui/top", http.StatusOK, []string{"count_by_sort(int)", "total(Node const*)"}},
		{"/ui/peek?f=insert", http.StatusOK, []string{"count_by_tree(int)"}},
		{"/ui/source?f=insert", http.StatusOK, []string{"words.cc"}},
		{"/ui/download", http.StatusOK, nil},
		{"/nothing", http.StatusNotFound, nil},
	} {
		answer, err := http.Get(url + c.page) //nolint:noctx // the test has a limit
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != c.status {
			t.Errorf("%s: status %d, %v, expected %d", c.page, answer.StatusCode, err, c.status)
		}
		for _, s := range c.says {
			if !bytes.Contains(body, []byte(s)) {
				t.Errorf("%s does not have %q", c.page, s)
			}
		}
		if strings.HasSuffix(c.page, "download") {
			if _, err := profile.ParseData(body); err != nil {
				t.Errorf("%s: %v", c.page, err)
			}
		}
	}
}

// ask sends a request, changed, and gives the answer's status, headers and body.
func ask(t *testing.T, method, url string, change func(*http.Request)) (int, http.Header, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(request)
	}
	answer, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, string(body)
}

// TestPagesAreOfTheirHostAlone: a page of another site, whatever its name leads to,
// has nothing of a profile.
func TestPagesAreOfTheirHostAlone(t *testing.T) {
	url := servePages(t, wordsProfile(t), ServeOptions{})
	port := url[strings.LastIndexByte(url, ':')+1:]
	for _, c := range []struct {
		host   string
		status int
	}{
		{"localhost:" + port, http.StatusOK},
		{"LOCALHOST:" + port, http.StatusOK},
		{"127.0.0.1:" + port, http.StatusOK},
		{"rebound.example:" + port, http.StatusForbidden},
		{"rebound.example", http.StatusForbidden},
		{"localhost", http.StatusForbidden},
		{"localhost:1", http.StatusForbidden},
		{"localhost.example:" + port, http.StatusForbidden},
		{"127.0.0.2:" + port, http.StatusForbidden},
		{"0.0.0.0:" + port, http.StatusForbidden},
		{"[::1]:" + port, http.StatusForbidden},
		{":" + port, http.StatusForbidden},
	} {
		for _, page := range []string{"/ui/top", "/ui/download", "/ui/source?f=insert", "/", "/none"} {
			status, _, body := ask(t, http.MethodGet, url+page, func(r *http.Request) { r.Host = c.host })
			if (status == http.StatusForbidden) != (c.status == http.StatusForbidden) {
				t.Errorf("host %s, %s: status %d", c.host, page, status)
			}
			if status == http.StatusForbidden && strings.Contains(body, "insert") {
				t.Errorf("host %s, %s: %s", c.host, page, body)
			}
		}
	}
	for _, c := range []struct {
		site, mode, dest string
		status           int
	}{
		{"none", "navigate", "document", http.StatusOK},
		{"same-origin", "cors", "empty", http.StatusOK},
		{"cross-site", "navigate", "document", http.StatusOK}, // a link
		{"cross-site", "navigate", "iframe", http.StatusForbidden},
		{"cross-site", "no-cors", "image", http.StatusForbidden},
		{"same-site", "cors", "empty", http.StatusForbidden},
	} {
		status, _, _ := ask(t, http.MethodGet, url+"/ui/top", func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", c.site)
			r.Header.Set("Sec-Fetch-Mode", c.mode)
			r.Header.Set("Sec-Fetch-Dest", c.dest)
		})
		if status != c.status {
			t.Errorf("%+v: status %d", c, status)
		}
	}
}

// TestPagesChangeNothing: settings of pprof can neither be saved nor deleted, by any
// method, and no page offers it.
func TestPagesChangeNothing(t *testing.T) {
	home := t.TempDir()
	settings := filepath.Join(home, ".config", "pprof", "settings.json")
	const saved = `{"configs":[{"name":"mine"}]}`
	if err := os.MkdirAll(filepath.Dir(settings), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(settings, []byte(saved), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	url := servePages(t, wordsProfile(t), ServeOptions{})
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH"} {
		for _, page := range []string{"/ui/saveconfig?config=new&f=x", "/ui/deleteconfig?config=mine", "/saveconfig?config=new", "/ui//saveconfig?config=new"} {
			if status, _, _ := ask(t, method, url+page, nil); status < 300 {
				t.Errorf("%s %s: status %d", method, page, status)
			}
		}
	}
	if status, _, _ := ask(t, "POST", url+"/ui/top", nil); status != http.StatusMethodNotAllowed {
		t.Errorf("POST: status %d", status)
	}
	if b, err := os.ReadFile(settings); err != nil || string(b) != saved {
		t.Errorf("the settings are %q, %v", b, err)
	}
	for _, page := range []string{"/ui/top", "/ui/flamegraph", "/ui/peek?f=insert", "/ui/source?f=insert"} {
		status, headers, body := ask(t, "GET", url+page, nil)
		if status != http.StatusOK || !strings.Contains(body, "#save-config,#save-config+hr,.menu-delete-btn{display:none") {
			t.Errorf("%s: status %d, its menu offers to save", page, status)
		}
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'", "X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff",
			"Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if !strings.HasPrefix(headers.Get(name), want) {
				t.Errorf("%s: %s is %q", page, name, headers.Get(name))
			}
		}
	}
}

// TestSourcesOutsideTheRootAreNotShown: the recording names a source file, and what
// is read is beneath the root.
func TestSourcesOutsideTheRootAreNotShown(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, bytes.Repeat([]byte("the secret\n"), 200), 0o600); err != nil {
		t.Fatal(err)
	}
	words, err := os.ReadFile(wordsExe)
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, "root")
	for _, d := range []string{"srv/example", "example"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "srv/example/words"), words, 0o700); err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(root, "example/words.cc")
	page := func() string {
		t.Helper()
		rooted := recordedProfile(t, recordedEngine(t, engine.Options{Sysroot: root}), wordsRecording, trace.ProfileOptions{})
		url := servePages(t, rooted, ServeOptions{Sysroot: root})
		status, _, body := ask(t, "GET", url+"/ui/source?f=insert", nil)
		if status != http.StatusOK || !strings.Contains(body, "words.cc") {
			t.Errorf("status %d: %s", status, body)
		}
		return body
	}
	if err := os.WriteFile(source, bytes.Repeat([]byte("beneath the root\n"), 200), 0o600); err != nil {
		t.Fatal(err)
	}
	if body := page(); !strings.Contains(body, "beneath the root") {
		t.Errorf("the source is not shown: %s", body)
	}
	for _, target := range []string{secret, "../../secret"} {
		_ = os.Remove(source)
		if err := os.Symlink(target, source); err != nil {
			t.Fatal(err)
		}
		if body := page(); strings.Contains(body, "the secret") {
			t.Errorf("a link to %s is followed out of the root", target)
		}
	}
	// A file that is not there costs its lines, no more.
	_ = os.Remove(source)
	if body := page(); !strings.Contains(body, "???") || !strings.Contains(body, ">/example/words.cc<") {
		t.Errorf("%s", body)
	}
}
